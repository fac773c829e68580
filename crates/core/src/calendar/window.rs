//! One window: on which days it opens, from when until when, in which zone, and on which dates it doesn't.

use std::fmt;
use std::time::Duration;

use super::CalendarError;
use super::closed::ClosedDates;
use super::day::{DAY_MS, Day, Days, TimeOfDay};
use super::span::{Span, joined};
use super::zone::Zone;
use crate::time::Timestamp;

/// A daily opening. One whose end is before its start lasts into the next day.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The days on which it begins.
    pub days: Days,
    /// When it begins.
    pub start: TimeOfDay,
    /// When it ends.
    pub end: TimeOfDay,
}

/// Openings in a zone, and the dates on which there are none.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    openings: Vec<Opening>,
    zone: Zone,
    closed: ClosedDates,
}

impl Opening {
    /// Whether it lasts into the next day.
    pub fn is_overnight(self) -> bool {
        self.end < self.start
    }

    /// How long it is on a day without a change of clocks.
    pub fn length(self) -> Duration {
        let next_day_ms = if self.is_overnight() { DAY_MS } else { 0 };
        Duration::from_millis((self.end.wall_ms() + next_day_ms - self.start.wall_ms()) as u64)
    }

    /// What is wrong with it.
    pub fn check(self) -> Result<(), CalendarError> {
        if self.start == self.end || self.start == TimeOfDay::END {
            return Err(CalendarError::Empty(self.start));
        }
        if self.days.is_empty() {
            return Err(CalendarError::NeverOpens(format!(
                "{} to {} has no day of the week",
                self.start, self.end
            )));
        }
        Ok(())
    }

    /// Its part on the day on which it begins, as a clock on the wall shows it after the day's beginning.
    fn first_part_ms(self) -> (i64, i64) {
        let end = if self.is_overnight() { TimeOfDay::END } else { self.end };
        (self.start.wall_ms(), end.wall_ms())
    }
}

impl Window {
    /// A window of these openings; an error if it could never open.
    pub fn new(openings: Vec<Opening>, zone: Zone, closed: ClosedDates) -> Result<Self, CalendarError> {
        if openings.is_empty() {
            return Err(CalendarError::NeverOpens("it has no hours".to_owned()));
        }
        openings.iter().try_for_each(|opening| opening.check())?;
        Ok(Self { openings, zone, closed })
    }

    /// Its zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Its openings.
    pub fn openings(&self) -> &[Opening] {
        &self.openings
    }

    /// The same in another zone.
    pub fn in_zone(&self, zone: &Zone) -> Self {
        Self { zone: zone.clone(), ..self.clone() }
    }

    /// The same without the dates that come once.
    pub(super) fn without_dates(&self) -> Self {
        Self { closed: self.closed.of_every_year(), ..self.clone() }
    }

    /// Whether it is open: whether a clock on the wall shows a time inside it.
    pub fn is_open(&self, at: Timestamp) -> bool {
        let wall_ms = self.zone.wall_ms(at);
        let day = Day::of_wall_ms(wall_ms);
        let time_ms = wall_ms - day.begins_ms();
        self.parts_on(day).any(|(from_ms, to_ms)| from_ms <= time_ms && time_ms < to_ms)
    }

    /// The first open time that is not before `after`; none if that would be at `limit` or later.
    pub(super) fn next_open(&self, after: Timestamp, limit: Timestamp) -> Option<Timestamp> {
        if self.is_open(after) {
            return Some(after);
        }
        let (first, last) = (self.zone.local_day(after).plus(-1), self.zone.local_day(limit).next());
        let mut day = first;
        while day <= last {
            if let Some(mut found) = self.first_on(day, after) {
                // A clock that is set back over midnight shows a day again after it has shown the next one.
                found = self.first_on(day.next(), after).map_or(found, |other| other.min(found));
                return (found < limit).then_some(found);
            }
            day = day.next();
        }
        None
    }

    /// The open times from `from` until before `to`.
    pub(super) fn open_spans(&self, from: Timestamp, to: Timestamp) -> Vec<Span> {
        let asked = Span::new(from, to);
        if asked.is_empty() {
            return Vec::new();
        }
        let (mut day, last) = (self.zone.local_day(from).plus(-1), self.zone.local_day(to).next());
        let mut spans = Vec::new();
        while day <= last {
            spans.extend(self.open_on(day).into_iter().filter_map(|span| span.common(asked)));
            day = day.next();
        }
        joined(spans)
    }

    fn first_on(&self, day: Day, after: Timestamp) -> Option<Timestamp> {
        self.open_on(day).into_iter().filter(|span| span.to > after).map(|span| span.from.max(after)).min()
    }

    /// The times of a day at which it is open.
    fn open_on(&self, day: Day) -> Vec<Span> {
        let begins_ms = day.begins_ms();
        let parts = self.parts_on(day);
        parts.flat_map(|(from, to)| self.zone.instants(begins_ms + from, begins_ms + to)).collect()
    }

    /// When it is open on a day, as a clock on the wall shows it after the day's beginning: what begins on that day,
    /// and what has lasted since the day before.
    fn parts_on(&self, day: Day) -> impl Iterator<Item = (i64, i64)> {
        let eve = day.plus(-1);
        let opens = |day: Day, opening: &Opening| opening.days.has(day.weekday());
        let is_shut = self.closed.has(day);
        let is_eve_shut = is_shut || self.closed.has(eve);
        self.openings.iter().flat_map(move |opening| {
            let own = (!is_shut && opens(day, opening)).then(|| opening.first_part_ms());
            let lasted = !is_eve_shut && opening.is_overnight() && opens(eve, opening);
            own.into_iter().chain(lasted.then(|| (0, opening.end.wall_ms())))
        })
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Opening { days, start, end }) in self.openings.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{days} {start} to {end}")?;
        }
        write!(f, " in {}", self.zone)?;
        if !self.closed.is_empty() { write!(f, " except on {}", self.closed) } else { Ok(()) }
    }
}
