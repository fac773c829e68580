//! Draws a campaign's calendar: for each day what it takes, what was planned for it and what went out.

use askama::Template;
use askama::filters::HtmlSafe;
use redeliver_core::calendar::Day;
use redeliver_engine::campaign::{CampaignCalendar, CampaignDay};

use super::chart::{GROUND, Mark, Marks, count_marks, height, number, round_up};

/// Days that are drawn at once, and how many of them before today.
const DAYS_MAX: i32 = 42;
const DAYS_BEFORE: i32 = 13;

/// How wide and high it is, in units of its own.
const WIDTH: f64 = 720.0;

/// Dates below the days, at most, besides today's.
const DATES_MAX: i32 = 7;

struct Bar {
    class: &'static str,
    x: String,
    y: String,
    wide: String,
    high: String,
    title: String,
}

/// The drawing.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<svg class="chart calendar" viewBox="0 0 720 100" preserveAspectRatio="none" role="img" aria-label="{{ label }}">
{%- if let Some((x, wide)) = today %}<rect class="today" x="{{ x }}" y="0" width="{{ wide }}" height="98"></rect>{% endif %}
{%- for mark in marks %}<line class="axis" x1="0" y1="{{ mark.y }}" x2="720" y2="{{ mark.y }}"></line>{% endfor %}
{%- for bar in bars %}<rect class="{{ bar.class }}" x="{{ bar.x }}" y="{{ bar.y }}" width="{{ bar.wide }}" height="{{ bar.high }}"><title>{{ bar.title }}</title></rect>{% endfor %}
</svg>"#
)]
pub(super) struct Drawn {
    label: String,
    bars: Vec<Bar>,
    marks: Vec<Mark>,
    today: Option<(String, String)>,
}

// It is rendered by a template that escapes what is inside.
impl HtmlSafe for Drawn {}

/// A day in words.
pub(super) struct Line {
    pub(super) day: String,
    pub(super) planned: u32,
    pub(super) sent: u64,
    pub(super) others: u32,
    pub(super) quota: Option<u32>,
}

/// What stands below a day; nothing below most.
pub(super) struct Date {
    pub(super) text: String,
    pub(super) is_today: bool,
}

/// The days that are drawn, with what stands beside them.
pub(super) struct Drawing {
    pub(super) drawn: Drawn,
    pub(super) marks: Marks,
    pub(super) dates: Vec<Date>,
    pub(super) lines: Vec<Line>,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) zone: String,
    pub(super) has_quota: bool,
    /// Whether there are more days before and behind those drawn.
    pub(super) is_part: bool,
}

impl Drawing {
    /// A calendar's days around today; `None` if it has none.
    pub(super) fn of(calendar: &CampaignCalendar) -> Option<Self> {
        let (first, last) = (calendar.days.first()?.day, calendar.days.last()?.day);
        // As near to today as there is something to see.
        let from = calendar.today.plus(-DAYS_BEFORE).min(last.plus(1 - DAYS_MAX)).max(first);
        let to = from.plus(DAYS_MAX - 1).min(last);
        let shown: Vec<&CampaignDay> =
            calendar.days.iter().filter(|day| (from..=to).contains(&day.day)).collect();
        let most = round_up(shown.iter().map(|day| highest(day)).max()?);
        let slot = WIDTH / f64::from(to.days_since(from) + 1);
        let bars = shown.iter().flat_map(|day| bars(day, from, slot, most)).collect();
        let (planned, sent) = shown
            .iter()
            .fold((0, 0), |(planned, sent), day| (planned + u64::from(day.plan.planned), sent + day.sent));
        let is_in = (from..=to).contains(&calendar.today);
        let begins = f64::from(calendar.today.days_since(from)) * slot;
        let today = is_in.then(|| (number(begins), number(slot)));
        Some(Self {
            drawn: Drawn {
                label: format!("{planned} e-mails planned and {sent} sent, from {from} to {to}"),
                bars,
                marks: count_marks(most),
                today,
            },
            marks: Marks::of(most),
            dates: dates(from, to, calendar.today),
            lines: shown.iter().map(|day| Line::of(day)).collect(),
            from: from.to_string(),
            to: to.to_string(),
            zone: calendar.zone.name().to_owned(),
            has_quota: shown.iter().any(|day| day.plan.quota.is_some()),
            is_part: from > first || to < last,
        })
    }
}

impl Line {
    fn of(day: &CampaignDay) -> Self {
        let weekday = day.day.weekday().name();
        Self {
            day: format!("{} {}", weekday, day.day),
            planned: day.plan.planned,
            sent: day.sent,
            others: day.plan.others,
            quota: day.plan.quota,
        }
    }

    fn words(&self) -> String {
        let takes = self.quota.map_or_else(String::new, |quota| format!(", capacity {quota}"));
        let others = match self.others {
            0 => String::new(),
            others => format!(", {others} of other campaigns"),
        };
        format!("{}: {} planned, {} sent{others}{takes}", self.day, self.planned, self.sent)
    }
}

