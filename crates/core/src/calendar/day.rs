//! Civil days, days of the week and times of day: what people mean before any zone says when that is.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::CalendarError;

/// The length of a civil day in milliseconds of a clock on the wall.
pub(super) const DAY_MS: i64 = 86_400_000;
const MINUTE_MS: i64 = 60_000;

/// A date, counted in days since 1970-01-01. How long it lasts, and whether it is there at all, is its zone's affair.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i32);

/// A day of the week.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Weekday {
    /// Monday.
    Mon = 0,
    /// Tuesday.
    Tue = 1,
    /// Wednesday.
    Wed = 2,
    /// Thursday.
    Thu = 3,
    /// Friday.
    Fri = 4,
    /// Saturday.
    Sat = 5,
    /// Sunday.
    Sun = 6,
}

/// A set of days of the week.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Days(u8);

/// A time of day in whole minutes, from 00:00 to 24:00.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay(u16);

impl Day {
    /// The day of this date.
    pub fn of(year: i16, month: i8, day: i8) -> Option<Self> {
        Date::new(year, month, day).ok().map(Self::from_date)
    }

    /// The day that a clock on the wall shows this many milliseconds after it showed the beginning of 1970.
    pub(super) fn of_wall_ms(wall_ms: i64) -> Self {
        Self(wall_ms.div_euclid(DAY_MS) as i32)
    }

    /// What a clock on the wall shows when the day begins, in milliseconds since it showed the beginning of 1970.
    pub(super) fn begins_ms(self) -> i64 {
        i64::from(self.0) * DAY_MS
    }

    /// Days since 1970-01-01.
    pub const fn number(self) -> i64 {
        self.0 as i64
    }

    /// The day this many days after 1970-01-01.
    pub const fn from_number(days: i64) -> Self {
        Self(days as i32)
    }

    /// This many days later, or earlier.
    pub fn plus(self, days: i32) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// The day after it.
    pub fn next(self) -> Self {
        self.plus(1)
    }

    /// How many days after `earlier` it is; negative if it is before it.
    pub fn days_since(self, earlier: Self) -> i32 {
        self.0.saturating_sub(earlier.0)
    }

    /// Its day of the week.
    pub fn weekday(self) -> Weekday {
        // 1970 began on a Thursday.
        Weekday::ALL[(self.0.rem_euclid(7) as usize + Weekday::Thu as usize) % 7]
    }

    /// Its month and its day in the month.
    pub(super) fn month_and_day(self) -> Option<(i8, i8)> {
        self.date().map(|date| (date.month(), date.day()))
    }

    fn from_date(date: Date) -> Self {
        Self((date - EPOCH).get_days())
    }

    fn date(self) -> Option<Date> {
        EPOCH.checked_add(jiff::Span::new().try_days(self.0).ok()?).ok()
    }
}

const EPOCH: Date = Date::constant(1970, 1, 1);

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.date() {
            Some(date) => date.fmt(f),
            None => write!(f, "day {} after 1970-01-01", self.0),
        }
    }
}

impl FromStr for Day {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        let bad = || CalendarError::Unknown(format!("not a date such as 2026-12-25: {text:?}"));
        let is_plain = text.len() == 10 && text.bytes().all(|c| c.is_ascii_digit() || c == b'-');
        let date: Date = is_plain.then(|| text.parse().ok()).flatten().ok_or_else(bad)?;
        Ok(Self::from_date(date))
    }
}

impl Serialize for Day {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Weekday {
    /// The days of a week.
    pub const ALL: [Self; 7] = [Self::Mon, Self::Tue, Self::Wed, Self::Thu, Self::Fri, Self::Sat, Self::Sun];

