//! How fast, and how many at once, the fleet may send to a destination.
//!
//! A rate is a timeline of slots, one send each, that the store gives out. A slot is open for a moment only and is
//! lost if nobody uses it, so no window of a second or more ever has more starts than the rate allows. A concurrency
//! limit is a number of permits; each instance holds some of them.

pub mod share;

use std::time::Duration;

use crate::time::Timestamp;

/// How long after the beginning of its slot a send may start, by the clock of its instance.
pub const OPEN_FOR: Duration = Duration::from_millis(80);
/// How far ahead a send may reserve its slot.
pub const RESERVE_AHEAD: Duration = Duration::from_secs(2);
/// How far ahead slots must be free before more messages are claimed or released for them.
pub const CLAIM_AHEAD: Duration = Duration::from_millis(500);
/// How long an instance counts as one that wants more permits after it last asked for them.
const WANTS_FOR: Duration = Duration::from_secs(1);
/// What a window of one second loses to starts that are late: [`OPEN_FOR`], and what the clocks of two instances may
/// differ by.
const LATE_US_MAX: i64 = 100_000;
/// How much further ahead than it should be a timeline may look to an instance whose clock is behind, or whose question
/// was under way for long. Anything more means that the clock was set back.
const SKEW_US_MAX: i64 = 600_000_000;
const SECOND_US: f64 = 1_000_000.0;

/// At most this many sends a second.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Rate {
    /// Sends a second.
    pub per_s: f64,
}

impl Rate {
    /// Reads `50/s`, `90/m` or `1000/h`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("not a rate such as 50/s, 90/m or 1000/h: {text:?}");
        let (count, unit) = text.trim().split_once('/').ok_or_else(bad)?;
        let count: f64 = count.trim().parse().map_err(|_| bad())?;
        let seconds = match unit.trim() {
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            _ => return Err(bad()),
        };
        if !(count.is_finite() && count > 0.0) {
            return Err(bad());
        }
        Ok(Self { per_s: count / seconds })
    }

    /// Microseconds from one slot to the next.
    ///
    /// A start can be late by up to `LATE_US_MAX`, so the starts of a window come from slots of a span that is longer by
    /// that much. The gap makes up for it: in a second from one per second on, between two sends below that.
    pub fn gap_us(self) -> i64 {
        let late_us = LATE_US_MAX as f64;
        let gap_us = if self.per_s >= 1.0 {
            (SECOND_US + late_us) / self.per_s
        } else {
            SECOND_US / self.per_s + late_us
        };
        (gap_us.ceil() as i64).max(1)
    }
}

/// The limits of a route's sends to each destination.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Microseconds from one send to the next, if the rate is limited.
    pub gap_us: Option<i64>,
    /// Sends under way at once, if they are limited.
    pub at_once_max: Option<usize>,
}

/// The slots of a destination that are taken, as the store keeps them. A new destination has the default.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Where the first free slot begins, in microseconds since 1970.
    pub free_at_us: i64,
    /// The length of the last slot before that.
    pub gap_us: i64,
}

/// What one instance asks of a destination's limits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The limits.
    pub limits: Limits,
    /// The time. No slot begins before it.
    pub now: Timestamp,
    /// Sends of this instance that are under way.
    pub in_use: usize,
    /// Sends that it wants to start besides. With none, it gives back the permits that it doesn't use.
    pub sends: usize,
    /// Whether messages wait for permits that it could send, besides these.
    pub has_backlog: bool,
}

impl Ask {
    /// Until when an instance that was given this counts as one that wants more permits. Others hold no more than their
    /// fair part meanwhile.
    pub fn wants_until(&self, grant: &Grant) -> Timestamp {
        let wants = self.has_backlog || self.in_use + self.sends > grant.held;
        if wants { self.now.plus(WANTS_FOR) } else { Timestamp::default() }
    }
}

/// What the other instances have of a destination's permits, those that are dead left out.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Permits that they hold.
    pub held: usize,
    /// Instances that hold some, or want some.
    pub sharing: usize,
    /// Instances that want more than they hold.
    pub wanting: usize,
}

impl Others {
    /// The most that one more instance should hold: its part, rounded up, if any of the others wants more.
    fn fair(&self, max: usize) -> Option<usize> {
        (self.wanting > 0).then(|| max.div_ceil(self.sharing + 1))
    }
}

/// What an instance is given of a destination's limits.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Where the first of its slots begins, in microseconds since 1970.
    pub first_us: i64,
    /// How many slots it has, one after another. None where the rate isn't limited.
    pub slots: usize,
    /// Where the first slot begins that is still free.
    pub free_at_us: i64,
    /// Permits that this instance has now. None where the number of sends at once isn't limited.
    pub held: usize,
    /// Permits that nobody has and that it may have.
    pub free: usize,
    /// The most that it should hold, because others want some too. None if it may hold all.
    pub fair: Option<usize>,
}

