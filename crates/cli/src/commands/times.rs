//! How times look: how far away they are, or as they are.

use std::time::Duration;

use redeliver_core::Timestamp;
use redeliver_core::time::show_span;
use redeliver_engine::clock::{Clock, WallClock};

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;

/// How times are shown.
#[derive(Copy, Clone, Debug)]
pub(super) enum Times {
    /// As they are, in UTC.
    Exact,
    /// How far they are from this one.
    From(Timestamp),
}

impl Times {
    /// As the command line asks, and by the clock on the wall.
    pub(super) fn of(utc: bool) -> Self {
        if utc { Self::Exact } else { Self::From(now()) }
    }

    pub(super) fn show(self, at: Timestamp) -> String {
        let Self::From(now) = self else { return at.to_string() };
        let (later, earlier) = (round(at.since(now)), round(now.since(at)));
        match (later.is_zero(), earlier.is_zero()) {
            (false, _) => format!("in {}", show_span(later)),
            (_, false) => format!("{} ago", show_span(earlier)),
            (true, true) => "now".to_owned(),
        }
    }
}

/// The time of day.
pub(super) fn now() -> Timestamp {
    WallClock::new(Timestamp::default()).now()
}

/// No finer than it matters: seconds up to an hour, minutes up to a day, then hours.
fn round(span: Duration) -> Duration {
    let seconds = span.as_secs();
    let unit = match seconds {
        DAY_S.. => HOUR_S,
        HOUR_S.. => MINUTE_S,
        _ => 1,
    };
    Duration::from_secs(seconds / unit * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_as_far_away_as_it_matters() {
        let now = Timestamp::from_ms(1_700_000_000_000);
        let check = |ms: i64, words: &str| {
            let at = Timestamp::from_ms(now.as_ms() + ms);
            assert_eq!(Times::From(now).show(at), words, "{ms}");
        };
        check(0, "now");
        check(999, "now");
        check(29_500, "in 29s");
        check(-29_500, "29s ago");
        check(-3_725_000, "1h2m ago");
        check(90_061_000, "in 1d1h");
        assert_eq!(Times::Exact.show(now), "2023-11-14T22:13:20.000Z");
    }
}