    /// The day's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mon => "mon",
            Self::Tue => "tue",
            Self::Wed => "wed",
            Self::Thu => "thu",
            Self::Fri => "fri",
            Self::Sat => "sat",
            Self::Sun => "sun",
        }
    }

    /// The day with this word.
    pub fn from_name(name: &str) -> Result<Self, CalendarError> {
        Self::ALL.into_iter().find(|day| day.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let all = Self::ALL.map(Self::name).join(", ");
            CalendarError::Unknown(format!("a day of the week is one of {all}, not {name:?}"))
        })
    }
}

impl Days {
    /// Every day.
    pub const ALL: Self = Self(0b111_1111);

    /// Whether it has no day.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it has this day.
    pub fn has(self, day: Weekday) -> bool {
        self.0 & (1 << day as u8) != 0
    }
}

impl FromIterator<Weekday> for Days {
    fn from_iter<I: IntoIterator<Item = Weekday>>(days: I) -> Self {
        Self(days.into_iter().fold(0, |set, day| set | 1 << day as u8))
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("every day");
        }
        let names: Vec<&str> =
            Weekday::ALL.into_iter().filter(|day| self.has(*day)).map(Weekday::name).collect();
        f.write_str(&names.join(" "))
    }
}

impl TimeOfDay {
    /// When a day begins.
    pub const BEGIN: Self = Self(0);
    /// When a day ends.
    pub const END: Self = Self(24 * 60);

    /// The time this many minutes after 00:00; none after 24:00.
    pub fn from_minutes(minutes: u16) -> Option<Self> {
        (minutes <= Self::END.0).then_some(Self(minutes))
    }

    /// In milliseconds since 00:00, as a clock on the wall shows it.
    pub(super) fn wall_ms(self) -> i64 {
        i64::from(self.0) * MINUTE_MS
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl FromStr for TimeOfDay {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        let number = |part: &str| {
            let is_plain = (1..=2).contains(&part.len()) && part.bytes().all(|c| c.is_ascii_digit());
            is_plain.then(|| part.parse::<u16>().ok()).flatten()
        };
        let read = || {
            let (hours, minutes) = text.split_once(':').filter(|(_, minutes)| minutes.len() == 2)?;
            let minutes = number(minutes).filter(|minutes| *minutes < 60)?;
            Self::from_minutes(number(hours)? * 60 + minutes)
        };
        read().ok_or_else(|| CalendarError::Unknown(format!("not a time of day such as 09:00: {text:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_written_and_read_and_know_their_weekday() {
        for (text, weekday) in [
            ("1970-01-01", Weekday::Thu),
            ("1969-12-31", Weekday::Wed),
            ("2026-11-16", Weekday::Mon),
            ("2024-02-29", Weekday::Thu),
            ("2011-12-30", Weekday::Fri),
        ] {
            let day: Day = text.parse().unwrap();
            assert_eq!((day.to_string().as_str(), day.weekday()), (text, weekday));
        }
        for text in ["", "2026-13-01", "2023-02-29", "2026-1-1", "tomorrow", "20261201", "2026-12-01T00:00"] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
    }

    #[test]
    fn times_of_day_are_written_and_read() {
        for (text, shown) in [("09:00", "09:00"), ("9:30", "09:30"), ("00:00", "00:00"), ("24:00", "24:00")] {
            assert_eq!(text.parse::<TimeOfDay>().unwrap().to_string(), shown);
        }
        for text in ["", "9", "24:01", "25:00", "09:60", "9:5", "09:00:00", "-1:00", "+9:00", "٩:٠٠"] {
            assert!(text.parse::<TimeOfDay>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_set_of_days_has_its_days() {
        let days: Days = [Weekday::Mon, Weekday::Sun].into_iter().collect();
        assert!(days.has(Weekday::Mon) && days.has(Weekday::Sun) && !days.has(Weekday::Tue));
        assert_eq!((days.to_string().as_str(), Days::ALL.to_string().as_str()), ("mon sun", "every day"));
        assert!(Days::default().is_empty());
        assert_eq!(Weekday::from_name("Fri"), Ok(Weekday::Fri));
        assert!(Weekday::from_name("friday").is_err());
    }
}