impl Timeline {
    /// Gives an instance what it asked for, as far as there is any and the others leave it.
    pub fn grant(&mut self, ask: &Ask, others: Others) -> Grant {
        let mut grant = Grant::default();
        let mut sends = ask.sends;
        if let Some(max) = ask.limits.at_once_max {
            grant.fair = others.fair(max);
            let left = max.saturating_sub(others.held).min(grant.fair.unwrap_or(max));
            grant.held = (ask.in_use + ask.sends).min(left).max(ask.in_use);
            grant.free = left.saturating_sub(grant.held);
            // A slot without a permit would be lost.
            sends = sends.min(grant.held - ask.in_use);
        }
        if let Some(gap_us) = ask.limits.gap_us {
            (grant.first_us, grant.slots) = self.reserve(ask.now, gap_us, sends);
        }
        grant.free_at_us = self.free_at_us;
        grant
    }

    /// Takes up to `count` slots, as many as begin soon: where the first one begins, and how many.
    fn reserve(&mut self, now: Timestamp, gap_us: i64, count: usize) -> (i64, usize) {
        let now_us = us(now);
        let ahead_us = span_us(RESERVE_AHEAD);
        if self.free_at_us > now_us + ahead_us + self.gap_us + SKEW_US_MAX {
            *self = Self::default();
        }
        let first_us = self.free_at_us.max(now_us);
        let count = count.min(slots_within(first_us, now_us + ahead_us, gap_us));
        if count > 0 {
            let taken_us = gap_us.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX));
            *self = Self { free_at_us: first_us.saturating_add(taken_us), gap_us };
        }
        (first_us, count)
    }

    /// Whether forgetting it changes nothing at this time.
    pub fn is_past(&self, now: Timestamp) -> bool {
        self.free_at_us <= us(now)
    }
}

/// Slots that begin at `first_us`, `first_us + gap_us` and so on, before `end_us`.
fn slots_within(first_us: i64, end_us: i64, gap_us: i64) -> usize {
    let span_us = end_us.saturating_sub(first_us).max(0);
    usize::try_from(span_us.div_euclid(gap_us) + i64::from(span_us % gap_us != 0)).unwrap_or(usize::MAX)
}

fn us(at: Timestamp) -> i64 {
    at.as_ms().saturating_mul(1_000)
}