/// A date for today and for a few others, far enough apart to be read.
fn dates(from: Day, to: Day, today: Day) -> Vec<Date> {
    let count = to.days_since(from) + 1;
    let every = (count + DATES_MAX - 1) / DATES_MAX;
    let date = |n: i32| {
        let day = from.plus(n);
        let (is_today, is_near) = (day == today, day.days_since(today).abs() < every.max(2));
        let text = match (is_today, n % every == 0 && !is_near) {
            (true, _) => "today".to_owned(),
            (false, true) => short(day),
            (false, false) => String::new(),
        };
        Date { text, is_today }
    };
    (0..count).map(date).collect()
}

/// A day and its month, such as `1 Dec`.
fn short(day: Day) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let written = day.to_string();
    let mut parts = written.rsplit('-').map(|part| part.parse::<usize>().unwrap_or_default());
    let (day, month) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match MONTHS.get(month.wrapping_sub(1)) {
        Some(month) => format!("{day} {month}"),
        None => written,
    }
}

fn highest(day: &CampaignDay) -> u64 {
    u64::from(day.plan.planned).max(day.sent).max(day.plan.quota.map_or(0, u64::from))
}

fn bars(day: &CampaignDay, from: Day, slot: f64, most: u64) -> Vec<Bar> {
    let title = Line::of(day).words();
    let x = f64::from(day.day.days_since(from)) * slot;
    // What a day takes is as wide as the day, what was planned stands in it, and what went out in that.
    let parts = [
        ("takes", day.plan.quota.map_or(0, u64::from), 0.04),
        ("planned", u64::from(day.plan.planned), 0.12),
        ("sent", day.sent, 0.28),
    ];
    let bar = |(class, count, margin): (&'static str, u64, f64)| {
        let high = (GROUND - height(count, most)).max(2.0);
        Bar {
            class,
            x: number(x + slot * margin),
            y: number(GROUND - high),
            wide: number(slot * (1.0 - 2.0 * margin)),
            high: number(high),
            title: title.clone(),
        }
    };
    parts.into_iter().filter(|(_, count, _)| *count > 0).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use redeliver_core::calendar::Zone;
    use redeliver_core::campaign::PlannedDay;

    use super::*;

    fn drawing(first: &str, days: i32, today: &str) -> Drawing {
        let first: Day = first.parse().unwrap();
        let day = |n: i32| CampaignDay {
            day: first.plus(n),
            plan: PlannedDay { planned: 10, others: 2, quota: Some(20) },
            sent: 5,
        };
        let days = (0..days).map(day).collect();
        Drawing::of(&CampaignCalendar { zone: Zone::utc(), today: today.parse().unwrap(), days }).unwrap()
    }

    #[test]
    fn the_days_around_today_are_drawn_and_those_at_hand_where_today_is_far() {
        let shown = |first, days, today| {
            let drawing = drawing(first, days, today);
            (drawing.from, drawing.to, drawing.drawn.today.is_some(), drawing.is_part)
        };
        let span =
            |from: &str, to: &str, has_today, is_part| (from.to_owned(), to.to_owned(), has_today, is_part);
        assert_eq!(shown("2027-03-01", 10, "2027-03-04"), span("2027-03-01", "2027-03-10", true, false));
        assert_eq!(shown("2027-03-01", 100, "2027-01-01"), span("2027-03-01", "2027-04-11", false, true));
        assert_eq!(shown("2027-03-01", 100, "2027-04-01"), span("2027-03-19", "2027-04-29", true, true));
        assert_eq!(shown("2027-03-01", 100, "2027-06-05"), span("2027-04-28", "2027-06-08", true, true));
        assert_eq!(shown("2027-03-01", 100, "2028-01-01"), span("2027-04-28", "2027-06-08", false, true));
    }

    #[test]
    fn today_and_a_few_days_have_their_dates_below_them() {
        let below = |days, today| {
            let all = drawing("2027-03-01", days, today).dates.into_iter().map(|date| date.text);
            all.filter(|text| !text.is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(below(3, "2027-03-01"), ["today", "3 Mar"]);
        assert_eq!(below(3, "2027-05-01"), ["1 Mar", "2 Mar", "3 Mar"]);
        assert!(below(42, "2027-03-20").len() <= 8);
    }

    #[test]
    fn bars_stand_on_the_ground_and_within_their_day() {
        let drawing = drawing("2027-03-01", 3, "2027-03-01");
        assert_eq!(drawing.drawn.bars.len(), 9);
        for bar in &drawing.drawn.bars {
            let [x, y, wide, high] =
                [&bar.x, &bar.y, &bar.wide, &bar.high].map(|text| text.parse::<f64>().unwrap());
            assert!(
                (y + high - GROUND).abs() < 0.2 && x >= 0.0 && x + wide <= WIDTH,
                "{x} {y} {wide} {high}"
            );
        }
        assert_eq!(
            drawing.drawn.bars[0].title,
            "mon 2027-03-01: 10 planned, 5 sent, 2 of other campaigns, capacity 20"
        );
    }
}
