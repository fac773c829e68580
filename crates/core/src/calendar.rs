//! When something may go out: days, hours, zones and dates, worked out by civil dates and never by adding 24 hours.
//!
//! One rule covers gaps and folds: **the clock on the wall decides**. A window is open at an instant if a clock on a
//! wall in its zone shows a time inside it. What a gap leaves out is never shown, so a window that lies in it doesn't
//! open that day. What a fold shows twice is open twice.
//!
//! The time zones are those that are compiled in: data, which nothing here reads from the machine.

mod closed;
mod day;
mod span;
mod window;
mod zone;

use std::time::Duration;

use crate::time::Timestamp;

pub use closed::ClosedDates;
pub use day::{Day, Days, TimeOfDay, Weekday};
pub use span::Span;
pub use window::{Opening, Window};
pub use zone::{Zone, zone_names};

/// How far ahead an opening is looked for: after so many years every date has been every day of the week.
pub const HORIZON_DAYS: i32 = 28 * 366;

/// Where it is judged whether windows ever open together: any time will do, and a decision needs one.
const JUDGED_FROM: Timestamp = Timestamp::from_ms(1_735_689_600_000);

/// Windows that must all be open. There is at least one, and at some time they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Calendar {
    windows: Vec<Window>,
}

/// What is wrong with a calendar, in words for whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// A word that names no time zone, day, date or time of day.
    #[error("{0}")]
    Unknown(String),
    /// An interval without any time in it.
    #[error("an interval from {0} to {0} is empty; a whole day is 00:00 to 24:00")]
    Empty(TimeOfDay),
    /// Nothing could ever go out.
    #[error("the window never opens: {0}")]
    NeverOpens(String),
}

impl Calendar {
    /// The calendar of these windows; an error if there is no time at which all of them are open.
    pub fn new(windows: Vec<Window>) -> Result<Self, CalendarError> {
        let judged = Self { windows: windows.iter().map(Window::without_dates).collect() };
        if judged.windows.is_empty() {
            return Err(CalendarError::NeverOpens("it has no days and hours".to_owned()));
        }
        if judged.next_open(JUDGED_FROM).is_none() {
            let shown: Vec<String> = windows.iter().map(Window::to_string).collect();
            let why = match shown.as_slice() {
                [only] => format!("{only} has no time that isn't closed"),
                _ => format!("{} have no time in common", shown.join(", and ")),
            };
            return Err(CalendarError::NeverOpens(why));
        }
        Ok(Self { windows })
    }

    /// The calendar of this one and one more window: never open when this one isn't.
    pub fn narrowed_by(&self, window: Window) -> Result<Self, CalendarError> {
        let mut windows = self.windows.clone();
        windows.push(window);
        Self::new(windows)
    }

    /// The same days and hours where a recipient lives: every window as a clock on the wall there shows it.
    pub fn in_zone(&self, zone: &Zone) -> Result<Self, CalendarError> {
        Self::new(self.windows.iter().map(|window| window.in_zone(zone)).collect())
    }

    /// Its windows.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Whether every window is open at this time.
    pub fn is_open(&self, at: Timestamp) -> bool {
        self.windows.iter().all(|window| window.is_open(at))
    }

    /// The first open time that is not before `after`; none if there is none within [`HORIZON_DAYS`].
    pub fn next_open(&self, after: Timestamp) -> Option<Timestamp> {
        let limit = after.plus(Duration::from_secs(HORIZON_DAYS as u64 * 86_400));
        let mut at = after;
        loop {
            let mut agreed = at;
            for window in &self.windows {
                agreed = window.next_open(agreed, limit)?;
            }
            if agreed == at {
                return Some(at);
            }
            at = agreed;
        }
    }

    /// The open times from `from` until before `to`, in order, none touching the next.
    pub fn open_spans(&self, from: Timestamp, to: Timestamp) -> Vec<Span> {
        let all = vec![Span::new(from, to)];
        self.windows.iter().fold(all, |open, window| span::common(&open, &window.open_spans(from, to)))
    }

    /// How much open time lies between two times.
    pub fn open_time(&self, from: Timestamp, to: Timestamp) -> Duration {
        self.open_spans(from, to).into_iter().map(Span::length).sum()
    }

    /// The open times of one local day of a zone, which may be another than the windows' own.
    pub fn open_on(&self, day: Day, zone: &Zone) -> Vec<Span> {
        let of_day = zone.spans_of(day);
        let (Some(first), Some(last)) = (of_day.first(), of_day.last()) else { return Vec::new() };
        span::common(&of_day, &self.open_spans(first.from, last.to))
    }
}
