//! Reads which messages somebody wants, from what stands behind the question mark.

use std::time::Duration;

use redeliver_core::status::Status;
use redeliver_core::time::parse_span;
use redeliver_core::{Lane, Timestamp};
use redeliver_engine::search::Search;
use redeliver_engine::store::{Filter, StatusAt};

use crate::auth::Caller;
use crate::input::{Params, query};

/// What whoever asks wants. `None` if it is about what they may not know of.
pub fn read(params: &mut Params, caller: &Caller, now: Timestamp) -> Option<Search> {
    let status =
        params.get("status", |word| query::word(word, Status::from_name, &Status::ALL.map(Status::name)));
    let lane = |word: &str| query::word(word, Lane::from_name, &Lane::ALL.map(Lane::name));
    let asked = params.text("workspace");
    let may = asked.as_deref().is_none_or(|asked| caller.reaches(asked));
    let search = Search {
        filter: Filter {
            workspace: asked.map(Into::into).or_else(|| caller.workspace.clone()),
            route: params.text("route").map(Into::into),
            lane: params.get("priority", lane).or(params.get("lane", lane)),
            status: status.map(|status| StatusAt { status, now }),
            key: params.text("key").map(Into::into),
            with_dismissed: params.get("with_dismissed", query::flag).unwrap_or_default(),
            ..Filter::default()
        },
        since: params.get("since", |text| time(text, now)),
        before: params.get("before", |text| time(text, now)),
        recipient: params.get("recipient", words),
        error: params.get("error", words),
        fingerprint: params.text("fingerprint"),
        with_timeless: false,
    };
    may.then_some(search)
}

/// A time as it is written, or how long ago it was.
pub(crate) fn time(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let bad =
        || format!("is a time such as 2026-12-01T09:00:00Z, or how long ago, such as 24h; not {text:?}");
    // A bare 0 is a span elsewhere. Here it might as well be a time.
    if text == "0" {
        return Err(bad());
    }
    let ago = |span: Duration| now.minus(span);
    let said = text.parse().or_else(|_| parse_span(text).map(ago));
    said.ok().or_else(|| in_utc(text)).ok_or_else(bad)
}

/// A day or a time of day without a zone, as people write it: in UTC.
fn in_utc(text: &str) -> Option<Timestamp> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"-: T.".contains(&byte));
    let written: jiff::civil::DateTime = text.trim().parse().ok().filter(|_| is_plain)?;
    let at = written.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(Timestamp::from_ms(at.timestamp().as_millisecond()))
}

fn words(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("is empty".to_owned()),
        text => Ok(text.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_with_a_zone_without_one_or_as_how_long_ago() {
        let now = Timestamp::from_ms(1_796_115_600_000);
        let check = |text: &str, ms: Option<i64>| {
            assert_eq!(time(text, now).ok(), ms.map(Timestamp::from_ms), "{text}");
        };
        check("2026-12-01T09:00:00Z", Some(now.as_ms()));
        check("2026-12-01T10:00:00+01:00", Some(now.as_ms()));
        check("2026-12-01 09:00", Some(now.as_ms()));
        check("2026-12-01T09:00", Some(now.as_ms()));
        check("2026-12-01", Some(now.as_ms() - 9 * 3_600_000));
        check("1h", Some(now.as_ms() - 3_600_000));
        for wrong in ["", "0", "x", "2026-12-01 09:00[Europe/Paris]", "2026-13-01", "9:00"] {
            check(wrong, None);
        }
    }
}
