//! Draws when a policy tries again: a mark for each try along a line of time, and a bar where chance has room.

use std::time::Duration;

use askama::Template;
use askama::filters::HtmlSafe;
use redeliver_core::Policy;
use redeliver_core::time::tell_span;

use super::chart::number;

/// Tries that are drawn, at most.
const TRIES_MAX: u32 = 40;

/// How wide and high it is, in units of its own; where the line begins and ends.
const WIDTH: f64 = 640.0;
const LEFT: f64 = 18.0;
const RIGHT: f64 = 622.0;

/// How near two words may come to one another.
const BETWEEN: f64 = 64.0;

struct Mark {
    x: String,
    /// Where chance may put it.
    from: String,
    wide: String,
    title: String,
}

struct Word {
    x: String,
    anchor: &'static str,
    text: String,
}

/// A policy as it is drawn.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<svg class="curve" viewBox="0 0 640 72" role="img" aria-label="{{ label }}">
<line class="axis" x1="18" y1="30" x2="622" y2="30"></line>
{%- for mark in marks %}
<rect class="chance" x="{{ mark.from }}" y="24" width="{{ mark.wide }}" height="12" rx="3"></rect>
<circle class="try" cx="{{ mark.x }}" cy="30" r="5"><title>{{ mark.title }}</title></circle>
{%- endfor %}
{%- for word in words %}
<text class="{{ word.anchor }}" x="{{ word.x }}" y="62" text-anchor="{{ word.anchor }}">{{ word.text }}</text>
{%- endfor %}
</svg>"#
)]
pub(super) struct Curve {
    label: String,
    marks: Vec<Mark>,
    words: Vec<Word>,
}

// It is rendered by a template that escapes what is inside.
impl HtmlSafe for Curve {}

impl Curve {
    /// The tries of a policy.
    pub(super) fn of(policy: &Policy) -> Self {
        let slots = policy.timetable(TRIES_MAX);
        let last = slots.last().map_or(Duration::ZERO, |slot| slot.since_first.max);
        let x = |span: Duration| LEFT + place(span, last) * (RIGHT - LEFT);
        let mut marks = vec![Mark::at(LEFT, LEFT, LEFT, "attempt 1, at once".to_owned())];
        let mut words = vec![Word { x: number(LEFT), anchor: "start", text: "at once".to_owned() }];
        let mut free_from = LEFT + BETWEEN;
        for slot in &slots {
            let (from, to) = (x(slot.since_first.min), x(slot.since_first.max));
            let is_sure = slot.since_first.min == slot.since_first.max;
            let span = match is_sure {
                true => tell_span(slot.since_first.max),
                false => {
                    format!("{} to {}", tell_span(slot.since_first.min), tell_span(slot.since_first.max))
                }
            };
            let middle = f64::midpoint(from, to);
            marks.push(Mark::at(middle, from, to, format!("attempt {}, after {span}", slot.attempt)));
            let is_last = slot.since_first.max == last;
            if is_last || (middle >= free_from && middle <= RIGHT - BETWEEN * 1.5) {
                let (x, anchor) = if is_last { (RIGHT, "end") } else { (middle, "middle") };
                words.push(Word { x: number(x), anchor, text: tell_span(slot.since_first.max) });
                free_from = middle + BETWEEN * 1.5;
            }
        }
        let label = format!("{} attempts, the last after {}", policy.max_attempts, tell_span(last));
        Self { label, marks, words }
    }
}

impl Mark {
    fn at(x: f64, from: f64, to: f64, title: String) -> Self {
        Self { x: number(x), from: number(from - 2.0), wide: number((to - from + 4.0).min(WIDTH)), title }
    }
}

/// Where a time is between the first try and the last. Waits grow by factors, and so does the line: the root keeps the
/// first ones apart without making the last ones look near.
fn place(span: Duration, last: Duration) -> f64 {
    if last.is_zero() { 0.0 } else { (span.as_secs_f64() / last.as_secs_f64()).sqrt() }
}

#[cfg(test)]
mod tests {
    use redeliver_core::policy::{Backoff, Jitter};

    use super::*;

    #[test]
    fn every_try_has_its_mark_and_words_never_overlap() {
        let table =
            ["30s", "60s", "2m", "4m", "8m"].map(|text| redeliver_core::time::parse_span(text).unwrap());
        let policy = Policy {
            backoff: Backoff::Table(table.to_vec()),
            jitter: Jitter::Share(300),
            max_attempts: 6,
            expires_after: None,
        };
        let curve = Curve::of(&policy);
        assert_eq!(curve.marks.len(), 6);
        let places: Vec<f64> = curve.words.iter().map(|word| word.x.parse().unwrap()).collect();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= BETWEEN), "{places:?}");
        let drawn = curve.render().unwrap();
        assert!(drawn.contains("<title>attempt 1, at once</title>"), "{drawn}");
        let once = Curve::of(&Policy { max_attempts: 1, ..policy });
        assert_eq!((once.marks.len(), once.words.len()), (1, 1));
    }
}
