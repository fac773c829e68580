//! A time zone: what a clock on the wall there shows at an instant, and at which instants it shows a time.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::CalendarError;
use super::day::Day;
use super::span::{Span, joined};
use crate::time::Timestamp;

/// The zones that are compiled in, whatever the machine has.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// No clock on a wall is further from UTC than this.
const OFFSET_MS_MAX: i64 = 26 * 3_600_000;

/// The first and the last time whose offsets are asked for.
const ASKED_MS: (i64, i64) = (-62_135_596_800_000, Timestamp::MAX.as_ms());

/// A time zone by its IANA name.
#[derive(Clone)]
pub struct Zone(TimeZone);

/// The names of all zones that there are.
pub fn zone_names() -> Vec<String> {
    ZONES.available().map(|name| name.as_str().to_owned()).collect()
}

impl Zone {
    /// Coordinated Universal Time.
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// The day that it is there at this time.
    pub fn local_day(&self, at: Timestamp) -> Day {
        Day::of_wall_ms(self.wall_ms(at))
    }

    /// From when on it is this day or a later one, for good: not while a clock that is set back over midnight still has to
    /// show the day before again.
    pub fn day_start(&self, day: Day) -> Timestamp {
        let eve_ends = self.spans_of(day.plus(-1)).last().map(|span| span.to);
        // Nowhere were two days left out in a row.
        let start = eve_ends.or_else(|| self.spans_of(day).first().map(|span| span.from));
        start.unwrap_or(Timestamp::from_ms(day.begins_ms()))
    }

    /// The time that a day is: one stretch, or two where a clock was set back over midnight, or none.
    pub fn spans_of(&self, day: Day) -> Vec<Span> {
        self.instants(day.begins_ms(), day.next().begins_ms())
    }

    /// What a clock on the wall shows at this time, in milliseconds since it showed the beginning of 1970.
    pub(super) fn wall_ms(&self, at: Timestamp) -> i64 {
        at.as_ms() + self.offset_ms(at.as_ms())
    }

    /// The times at which a clock on the wall shows something from `from_ms` until before `to_ms`.
    pub(super) fn instants(&self, from_ms: i64, to_ms: i64) -> Vec<Span> {
        let at = Timestamp::from_ms;
        let (first_ms, last_ms) = (from_ms - OFFSET_MS_MAX, to_ms + OFFSET_MS_MAX);
        let mut spans = Vec::with_capacity(1);
        let mut piece_from_ms = first_ms;
        let mut offset_ms = self.offset_ms(first_ms);
        let mut add = |piece: Span, offset_ms: i64| {
            spans.extend(Span::new(at(from_ms - offset_ms), at(to_ms - offset_ms)).common(piece));
        };
        for transition in self.0.following(jiff_time(first_ms)) {
            let ms = transition.timestamp().as_millisecond();
            if ms >= last_ms {
                break;
            }
            add(Span::new(at(piece_from_ms), at(ms)), offset_ms);
            (piece_from_ms, offset_ms) = (ms, i64::from(transition.offset().seconds()) * 1_000);
        }
        add(Span::new(at(piece_from_ms), at(last_ms)), offset_ms);
        joined(spans)
    }

    /// The transitions of this zone between two times.
    pub fn transitions(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Timestamp> {
        let all = self.0.following(jiff_time(from.as_ms()));
        all.map(|found| Timestamp::from_ms(found.timestamp().as_millisecond())).take_while(move |at| *at < to)
    }

    fn offset_ms(&self, ms: i64) -> i64 {
        i64::from(self.0.to_offset(jiff_time(ms)).seconds()) * 1_000
    }
}

/// The time as the zones know it; times outside of theirs are the nearest they have.
fn jiff_time(ms: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(ms.clamp(ASKED_MS.0, ASKED_MS.1)).unwrap_or_default()
}

impl FromStr for Zone {
    type Err = CalendarError;

    fn from_str(name: &str) -> Result<Self, CalendarError> {
        let unknown = || {
            CalendarError::Unknown(format!(
                "there is no time zone {name:?}; one is named as in Europe/Paris or UTC"
            ))
        };
        let zone = ZONES.get(name).map_err(|_| unknown())?;
        if zone.is_unknown() { Err(unknown()) } else { Ok(Self(zone)) }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name())
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}
