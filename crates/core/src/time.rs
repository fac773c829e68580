//! Points in time and lengths of time: the only two kinds of time there are here.
//!
//! Nothing in this file reads a clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since 1970 in UTC.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The latest time that can be written down (9999-12-30).
    pub const MAX: Self = Self(253_402_207_200_000);

    /// Where nobody has written down when something was, as of rows of applications' tables.
    pub const UNKNOWN: Self = Self(0);

    /// The time, if anybody knows it.
    pub fn known(self) -> Option<Self> {
        (self != Self::UNKNOWN).then_some(self)
    }

    /// The time this many milliseconds after 1970 began.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970 began.
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// This time and a while later, never past [`Timestamp::MAX`].
    pub fn plus(self, span: Duration) -> Self {
        let ms = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(ms)).min(Self::MAX)
    }

    /// This time and a while earlier.
    pub fn minus(self, span: Duration) -> Self {
        let ms = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(ms))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        let at: jiff::Timestamp = text
            .parse()
            .map_err(|_| BadTime(format!("not a time such as 2026-12-01T09:00:00Z: {text:?}")))?;
        Ok(Self(at.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A text that names no time or span.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct BadTime(String);

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads a span such as `90s`, `1h30m`, `500ms` or `7d`.
pub fn parse_span(text: &str) -> Result<Duration, BadTime> {
    let bad = || BadTime(format!("not a span such as 500ms, 30s, 1h30m or 7d: {text:?}"));
    let mut rest = text.trim();
    let mut total_ms: u64 = 0;
    if rest.is_empty() {
        return Err(bad());
    }
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let count: u64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit_ms = UNITS.iter().find(|(name, _)| *name == &rest[..letters]).ok_or_else(bad)?.1;
        rest = &rest[letters..];
        total_ms = count.checked_mul(unit_ms).and_then(|ms| total_ms.checked_add(ms)).ok_or_else(bad)?;
    }
    Ok(Duration::from_millis(total_ms))
}

/// Writes a span so that [`parse_span`] reads the same one back.
pub fn show_span(span: Duration) -> String {
    let mut left_ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    if left_ms == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (name, unit_ms) in UNITS {
        let count = left_ms / unit_ms;
        left_ms %= unit_ms;
        if count > 0 {
            text.push_str(&format!("{count}{name}"));
        }
    }
    text
}

/// The units in which people are told how long something takes, the largest first.
const TOLD: [(&str, u64); 4] = [("days", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];

/// A span as people are told it, in one unit or two: `12 ms`, `1.5 s`, `30 s`, `1 h 30 min`, `29 min`, `3 days`. What is small
/// beside the first unit is left out.
pub fn tell_span(span: Duration) -> String {
    let (seconds, ms) = (span.as_secs(), span.subsec_millis());
    match (seconds, ms) {
        (0, ms) => return format!("{ms} ms"),
        (1..10, 100..) => return format!("{seconds}.{} s", ms / 100),
        _ => {}
    }
    let first = TOLD.iter().position(|(_, unit)| seconds >= *unit).unwrap_or(TOLD.len() - 1);
    let (name, unit) = TOLD[first];
    let count = seconds / unit;
    let name = if (name, count) == ("days", 1) { "day" } else { name };
    match TOLD.get(first + 1).map(|(name, unit_next)| (name, seconds % unit / unit_next)) {
        Some((next, rest)) if rest > 0 && count < 10 => format!("{count} {name} {rest} {next}"),
        _ => format!("{count} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_are_told_in_one_unit_or_two() {
        for (text, told) in [
            ("0", "0 ms"),
            ("12ms", "12 ms"),
            ("1500ms", "1.5 s"),
            ("2040ms", "2 s"),
            ("30s", "30 s"),
            ("90s", "1 min 30 s"),
            ("29m56s", "29 min"),
            ("1h", "1 h"),
            ("1h30m12s", "1 h 30 min"),
            ("2h59s", "2 h"),
            ("25h", "1 day 1 h"),
            ("7d", "7 days"),
            ("30d12h", "30 days"),
        ] {
            assert_eq!(tell_span(parse_span(text).unwrap()), told, "{text}");
        }
    }

    #[test]
    fn spans_are_read() {
        let check =
            |text: &str, ms: u64| assert_eq!(parse_span(text), Ok(Duration::from_millis(ms)), "{text}");
        check("500ms", 500);
        check("30s", 30_000);
        check("1h30m", 5_400_000);
        check("7d", 604_800_000);
        check("0", 0);
        check(" 2s ", 2_000);
    }

    #[test]
    fn what_is_no_span_is_said_to_be_none() {
        for text in
            ["", "5", "s", "-1s", "1.5s", "1 s", "1y", "99999999999999999999s", "18446744073709551615d"]
        {
            assert!(parse_span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_written_and_read_in_utc() {
        let at = Timestamp::from_ms(1_796_115_600_000);
        assert_eq!(at.to_string(), "2026-12-01T09:00:00.000Z");
        assert_eq!("2026-12-01T10:00:00+01:00".parse(), Ok(at));
        assert!("yesterday".parse::<Timestamp>().is_err());
    }

    #[test]
    fn arithmetic_never_overflows() {
        assert_eq!(Timestamp::from_ms(5).plus(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_ms(5).since(Timestamp::from_ms(9)), Duration::ZERO);
        assert_eq!(Timestamp::from_ms(9).since(Timestamp::from_ms(5)), Duration::from_millis(4));
    }

    proptest! {
        #[test]
        fn a_span_survives_being_written_and_read(ms in 0u64..10_000_000_000) {
            let span = Duration::from_millis(ms);
            prop_assert_eq!(parse_span(&show_span(span)), Ok(span));
        }
    }
}
