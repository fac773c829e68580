//! Every time zone there is, around every change of its clocks from 1990 to 2037, held against a reference that is
//! plainly right: what a clock on the wall shows, minute by minute.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use redeliver_core::Timestamp;
use redeliver_core::calendar::{
    Calendar, ClosedDates, Day, Days, Opening, TimeOfDay, Weekday, Window, Zone, zone_names,
};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
/// How far from a change the clocks are watched.
const AROUND: Duration = Duration::from_secs(36 * 3_600);

/// A window as the reference knows it: nothing but numbers.
#[derive(Debug)]
struct Rules {
    /// Which days (Monday first), from which minute, until which.
    openings: Vec<([bool; 7], u16, u16)>,
    closed: Vec<Date>,
    zone: TimeZone,
}

impl Rules {
    /// Whether a clock on the wall shows a time inside the window.
    fn is_open(&self, at: Timestamp) -> bool {
        let shown = self.zone.to_datetime(jiff::Timestamp::from_millisecond(at.as_ms()).unwrap());
        let (today, minute) = (shown.date(), minute_of(shown));
        let yesterday = today.yesterday().unwrap();
        let on = |days: &[bool; 7], date: Date| {
            days[date.weekday().to_monday_zero_offset() as usize] && !self.closed.contains(&date)
        };
        !self.closed.contains(&today)
            && self.openings.iter().any(|(days, start, end)| match start < end {
                true => on(days, today) && (*start..*end).contains(&minute),
                false => (on(days, today) && minute >= *start) || (on(days, yesterday) && minute < *end),
            })
    }

    fn calendar(&self) -> Calendar {
        let opening = |(days, start, end): &([bool; 7], u16, u16)| Opening {
            days: Weekday::ALL.into_iter().filter(|day| days[*day as usize]).collect::<Days>(),
            start: TimeOfDay::from_minutes(*start).unwrap(),
            end: TimeOfDay::from_minutes(*end).unwrap(),
        };
        let zone: Zone = self.zone.iana_name().unwrap().parse().unwrap();
        let closed: Vec<String> = self.closed.iter().map(Date::to_string).collect();
        let closed = ClosedDates::parse(closed.iter().map(String::as_str)).unwrap();
        let window = Window::new(self.openings.iter().map(opening).collect(), zone, closed).unwrap();
        Calendar::new(vec![window]).unwrap()
    }
}

fn minute_of(shown: DateTime) -> u16 {
    shown.hour() as u16 * 60 + shown.minute() as u16
}

/// Numbers that are the same in every run.
struct Draw(u64);

impl Draw {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    /// A window that has its edges near what the clocks show when they change, more often than not.
    fn rules(&mut self, zone: &TimeZone, change: Timestamp) -> Rules {
        let shown = zone.to_datetime(jiff::Timestamp::from_millisecond(change.as_ms()).unwrap());
        let count = 1 + self.next(3);
        let openings = (0..count).map(|_| self.opening(minute_of(shown))).collect();
        let closed = match self.next(3) {
            0 => vec![shown.date()],
            1 => vec![shown.date().yesterday().unwrap(), shown.date().tomorrow().unwrap()],
            _ => Vec::new(),
        };
        Rules { openings, closed, zone: zone.clone() }
    }

    fn opening(&mut self, near: u16) -> ([bool; 7], u16, u16) {
        let minute = |draw: &mut Self| match draw.next(3) {
            0 => draw.next(1_440) as u16,
            1 => (near + 1_380 + draw.next(120) as u16) % 1_440,
            _ => draw.next(24) as u16 * 60,
        };
        let (start, mut end) = (minute(self), minute(self));
        if end == 0 || end == start {
            end = 1_440;
        }
        let mut days = [true; 7];
        if self.next(2) == 0 {
            days = std::array::from_fn(|_| self.next(3) > 0);
            days[self.next(7) as usize] = true;
        }
        (days, start, end)
    }
}

