//! Draws what happened over the last three hours: bars for what was delivered, tried again and given up, and lines for how
//! late things were.

use std::time::Duration;

use askama::Template;
use askama::filters::HtmlSafe;
use redeliver_core::time::show_span;
use redeliver_engine::pulse::{MINUTES_MAX, Minute};

use super::moment::Moment;

/// Minutes of one bar.
const MINUTES_EACH: usize = 5;

/// How wide and high it is, in units of its own.
const WIDTH: usize = 720;
const HIGH: f64 = 96.0;

struct Bar {
    class: &'static str,
    x: usize,
    y: String,
    wide: usize,
    high: String,
    title: String,
}

/// What was delivered, tried again and given up.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<svg class="chart" viewBox="0 0 720 100" preserveAspectRatio="none" role="img" aria-label="{{ label }}">
<line class="axis" x1="0" y1="98" x2="720" y2="98"></line>
{%- for bar in bars %}<rect class="{{ bar.class }}" x="{{ bar.x }}" y="{{ bar.y }}" width="{{ bar.wide }}" height="{{ bar.high }}"><title>{{ bar.title }}</title></rect>{% endfor %}</svg>"#
)]
pub(super) struct Bars {
    label: String,
    bars: Vec<Bar>,
}

/// How late half of it was, and nearly all of it.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<svg class="chart" viewBox="0 0 720 100" preserveAspectRatio="none" role="img" aria-label="{{ label }}">
<line class="axis" x1="0" y1="98" x2="720" y2="98"></line>
{%- for (class, points) in lines %}<polyline class="{{ class }}" points="{{ points }}"></polyline>{% endfor %}</svg>"#
)]
pub(super) struct Lines {
    label: String,
    lines: Vec<(&'static str, String)>,
}

// They are rendered by templates that escape what is inside.
impl HtmlSafe for Bars {}
impl HtmlSafe for Lines {}

/// Both, with what stands beside them.
pub(super) struct Charts {
    pub(super) bars: Bars,
    pub(super) lines: Lines,
    pub(super) delivered: u64,
    pub(super) retried: u64,
    pub(super) dead: u64,
    /// The most of one bar.
    pub(super) most: u64,
    pub(super) p50: String,
    pub(super) p99: String,
    pub(super) from: Option<Moment>,
    pub(super) is_empty: bool,
}

#[derive(Copy, Clone, Default)]
struct Sums {
    delivered: u64,
    retried: u64,
    dead: u64,
}

impl Charts {
    /// The charts of these minutes, the oldest first.
    pub(super) fn of(minutes: &[Minute]) -> Self {
        let sum = |minutes: &[Minute]| {
            minutes.iter().fold(Sums::default(), |sums, minute| Sums {
                delivered: sums.delivered + u64::from(minute.delivered),
                retried: sums.retried + u64::from(minute.retried),
                dead: sums.dead + u64::from(minute.dead),
            })
        };
        let each: Vec<Sums> = minutes.chunks(MINUTES_EACH).map(sum).collect();
        let most = each.iter().map(|sums| sums.delivered + sums.retried + sums.dead).max().unwrap_or(0);
        let Sums { delivered, retried, dead } = sum(minutes);
        let label = format!(
            "in the last {} h: {delivered} delivered, {retried} tried again, {dead} given up",
            MINUTES_MAX / 60
        );
        let latest = |share: f64| {
            let known = minutes.iter().rev().find_map(|minute| minute.lateness(share));
            known.map_or_else(|| "–".to_owned(), show_span)
        };
        let (p50, p99) = (latest(0.5), latest(0.99));
        let lines = Lines {
            label: format!("lateness, lately: half within {p50}, nearly all within {p99}"),
            lines: vec![("p99", points(minutes, 0.99)), ("p50", points(minutes, 0.5))],
        };
        Self {
            bars: Bars { label, bars: bars(&each, most) },
            lines,
            delivered,
            retried,
            dead,
            most,
            p50,
            p99,
            from: minutes.first().map(|minute| Moment::clock(minute.at)),
            is_empty: delivered + retried + dead == 0,
        }
    }
}

fn bars(each: &[Sums], most: u64) -> Vec<Bar> {
    let step = WIDTH / (MINUTES_MAX / MINUTES_EACH);
    let mut bars = Vec::new();
    for (place, sums) in each.iter().enumerate() {
        let mut y = 98.0;
        let title =
            format!("{} delivered, {} tried again, {} given up", sums.delivered, sums.retried, sums.dead);
        for (class, count) in [("delivered", sums.delivered), ("retried", sums.retried), ("dead", sums.dead)]
        {
            if count == 0 {
                continue;
            }
            // What is there is seen, however little it is.
            let high = (count as f64 / most.max(1) as f64 * HIGH).max(2.0).min(y - 2.0);
            y -= high;
            bars.push(Bar {
                class,
                x: place * step + 1,
                y: format!("{y:.1}"),
                wide: step - 2,
                high: format!("{high:.1}"),
                title: title.clone(),
            });
        }
    }
    bars
}

/// A line through the minutes in which something was carried. A millisecond is at the bottom and an hour at the top: ten
/// times later is the same way up everywhere.
fn points(minutes: &[Minute], share: f64) -> String {
    let step = WIDTH as f64 / MINUTES_MAX as f64;
    let height = |late: Duration| {
        let decades = (late.as_secs_f64() * 1_000.0).max(1.0).log10() / 6.6;
        98.0 - decades.min(1.0) * HIGH
    };
    // A minute is as wide as it is long, so that one by itself is seen.
    let point = |(place, minute): (usize, &Minute)| {
        let (y, x) = (height(minute.lateness(share)?), place as f64 * step);
        Some(format!("{x:.1},{y:.1} {:.1},{y:.1}", x + step))
    };
    minutes.iter().enumerate().filter_map(point).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stay_on_their_ground_and_show_the_least() {
        let minute = |delivered, retried, dead| Minute { delivered, retried, dead, ..Minute::default() };
        let mut minutes = vec![Minute::default(); MINUTES_MAX];
        minutes[0] = minute(1_000_000, 0, 0);
        minutes[7] = minute(1, 1, 1);
        let charts = Charts::of(&minutes);
        assert_eq!(
            (charts.delivered, charts.retried, charts.dead, charts.most),
            (1_000_001, 1, 1, 1_000_000)
        );
        assert_eq!(charts.bars.bars.len(), 4);
        assert!(charts.bars.bars.iter().all(|bar| bar.x + bar.wide <= WIDTH), "within");
        assert_eq!(charts.bars.bars[3].high, "2.0");
        assert!(Charts::of(&vec![Minute::default(); MINUTES_MAX]).is_empty);
    }
}