fn span_us(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALONE: Others = Others { held: 0, sharing: 0, wanting: 0 };

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    fn asks(per_s: f64, now_ms: i64, sends: usize) -> Ask {
        let limits = Limits { gap_us: Some(Rate { per_s }.gap_us()), at_once_max: None };
        Ask { limits, now: at(now_ms), in_use: 0, sends, has_backlog: false }
    }

    #[test]
    fn rates_are_read() {
        assert_eq!(Rate::parse("50/s"), Ok(Rate { per_s: 50.0 }));
        assert_eq!(Rate::parse("90/m"), Ok(Rate { per_s: 1.5 }));
        for text in ["", "50", "0/s", "-1/s", "inf/s", "5/d", "x/s"] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn gaps_leave_room_for_late_starts() {
        for (per_s, gap_us) in [(1.0, 1_100_000), (2.0, 550_000), (1_000.0, 1_100), (0.1, 10_100_000)] {
            assert_eq!(Rate { per_s }.gap_us(), gap_us, "{per_s}");
        }
        assert_eq!(Rate { per_s: 1e12 }.gap_us(), 1);
    }

    #[test]
    fn two_who_ask_get_slots_one_after_another() {
        let mut timeline = Timeline::default();
        let first = timeline.grant(&asks(10.0, 1_000, 3), ALONE);
        assert_eq!((first.first_us, first.slots, first.free_at_us), (1_000_000, 3, 1_330_000));
        let second = timeline.grant(&asks(10.0, 1_001, 2), ALONE);
        assert_eq!((second.first_us, second.slots), (1_330_000, 2));
    }

    #[test]
    fn nobody_reserves_far_ahead() {
        let mut timeline = Timeline::default();
        assert_eq!(
            timeline.grant(&asks(10.0, 0, 100), ALONE).slots,
            19,
            "those that begin within two seconds"
        );
        assert_eq!(timeline.grant(&asks(10.0, 0, 100), ALONE).slots, 0);
        assert_eq!(timeline.grant(&asks(10.0, 300, 100), ALONE).slots, 2, "time makes room for more");
        assert_eq!(Timeline::default().grant(&asks(0.01, 0, 100), ALONE).slots, 1, "there is one at once");
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_stop_a_destination() {
        let hour_ms = 3_600_000;
        let mut timeline = Timeline::default();
        timeline.grant(&asks(10.0, hour_ms, 5), ALONE);
        let grant = timeline.grant(&asks(10.0, 0, 5), ALONE);
        assert_eq!((grant.first_us, grant.slots), (0, 5));
        let mut slow = Timeline::default();
        slow.grant(&asks(0.001, hour_ms, 1), ALONE);
        assert_eq!(slow.grant(&asks(0.001, hour_ms, 1), ALONE).slots, 0, "a long gap is no such clock");
    }

    #[test]
    fn permits_are_shared_and_never_taken_from_a_send_under_way() {
        let limits = Limits { gap_us: None, at_once_max: Some(5) };
        let ask = |in_use, sends| Ask { limits, now: at(0), in_use, sends, has_backlog: false };
        let held = |ask: &Ask, elsewhere| {
            let grant = Timeline::default().grant(ask, Others { held: elsewhere, ..ALONE });
            (grant.held, grant.free)
        };
        assert_eq!(held(&ask(0, 3), 0), (3, 2));
        assert_eq!(held(&ask(0, 3), 4), (1, 0));
        assert_eq!(held(&ask(1, 3), 5), (1, 0), "the limit was lowered");
        assert_eq!(held(&ask(1, 0), 2), (1, 2), "unused ones are given back");
    }

    #[test]
    fn permits_are_split_fairly_while_others_want_some() {
        let limits = Limits { gap_us: None, at_once_max: Some(6) };
        let ask = |in_use, sends| Ask { limits, now: at(1_000), in_use, sends, has_backlog: false };
        let grant = |ask: &Ask, others| Timeline::default().grant(ask, others);
        let content = Others { held: 2, sharing: 2, wanting: 0 };
        assert_eq!((grant(&ask(0, 9), content).held, grant(&ask(0, 9), content).fair), (4, None));
        let short = Others { held: 2, sharing: 2, wanting: 1 };
        let fair = grant(&ask(0, 9), short);
        assert_eq!((fair.held, fair.free, fair.fair), (2, 0, Some(2)));
        assert_eq!(grant(&ask(5, 1), Others { held: 1, ..short }).held, 5, "sends under way go on");
        assert_eq!(grant(&ask(0, 1), Others { held: 6, ..short }).held, 0, "there is none left");
        let wants = |ask: &Ask, others| ask.wants_until(&grant(ask, others)) > ask.now;
        assert!(wants(&ask(0, 9), short) && !wants(&ask(0, 1), short));
        assert!(wants(&Ask { has_backlog: true, ..ask(1, 0) }, content));
    }

    #[test]
    fn a_send_without_a_permit_takes_no_slot() {
        let limits = Limits { gap_us: Some(100_000), at_once_max: Some(2) };
        let ask = Ask { limits, now: at(0), in_use: 1, sends: 3, has_backlog: false };
        let grant = Timeline::default().grant(&ask, ALONE);
        assert_eq!((grant.held, grant.slots), (2, 1));
    }

    /// Starts of a few instances that draw and start as late as they may, by clocks that differ.
    fn starts(per_s: f64, steps: &[(i64, usize, i64)]) -> Vec<i64> {
        let mut timeline = Timeline::default();
        let gap_us = Rate { per_s }.gap_us();
        let mut now_ms = 1_000_000;
        let mut starts = Vec::new();
        for (wait_ms, sends, late_ms) in steps {
            now_ms += wait_ms;
            let grant = timeline.grant(&asks(per_s, now_ms, *sends), ALONE);
            let slots = (0..grant.slots as i64).map(|n| grant.first_us + n * gap_us);
            starts.extend(slots.map(|slot_us| slot_us + late_ms * 1_000));
        }
        starts.sort_unstable();
        starts
    }

    fn most_in(starts: &[i64], window_us: i64) -> usize {
        let in_window =
            |from: &i64| starts.iter().filter(|at| (*from..from + window_us).contains(*at)).count();
        starts.iter().map(in_window).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn no_window_has_more_starts_than_the_rate(
            rate in prop_oneof![0.05f64..1.0, 1.0f64..60.0, (1u32..60).prop_map(f64::from)],
            steps in prop::collection::vec((0i64..700, 0usize..40, 0i64..100), 1..200),
        ) {
            let starts = starts(rate, &steps);
            for seconds in [1, 2, 10, 60] {
                let most = most_in(&starts, seconds * 1_000_000);
                let allowed = (rate * seconds as f64).ceil() as usize;
                prop_assert!(most <= allowed, "{most} in {seconds} s at {rate}/s");
            }
        }

        #[test]
        fn a_destination_with_work_is_used_at_nine_tenths(rate in 0.5f64..200.0) {
            let steps: Vec<_> = (0..600).map(|_| (100, 1_000, 0)).collect();
            let count = starts(rate, &steps).len() as f64;
            prop_assert!(count >= 0.9 * 60.0 * rate, "{count} in a minute at {rate}/s");
        }
    }
}