/// Does something with every change of every zone's clocks from 1990 to 2037; says how many there are.
fn every_change(mut visit: impl FnMut(&TimeZone, Timestamp, &mut Draw)) -> usize {
    let (from, to): (Timestamp, Timestamp) =
        ("1990-01-01T00:00:00Z".parse().unwrap(), "2038-01-01T00:00:00Z".parse().unwrap());
    let mut count = 0;
    for (i, name) in zone_names().iter().enumerate() {
        let Ok(zone) = name.parse::<Zone>() else {
            assert_eq!(name, "Etc/Unknown");
            continue;
        };
        let plain = TimeZone::get(name).unwrap();
        // Some zones never change: they are looked at once all the same.
        for change in zone.transitions(from, to).chain([from]) {
            count += 1;
            visit(&plain, change, &mut Draw(change.as_ms() as u64 ^ (i as u64) << 48));
        }
    }
    count
}

#[test]
fn in_every_zone_and_at_every_change_a_window_opens_when_the_clock_on_the_wall_says_so() {
    let count = every_change(|zone, change, draw| {
        let rules = draw.rules(zone, change);
        let calendar = rules.calendar();
        let mut after = change.minus(AROUND);
        let mut last = after;
        while after < change.plus(AROUND) {
            let told = || format!("{rules:?} after {after}, around {change}");
            let open = calendar.next_open(after).unwrap_or_else(|| panic!("{}", told()));
            assert!(open >= after, "early: {}", told());
            assert!(open >= last, "not monotone: {}", told());
            assert!(rules.is_open(open), "{open} is outside: {}", told());
            let is_first = open == after || !rules.is_open(open.minus(Duration::from_millis(1)));
            assert!(is_first, "{open} is late: {}", told());
            assert_eq!(calendar.next_open(open), Some(open), "asked again: {}", told());
            last = open;
            after = after.plus(MINUTE * (1 + draw.next(480) as u32));
        }
    });
    assert!(count > 20_000, "only {count} changes");
}

#[test]
fn around_changes_of_clocks_every_minute_is_as_the_walk_finds_it() {
    let mut walked = 0;
    every_change(|zone, change, draw| {
        if draw.next(4) > 0 {
            return;
        }
        walked += 1;
        let rules = draw.rules(zone, change);
        let calendar = rules.calendar();
        let (from, to) = (change.minus(AROUND), change.plus(AROUND));
        let mut next_open = calendar.next_open(to).unwrap();
        let mut open_minutes = 0;
        let mut at = to;
        // Backwards, so that the next opening is always known.
        while at > from {
            at = at.minus(MINUTE);
            let is_open = rules.is_open(at);
            if is_open {
                next_open = at;
                open_minutes += 1;
            }
            assert_eq!(calendar.is_open(at), is_open, "{rules:?} at {at}");
            if draw.next(64) == 0 {
                assert_eq!(calendar.next_open(at), Some(next_open), "{rules:?} after {at}");
            }
        }
        assert_eq!(calendar.open_time(from, to), MINUTE * open_minutes, "{rules:?} from {from} to {to}");
        let spans = calendar.open_spans(from, to);
        assert!(spans.windows(2).all(|pair| pair[0].to < pair[1].from), "{spans:?}");
    });
    assert!(walked > 4_000, "only {walked}");
}

#[test]
fn the_days_of_a_zone_share_out_all_of_its_time() {
    every_change(|zone, change, _| {
        let ours: Zone = zone.iana_name().unwrap().parse().unwrap();
        let whole = Opening { days: Days::ALL, start: TimeOfDay::BEGIN, end: TimeOfDay::END };
        let always =
            Calendar::new(vec![Window::new(vec![whole], ours.clone(), ClosedDates::default()).unwrap()])
                .unwrap();
        let day = ours.local_day(change);
        let days: Vec<Day> = (-2..=2).map(|n| day.plus(n)).collect();
        let mut total = Duration::ZERO;
        for day in &days {
            for span in always.open_on(*day, &ours) {
                assert_eq!((ours.local_day(span.from), ours.local_day(span.to.minus(MINUTE))), (*day, *day));
                total += span.length();
            }
        }
        let (from, to) = (ours.day_start(days[0]), ours.day_start(day.plus(3)));
        assert_eq!(total, to.since(from), "{ours:?} around {change}");
        assert!(total > HOUR * 24 * 3 && total < HOUR * 24 * 6);
    });
}
