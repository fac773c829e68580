//! A time as people read it: in their own zone where the script runs, in UTC elsewhere, and exactly on hover.

use std::time::Duration;

use askama::Template;
use askama::filters::HtmlSafe;
use redeliver_core::Timestamp;
use redeliver_core::time::tell_span;

/// A time on a page.
#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"<time datetime="{{ at }}" title="{{ exact }}" data-show="{{ show }}">{{ text }}</time>"#
)]
pub(super) struct Moment {
    at: String,
    exact: String,
    show: &'static str,
    text: String,
}

// It is rendered by a template that escapes what is inside.
impl HtmlSafe for Moment {}

impl Moment {
    /// The time of day.
    pub(super) fn clock(at: Timestamp) -> Self {
        let text = utc(at, "%Y-%m-%d %H:%M:%S UTC");
        Self { text, show: "clock", ..Self::empty(at) }
    }

    /// The hour and the minute, for where there is little room.
    pub(super) fn hour(at: Timestamp) -> Self {
        Self { text: utc(at, "%H:%M"), show: "hour", ..Self::empty(at) }
    }

    /// How far from now.
    pub(super) fn from_now(at: Timestamp, now: Timestamp) -> Self {
        Self { text: distance(at, now), show: "distance", ..Self::empty(at) }
    }

    /// How long after another time it was.
    pub(super) fn after(at: Timestamp, before: Timestamp) -> Self {
        match at.since(before) {
            // The clock was set back in between.
            _ if at < before => Self::clock(at),
            span if span.is_zero() => Self { text: "at once".to_owned(), show: "said", ..Self::empty(at) },
            span => Self { text: format!("{} later", tell_span(span)), show: "said", ..Self::empty(at) },
        }
    }

    fn empty(at: Timestamp) -> Self {
        Self {
            at: at.to_string(),
            exact: utc(at, "%Y-%m-%d %H:%M:%S%.3f UTC"),
            show: "",
            text: String::new(),
        }
    }
}

/// A piece of a sentence.
pub(super) enum Piece {
    Words(String),
    Time(Moment),
}

/// Bytes of a time as sentences have it, such as `2026-12-01T09:00:00.000Z`.
const WRITTEN_BYTES: usize = 24;

/// A sentence with its times cut out, so that they too are told in the reader's zone.
pub(super) fn pieces(sentence: &str) -> Vec<Piece> {
    let (mut pieces, mut rest) = (Vec::new(), sentence);
    while let Some((before, at, after)) = next_time(rest) {
        pieces.extend([Piece::Words(before.to_owned()), Piece::Time(Moment::clock(at))]);
        rest = after;
    }
    pieces.push(Piece::Words(rest.to_owned()));
    pieces
}

fn next_time(text: &str) -> Option<(&str, Timestamp, &str)> {
    text.match_indices("-").find_map(|(dash, _)| {
        let start = dash.checked_sub(4)?;
        let written = text.get(start..start + WRITTEN_BYTES).filter(|written| written.ends_with('Z'))?;
        Some((&text[..start], written.parse().ok()?, &text[start + WRITTEN_BYTES..]))
    })
}

fn utc(at: Timestamp, form: &str) -> String {
    match jiff::Timestamp::from_millisecond(at.as_ms()) {
        Ok(time) => time.strftime(form).to_string(),
        Err(_) => at.to_string(),
    }
}

/// How far a time is from now: `in 30 s`, `2 h ago`, `now`. The script counts on in the same words.
fn distance(at: Timestamp, now: Timestamp) -> String {
    let whole = |span: Duration| tell_span(Duration::from_secs(span.as_secs()));
    let (ahead, behind) = (at.since(now), now.since(at));
    match (ahead.as_secs(), behind.as_secs()) {
        (0, 0) => "now".to_owned(),
        (0, _) => format!("{} ago", whole(behind)),
        _ => format!("in {}", whole(ahead)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_is_said_in_one_unit_or_two() {
        let now = Timestamp::from_ms(1_000_000_000_000);
        let check = |s: i64, said: &str| {
            assert_eq!(distance(Timestamp::from_ms(now.as_ms() + s * 1_000), now), said);
        };
        check(0, "now");
        check(30, "in 30 s");
        check(-59, "59 s ago");
        check(90, "in 1 min 30 s");
        check(5_400, "in 1 h 30 min");
        check(-7_200, "2 h ago");
        check(3 * 86_400, "in 3 days");
    }

    #[test]
    fn how_long_after_another_time_something_was_is_told_as_finely_as_it_matters() {
        let before = Timestamp::from_ms(1_796_115_600_000);
        let check = |ms: i64, said: &str| {
            assert_eq!(Moment::after(Timestamp::from_ms(before.as_ms() + ms), before).text, said);
        };
        check(0, "at once");
        check(40, "40 ms later");
        check(1_240, "1.2 s later");
        check(5_400_000, "1 h 30 min later");
        check(-1_000, "2026-12-01 08:59:59 UTC");
    }

    #[test]
    fn the_times_in_a_sentence_are_times() {
        let told = |sentence: &str| {
            let told = |piece| match piece {
                Piece::Words(words) => words,
                Piece::Time(moment) => format!("[{}]", moment.text),
            };
            pieces(sentence).into_iter().map(told).collect::<String>()
        };
        assert_eq!(
            told("due at 2026-12-01T09:00:00.000Z; until 2026-12-02T09:00:00.000Z."),
            "due at [2026-12-01 09:00:00 UTC]; until [2026-12-02 09:00:00 UTC]."
        );
        for plain in ["", "-", "é-", "2026-12-01T09:00", "x-ray é-é-é-é-é-é-é-é-é-é-é-é-é-é-éZ"]
        {
            assert_eq!(told(plain), plain);
        }
    }

    #[test]
    fn a_time_is_in_utc_until_the_script_knows_better() {
        let html = Moment::clock(Timestamp::from_ms(1_796_115_600_000)).render().unwrap();
        assert_eq!(
            html,
            r#"<time datetime="2026-12-01T09:00:00.000Z" title="2026-12-01 09:00:00.000 UTC" data-show="clock">2026-12-01 09:00:00 UTC</time>"#
        );
    }
}
