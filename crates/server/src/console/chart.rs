//! Draws what happened over the last three hours: bars for what was delivered, handed off, tried again and given up,
//! and lines for how late things were. Both have the same time below them and their own scale at the side.

use std::time::Duration;

use askama::Template;
use askama::filters::HtmlSafe;
use redeliver_core::Timestamp;
use redeliver_core::time::tell_span;
use redeliver_engine::pulse::{MINUTES_MAX, Minute};

use super::moment::Moment;

/// Minutes of one bar, and of one point of a line.
const MINUTES_EACH: usize = 5;
const BARS: usize = MINUTES_MAX / MINUTES_EACH;

/// How wide and high it is, in units of its own, and where the ground is.
const WIDTH: usize = 720;
const HIGH: f64 = 92.0;
pub(super) const GROUND: f64 = 98.0;

/// What a lateness is told beside: these, and nothing later than the last.
const LATE_MARKS: [(&str, u64); 4] = [("1 ms", 1), ("1 s", 1_000), ("1 min", 60_000), ("1 h", 3_600_000)];

struct Bar {
    class: &'static str,
    x: usize,
    y: String,
    wide: usize,
    high: String,
    title: String,
}

/// A height, and what it stands for.
pub(super) struct Mark {
    pub(super) y: String,
    text: String,
}

/// The scale at the side of a drawing.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<svg class="marks" viewBox="0 0 48 100" aria-hidden="true">
{%- for mark in marks %}<text x="44" y="{{ mark.y }}" text-anchor="end" dominant-baseline="middle">{{ mark.text }}</text>{% endfor %}</svg>"#
)]
pub(super) struct Marks {
    marks: Vec<Mark>,
}

/// What was delivered, handed off, tried again and given up.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<svg class="chart" viewBox="0 0 720 100" preserveAspectRatio="none" role="img" aria-label="{{ label }}">
{%- for mark in marks %}<line class="axis" x1="0" y1="{{ mark.y }}" x2="720" y2="{{ mark.y }}"></line>{% endfor %}
{%- for bar in bars %}<rect class="{{ bar.class }}" x="{{ bar.x }}" y="{{ bar.y }}" width="{{ bar.wide }}" height="{{ bar.high }}"><title>{{ bar.title }}</title></rect>{% endfor %}</svg>"#
)]
pub(super) struct Bars {
    label: String,
    marks: Vec<Mark>,
    bars: Vec<Bar>,
}

