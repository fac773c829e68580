//! When a table is looked at, and how long what was counted is told again.

use std::time::Duration;

use redeliver_core::{Lane, Timestamp};
use redeliver_engine::store::Count;

use super::standing;
use crate::adopted::Tally;
use crate::mapping::Mapping;

/// A table is looked at once in an interval, first of all at the start, and then until nothing is due any more.
pub(super) struct Tick {
    interval: Duration,
    next_at: Timestamp,
    /// The time of the tick that is under way: what comes to be due meanwhile is the next one's.
    under_way: Option<Timestamp>,
}

impl Tick {
    pub(super) fn every(interval: Duration) -> Self {
        Self { interval, next_at: Timestamp::default(), under_way: None }
    }

    /// The time by which something must be due to be taken now; else when the next tick is.
    pub(super) fn begin(&mut self, now: Timestamp) -> Result<Timestamp, Timestamp> {
        if self.interval.is_zero() {
            return Ok(now);
        }
        if let Some(at) = self.under_way {
            return Ok(at);
        }
        // A clock that was set back must not stop the work for long.
        if now < self.next_at && self.next_at.since(now) <= self.interval {
            return Err(self.next_at);
        }
        self.under_way = Some(now);
        self.next_at = now.plus(self.interval);
        Ok(now)
    }

    /// Nothing is left to take: says when the next tick is, where there are ticks.
    pub(super) fn end(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.under_way = None;
        (!self.interval.is_zero()).then(|| self.next_at.max(now))
    }

    /// The next tick is now.
    pub(super) fn now(&mut self) {
        self.under_way = None;
        self.next_at = Timestamp::default();
    }
}

/// How long counts are told again before the table is counted anew: that reads an index from end to end.
const TALLIES_FOR: Duration = Duration::from_secs(10);

/// How old counts are at most that are told once more while the table is counted beside.
const TALLIES_AGE_MAX: Duration = Duration::from_secs(60);

/// What was counted last.
#[derive(Default)]
pub(super) struct Tallies {
    at: Option<Timestamp>,
    tallies: Vec<Tally>,
    is_counting: bool,
}

impl Tallies {
    pub(super) fn of(now: Timestamp, tallies: Vec<Tally>) -> Self {
        Self { at: Some(now), tallies, is_counting: false }
    }

    /// The counts, unless they are too old: whoever asks then waits until the table is counted.
    pub(super) fn told(&self, mapping: &Mapping, now: Timestamp) -> Option<Vec<Count>> {
        let is_good = self.at.is_some_and(|at| now >= at && now.since(at) < TALLIES_AGE_MAX);
        is_good.then(|| self.counts(mapping))
    }

    /// Whether whoever asks is the one to have the table counted anew, beside what is told.
    pub(super) fn begins(&mut self, now: Timestamp) -> bool {
        let begins = !self.is_counting && self.at.is_some_and(|at| now.since(at) >= TALLIES_FOR);
        self.is_counting |= begins;
        begins
    }

    /// As the engine counts messages; dismissed ones and words that mean nothing to us aside.
    fn counts(&self, mapping: &Mapping) -> Vec<Count> {
        let mut counts: Vec<Count> = Vec::new();
        for tally in &self.tallies {
            let Some((state, reason)) = standing::counted(mapping, tally) else { continue };
            let is = |count: &&mut Count| count.state == state && count.reason == reason;
            let due = if state == "waiting" { tally.due } else { 0 };
            match counts.iter_mut().find(is) {
                Some(count) => count.count += tally.count,
                None => counts.push(Count {
                    route: mapping.route.clone(),
                    lane: Lane::Medium,
                    state,
                    reason,
                    count: tally.count,
                    due,
                    parked: 0,
                    old: tally.old.than,
                }),
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64) -> Timestamp {
        Timestamp::from_ms(s * 1_000)
    }

    #[test]
    fn the_first_tick_is_at_the_start_and_lasts_until_nothing_is_left() {
        let mut tick = Tick::every(Duration::from_secs(60));
        assert_eq!(tick.begin(at(1_000)), Ok(at(1_000)));
        assert_eq!(tick.begin(at(1_002)), Ok(at(1_000)), "what came to be due meanwhile is the next one's");
        assert_eq!(tick.end(at(1_005)), Some(at(1_060)));
        assert_eq!(tick.begin(at(1_059)), Err(at(1_060)));
        assert_eq!(tick.begin(at(1_060)), Ok(at(1_060)));
    }

    #[test]
    fn a_person_need_not_wait_and_a_clock_set_back_stops_nothing() {
        let mut tick = Tick::every(Duration::from_secs(60));
        let _ = (tick.begin(at(1_000)), tick.end(at(1_000)));
        tick.now();
        assert_eq!(tick.begin(at(1_001)), Ok(at(1_001)));
        tick.end(at(1_001));
        assert_eq!(tick.begin(at(500)), Ok(at(500)));
    }

    #[test]
    fn without_an_interval_it_is_always_looked() {
        let mut tick = Tick::every(Duration::ZERO);
        assert_eq!((tick.begin(at(1)), tick.end(at(1)), tick.begin(at(2))), (Ok(at(1)), None, Ok(at(2))));
    }
}
