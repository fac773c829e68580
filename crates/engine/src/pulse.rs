//! What this instance has done, minute by minute, for as long as people look back: a few numbers in memory, gone with it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redeliver_core::event::Kind;
use redeliver_core::quota::Whose;
use redeliver_core::{Event, Message, Outcome, Timestamp};

use crate::emit::{Counted, Observer, Planned};
use crate::life::Lateness;
use crate::store::StoreError;

/// Minutes that are kept.
pub const MINUTES_MAX: usize = 180;

const MINUTE_MS: i64 = 60_000;

/// What a lateness is at most, in milliseconds; beyond the last, nobody cares how much.
pub const LATE_MS: [u64; 16] =
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 15_000, 60_000, 300_000, 3_600_000];

/// What happened in one minute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Minute {
    /// When it began.
    pub at: Timestamp,
    /// Messages that the other side took, or that were reported so.
    pub delivered: u32,
    /// Messages that a broker took, for somebody who will report: not delivered yet.
    pub handed_off: u32,
    /// Tries that failed and will be made again.
    pub retried: u32,
    /// Messages given up.
    pub dead: u32,
    /// How late those were that were carried, by `LATE_MS`.
    pub late: [u32; LATE_MS.len()],
}

impl Minute {
    /// How late it was for this share of what was carried, at most: 0.5 or 0.99. `None` if nothing was.
    pub fn lateness(&self, share: f64) -> Option<Duration> {
        let carried: u32 = self.late.iter().sum();
        let wanted = (f64::from(carried) * share).ceil().max(1.0) as u32;
        let mut seen = 0;
        self.late.iter().zip(LATE_MS).find_map(|(count, ms)| {
            seen += count;
            (seen >= wanted).then(|| Duration::from_millis(ms))
        })
    }
}

/// The minutes, the oldest first; those in which nothing happened are left out.
#[derive(Debug, Default)]
pub struct Pulse(Mutex<VecDeque<Minute>>);

impl Pulse {
    /// What happened in each of the last minutes up to now, those included in which nothing did.
    pub fn minutes(&self, now: Timestamp) -> Vec<Minute> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = now.as_ms().div_euclid(MINUTE_MS);
        let first = last - MINUTES_MAX as i64 + 1;
        let minute = |number: i64| {
            let at = Timestamp::from_ms(number * MINUTE_MS);
            let known = kept.iter().find(|minute| minute.at == at);
            known.cloned().unwrap_or_else(|| Minute { at, ..Minute::default() })
        };
        (first..=last).map(minute).collect()
    }

    fn note(&self, at: Timestamp, note: impl FnOnce(&mut Minute)) {
        let at = Timestamp::from_ms(at.as_ms().div_euclid(MINUTE_MS) * MINUTE_MS);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may be a little behind.
        match kept.iter_mut().rev().take(2).find(|minute| minute.at == at) {
            Some(minute) => note(minute),
            None => {
                let mut minute = Minute { at, ..Minute::default() };
                note(&mut minute);
                kept.push_back(minute);
                if kept.len() > MINUTES_MAX {
                    kept.pop_front();
                }
            }
        }
    }

    fn count(&self, event: &Event) {
        match event.kind {
            Kind::Delivered { .. } => self.note(event.at, |minute| minute.delivered += 1),
            Kind::HandedOff => self.note(event.at, |minute| minute.handed_off += 1),
            Kind::AttemptFailed { .. } | Kind::AttemptPartial | Kind::AttemptUnconfirmed => {
                self.note(event.at, |minute| minute.retried += 1);
            }
            Kind::Dead { .. } => self.note(event.at, |minute| minute.dead += 1),
            _ => {}
        }
    }

    fn carried(&self, at: Timestamp, lateness: Duration) {
        let late_ms = lateness.as_millis();
        let place = LATE_MS.iter().position(|ms| late_ms <= u128::from(*ms)).unwrap_or(LATE_MS.len() - 1);
        self.note(at, |minute| minute.late[place] += 1);
    }
}

/// What an engine tells: counted here, and passed on. It is no observer itself, so that an engine can say nothing that is
/// not passed on: what is missing here does not build there.
pub(crate) struct Teller {
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) pulse: Pulse,
}

impl Teller {
    pub(crate) fn observe(&self, event: &Event) {
        self.pulse.count(event);
        self.observer.observe(event);
    }

    pub(crate) fn carrying(&self, message: &Message, lateness: Duration) {
        self.pulse.carried(message.due_at.plus(lateness), lateness);
        self.observer.carrying(message, lateness);
    }

    pub(crate) fn tried(&self, message: &Message, outcome: &Outcome) {
        self.observer.tried(message, outcome);
    }

    pub(crate) fn lease_lost(&self, message: &Message) {
        self.observer.lease_lost(message);
    }

    pub(crate) fn quota(&self, whose: Whose, counted: Counted) {
        self.observer.quota(whose, counted);
    }

    pub(crate) fn beaten(&self, lateness: Lateness) {
        self.observer.beaten(lateness);
    }

    pub(crate) fn planned(&self, part: &Planned<'_>) {
        self.observer.planned(part);
    }

    pub(crate) fn campaign_paused(&self, campaign: &str, reason: &str) {
        self.observer.campaign_paused(campaign, reason);
    }

    pub(crate) fn store_failed(&self, doing: &'static str, error: &StoreError) {
        self.observer.store_failed(doing, error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_told_up_to_now_and_old_ones_go() {
        let pulse = Pulse::default();
        let at = |minute: i64| Timestamp::from_ms(minute * MINUTE_MS + 17);
        for minute in 0..400 {
            pulse.note(at(minute), |minute| minute.dead += 1);
        }
        pulse.note(at(399), |minute| minute.delivered += 2);
        assert_eq!(pulse.0.lock().unwrap().len(), MINUTES_MAX);
        let told = pulse.minutes(at(401));
        assert_eq!(told.len(), MINUTES_MAX);
        let counts = |place: usize| (told[place].delivered, told[place].dead);
        assert_eq!((counts(MINUTES_MAX - 3), counts(MINUTES_MAX - 1)), ((2, 1), (0, 0)));
        assert_eq!(told[MINUTES_MAX - 1].at, Timestamp::from_ms(401 * MINUTE_MS));
    }

    #[test]
    fn lateness_is_told_by_the_bound_that_holds_for_the_share() {
        let pulse = Pulse::default();
        for late_ms in [0, 1, 1, 3, 40_000] {
            pulse.carried(Timestamp::from_ms(5), Duration::from_millis(late_ms));
        }
        let minute = &pulse.minutes(Timestamp::from_ms(5))[MINUTES_MAX - 1];
        assert_eq!(minute.lateness(0.5), Some(Duration::from_millis(1)));
        assert_eq!(minute.lateness(0.99), Some(Duration::from_secs(60)));
        assert_eq!(Minute::default().lateness(0.5), None);
    }
}