/// How late half of it was, and nearly all of it: a line each, above an area.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<svg class="chart" viewBox="0 0 720 100" preserveAspectRatio="none" role="img" aria-label="{{ label }}">
{%- for mark in marks %}<line class="axis" x1="0" y1="{{ mark.y }}" x2="720" y2="{{ mark.y }}"></line>{% endfor %}
{%- for (class, points) in areas %}<polygon class="{{ class }}" points="{{ points }}"></polygon>{% endfor %}
{%- for (class, points) in lines %}<polyline class="{{ class }}" points="{{ points }}"></polyline>{% endfor %}</svg>"#
)]
pub(super) struct Lines {
    label: String,
    marks: Vec<Mark>,
    areas: Vec<(&'static str, String)>,
    lines: Vec<(&'static str, String)>,
}

// They are rendered by templates that escape what is inside.
impl HtmlSafe for Bars {}
impl HtmlSafe for Lines {}
impl HtmlSafe for Marks {}

impl Marks {
    /// The scale of a count up to this.
    pub(super) fn of(scale: u64) -> Self {
        Self { marks: count_marks(scale) }
    }
}

/// Both, with what stands beside them.
pub(super) struct Charts {
    pub(super) bars: Bars,
    pub(super) bar_marks: Marks,
    pub(super) lines: Lines,
    pub(super) line_marks: Marks,
    /// The hours below both.
    pub(super) times: Vec<Moment>,
    pub(super) delivered: u64,
    pub(super) handed_off: u64,
    pub(super) retried: u64,
    pub(super) dead: u64,
    pub(super) p50: String,
    pub(super) p99: String,
    pub(super) is_empty: bool,
}

#[derive(Copy, Clone, Default)]
struct Sums {
    delivered: u64,
    handed_off: u64,
    retried: u64,
    dead: u64,
}

impl Charts {
    /// The charts of these minutes, the oldest first.
    pub(super) fn of(minutes: &[Minute]) -> Self {
        let parts: Vec<Minute> = minutes.chunks(MINUTES_EACH).map(together).collect();
        let each: Vec<Sums> = parts.iter().map(Sums::of).collect();
        let most = each.iter().map(|sums| sums.all()).max().unwrap_or(0);
        let scale = round_up(most);
        let sums = Sums::of(&together(minutes));
        let label = format!("in the last {} h: {}", MINUTES_MAX / 60, sums.told());
        let latest = |share: f64| {
            let known = minutes.iter().rev().find_map(|minute| minute.lateness(share));
            known.map_or_else(|| "–".to_owned(), tell_span)
        };
        let (p50, p99) = (latest(0.5), latest(0.99));
        let lateness = format!("delay after due time: median {p50}, 99th percentile {p99}");
        Self {
            bars: Bars { label, marks: count_marks(scale), bars: bars(&each, scale) },
            bar_marks: Marks::of(scale),
            lines: lines(&parts, lateness),
            line_marks: Marks { marks: late_marks() },
            times: minutes.first().map(|first| hours(first.at)).unwrap_or_default(),
            delivered: sums.delivered,
            handed_off: sums.handed_off,
            retried: sums.retried,
            dead: sums.dead,
            p50,
            p99,
            is_empty: sums.all() == 0,
        }
    }
}

impl Sums {
    fn of(minute: &Minute) -> Self {
        let Minute { delivered, handed_off, retried, dead, .. } = minute;
        let [delivered, handed_off, retried, dead] =
            [delivered, handed_off, retried, dead].map(|count| u64::from(*count));
        Self { delivered, handed_off, retried, dead }
    }

    fn all(self) -> u64 {
        self.delivered + self.handed_off + self.retried + self.dead
    }

    fn told(self) -> String {
        let Self { delivered, handed_off, retried, dead } = self;
        // Most have nobody to hand anything off to.
        let handed_off = match handed_off {
            0 => String::new(),
            count => format!(" {count} handed off,"),
        };
        format!("{delivered} delivered,{handed_off} {retried} retried, {dead} dead")
    }
}

/// What happened in these minutes as if they were one.
fn together(minutes: &[Minute]) -> Minute {
    minutes.iter().fold(Minute::default(), |mut sum, minute| {
        sum.delivered = sum.delivered.saturating_add(minute.delivered);
        sum.handed_off = sum.handed_off.saturating_add(minute.handed_off);
        sum.retried = sum.retried.saturating_add(minute.retried);
        sum.dead = sum.dead.saturating_add(minute.dead);
        for (sum, count) in sum.late.iter_mut().zip(minute.late) {
            *sum = sum.saturating_add(count);
        }
        sum
    })
}

/// Each full hour of what is drawn, its beginning and its end.
fn hours(first: Timestamp) -> Vec<Moment> {
    let hour = |n: usize| Moment::hour(first.plus(Duration::from_secs(n as u64 * 3_600)));
    (0..=MINUTES_MAX / 60).map(hour).collect()
}

/// The next number that is easily halved and read.
pub(super) fn round_up(most: u64) -> u64 {
    let mut ten: u64 = 1;
    while ten.saturating_mul(10) < most {
        ten = ten.saturating_mul(10);
    }
    [1, 2, 4, 6, 8, 10].map(|n| ten.saturating_mul(n)).into_iter().find(|n| *n >= most).unwrap_or(most)
}

pub(super) fn count_marks(scale: u64) -> Vec<Mark> {
    let half = (scale > 1).then_some(scale / 2);
    let mark = |count: u64| Mark { y: number(height(count, scale)), text: count.to_string() };
    [Some(0), half, Some(scale)].into_iter().flatten().map(mark).collect()
}

pub(super) fn height(count: u64, scale: u64) -> f64 {
    GROUND - count as f64 / scale.max(1) as f64 * HIGH
}

fn bars(each: &[Sums], scale: u64) -> Vec<Bar> {
    let step = WIDTH / BARS;
    let mut bars = Vec::new();
    for (place, sums) in each.iter().enumerate() {
        let mut y = GROUND;
        let title = sums.told();
        for (class, count) in [
            ("delivered", sums.delivered),
            ("handed-off", sums.handed_off),
            ("retried", sums.retried),
            ("dead", sums.dead),
        ] {
            if count == 0 {
                continue;
            }
            // What is there is seen, however little it is.
            let high = (GROUND - height(count, scale)).max(2.0).min(y - 2.0);
            y -= high;
            bars.push(Bar {
                class,
                x: place * step + 2,
                y: number(y),
                wide: step - 4,
                high: number(high),
                title: title.clone(),
            });
        }
    }
    bars
}

/// A millisecond is at the bottom and an hour at the top: ten times later is the same way up everywhere.
fn late_height(late_ms: u64) -> f64 {
    let top = LATE_MARKS.map(|(_, ms)| ms).into_iter().max().unwrap_or(1) as f64;
    GROUND - (late_ms.max(1) as f64).log10() / top.log10() * HIGH
}

fn late_marks() -> Vec<Mark> {
    let mark = |(text, ms): (&str, u64)| Mark { y: number(late_height(ms)), text: text.to_owned() };
    LATE_MARKS.map(mark).into()
}

/// A line each through the middles of the parts, from the beginning of the first to the end of the last, and broken where nothing
/// was carried.
fn lines(parts: &[Minute], label: String) -> Lines {
    let (mut areas, mut lines) = (Vec::new(), Vec::new());
    for (class, share) in [("p99", 0.99), ("p50", 0.5)] {
        for run in runs(parts, share) {
            let points: Vec<String> =
                run.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
            let (Some((from, _)), Some((to, _))) = (run.first(), run.last()) else { continue };
            let points = points.join(" ");
            areas.push((class, format!("{from:.1},{GROUND} {points} {to:.1},{GROUND}")));
            lines.push((class, points));
        }
    }
    Lines { label, marks: late_marks(), areas, lines }
}

/// Parts behind one another in which something was carried, as points.
fn runs(parts: &[Minute], share: f64) -> Vec<Vec<(f64, f64)>> {
    let step = WIDTH as f64 / BARS as f64;
    let mut runs: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
    for (place, part) in parts.iter().enumerate() {
        let x = place as f64 * step;
        let late = part.lateness(share).map(|late| u64::try_from(late.as_millis()).unwrap_or(u64::MAX));
        let Some(run) = runs.last_mut() else { break };
        match late.map(late_height) {
            Some(y) if run.is_empty() => run.extend([(x, y), (x + step, y)]),
            // What was the end is the middle of its part, once there is another behind it.
            Some(y) => {
                if let Some(last) = run.last_mut() {
                    last.0 -= step / 2.0;
                }
                run.push((x + step, y));
            }
            None if run.is_empty() => {}
            None => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// A length as a drawing has it.
pub(super) fn number(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(happened: &[(usize, Minute)]) -> Vec<Minute> {
        let mut minutes = vec![Minute::default(); MINUTES_MAX];
        for (place, minute) in happened {
            minutes[*place] = minute.clone();
        }
        minutes
    }

    #[test]
    fn bars_stay_on_their_ground_and_show_the_least() {
        let minute = |delivered, retried, dead| Minute { delivered, retried, dead, ..Minute::default() };
        let charts = Charts::of(&minutes(&[(0, minute(1_000_000, 0, 0)), (7, minute(1, 1, 1))]));
        assert_eq!((charts.delivered, charts.retried, charts.dead), (1_000_001, 1, 1));
        assert_eq!(charts.bars.bars.len(), 4);
        assert!(charts.bars.bars.iter().all(|bar| bar.x + bar.wide <= WIDTH), "within");
        assert_eq!(charts.bars.bars[3].high, "2.0");
        assert!(Charts::of(&vec![Minute::default(); MINUTES_MAX]).is_empty);
    }

    #[test]
    fn what_was_handed_off_is_told_beside_what_was_delivered() {
        let minute = Minute { delivered: 2, handed_off: 3, ..Minute::default() };
        let charts = Charts::of(&minutes(&[(0, minute)]));
        assert_eq!((charts.delivered, charts.handed_off, charts.is_empty), (2, 3, false));
        let classes: Vec<&str> = charts.bars.bars.iter().map(|bar| bar.class).collect();
        assert_eq!(classes, ["delivered", "handed-off"]);
        assert!(charts.bars.label.ends_with("2 delivered, 3 handed off, 0 retried, 0 dead"));
    }

    #[test]
    fn a_scale_ends_in_a_number_that_is_easily_read() {
        for (most, scale) in [(0, 1), (1, 1), (2, 2), (3, 4), (5, 6), (10, 10), (11, 20), (999, 1_000)] {
            assert_eq!(round_up(most), scale, "{most}");
        }
        let marks: Vec<String> = count_marks(20).into_iter().map(|mark| mark.text).collect();
        assert_eq!(marks, ["0", "10", "20"]);
        assert_eq!(Charts::of(&minutes(&[])).times.len(), 4, "an end and a beginning of three hours");
    }

    #[test]
    fn a_line_goes_on_while_something_is_carried_and_breaks_where_nothing_was() {
        let late = |place: usize| {
            let mut minute = Minute::default();
            minute.late[place] = 4;
            minute
        };
        let charts = Charts::of(&minutes(&[(0, late(9)), (6, late(9)), (12, late(15)), (30, late(0))]));
        let p50: Vec<&str> =
            charts.lines.lines.iter().filter(|(class, _)| *class == "p50").map(|(_, line)| &**line).collect();
        assert_eq!(p50.len(), 2, "{p50:?}");
        assert_eq!(p50[0].split(' ').count(), 4, "{p50:?}");
        assert_eq!(p50[1], "120.0,98.0 140.0,98.0", "one by itself is seen");
        assert_eq!(charts.lines.areas.len(), 4);
    }
}
