//! Dates on which nothing goes out: holidays, and times off.

use std::collections::BTreeSet;
use std::fmt;

use super::CalendarError;
use super::day::Day;

/// Dates on which nothing goes out.
///
/// A closed date closes whatever would open on it, until its end on the next morning, and whatever would last into it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ClosedDates {
    /// From the first to the last of each, both closed; sorted.
    ranges: Vec<(Day, Day)>,
    /// Months and days that are closed every year.
    yearly: BTreeSet<(i8, i8)>,
}

impl ClosedDates {
    /// Reads dates: `2026-12-25`, a range such as `2026-12-24..2027-01-01`, or a date of every year such as `12-25`.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, CalendarError> {
        let mut closed = Self::default();
        for text in texts {
            closed.add(text)?;
        }
        closed.ranges.sort();
        Ok(closed)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.yearly.is_empty()
    }

    /// Whether this day is closed.
    pub fn has(&self, day: Day) -> bool {
        let begun = self.ranges.partition_point(|(first, _)| *first <= day);
        self.ranges[..begun].iter().any(|(_, last)| day <= *last)
            || (!self.yearly.is_empty()
                && day.month_and_day().is_some_and(|date| self.yearly.contains(&date)))
    }

    /// Those of every year alone.
    pub(super) fn of_every_year(&self) -> Self {
        Self { ranges: Vec::new(), yearly: self.yearly.clone() }
    }

    fn add(&mut self, text: &str) -> Result<(), CalendarError> {
        let text = text.trim();
        if let Some((first, last)) = text.split_once("..") {
            let (first, last): (Day, Day) = (first.trim().parse()?, last.trim().parse()?);
            if last < first {
                return Err(CalendarError::Unknown(format!("{text}: the last date is before the first")));
            }
            self.ranges.push((first, last));
        } else if text.len() == 5 {
            // Every date of a year is one of a leap year.
            let day: Day = format!("2024-{text}").parse().map_err(|_| {
                CalendarError::Unknown(format!("not a date of every year such as 12-25: {text:?}"))
            })?;
            self.yearly.extend(day.month_and_day());
        } else {
            let day: Day = text.parse()?;
            self.ranges.push((day, day));
        }
        Ok(())
    }
}

impl fmt::Display for ClosedDates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dated = self.ranges.iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}..{last}"),
        });
        let yearly = self.yearly.iter().map(|(month, day)| format!("{month:02}-{day:02}"));
        f.write_str(&dated.chain(yearly).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_dates_ranges_and_dates_of_every_year_are_closed() {
        let closed =
            ClosedDates::parse(["2026-12-28", "2026-12-24..2026-12-26", "01-01", "2026-12-20..2027-02-01"])
                .unwrap();
        let closed_on = |text: &str| closed.has(text.parse().unwrap());
        for text in ["2026-12-20", "2026-12-25", "2026-12-28", "2027-01-15", "2027-02-01", "2031-01-01"] {
            assert!(closed_on(text), "{text}");
        }
        for text in ["2026-12-19", "2027-02-02", "2031-01-02"] {
            assert!(!closed_on(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_said_to_be_none() {
        for text in ["", "christmas", "2026-12-26..2026-12-24", "13-01", "02-30", "2026-12-24.."] {
            assert!(ClosedDates::parse([text]).is_err(), "{text}");
        }
        assert!(ClosedDates::parse(["02-29"]).unwrap().has("2028-02-29".parse().unwrap()));
    }
}
