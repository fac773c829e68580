//! How long this instance may trust its own claims: as long as the fleet has surely heard from it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redeliver_core::planted::{self, Bug};

use futures_util::FutureExt;

use crate::engine::Engine;
use crate::store::StoreError;

/// The last heartbeat that the store confirmed, and what follows from it.
pub(crate) struct Life {
    pulse: Mutex<Pulse>,
    /// Why the store takes nothing, as far as was heard last.
    refusal: Mutex<Refusal>,
    /// How long after it no carrying may still be under way.
    limit: Duration,
    heartbeat: Duration,
}

#[derive(Copy, Clone, Default)]
struct Pulse {
    /// Whether the store has ever confirmed one.
    is_confirmed: bool,
    /// Uptime when the last confirmed heartbeat was sent.
    beat_at: Duration,
    /// Claims made before this uptime are void: nothing had been heard of us for so long that others may have
    /// judged us dead, and may act on that judgement even now.
    void_before: Duration,
}

/// How late a heartbeat was confirmed, counted from when it should have been sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// By how much.
    pub late: Duration,
    /// Beyond this, the instance stops sending, and its sends under way count as lost.
    pub limit: Duration,
}

/// What is known of writes that failed.
#[derive(Clone, Default)]
struct Refusal {
    /// Whether a heartbeat was ever tried: an engine that isn't run has none.
    was_tried: bool,
    /// Why the last heartbeat failed, if it did.
    beat: Option<StoreError>,
    /// Uptime until which nothing is expected to be accepted, after the store had no room for a message, and why.
    accept: Option<(Duration, StoreError)>,
}

/// Why an instance can accept nothing now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unready {
    /// The store has not confirmed the first heartbeat yet.
    #[error("the store has confirmed no heartbeat yet")]
    Starting,
    /// A write failed a moment ago.
    #[error("{0}")]
    Refused(StoreError),
    /// The store has not confirmed a heartbeat for so long.
    #[error("the store has confirmed no heartbeat for {} s", .0.as_secs())]
    Silent(Duration),
}
/// A lease as its holder counts it, by uptime.
#[derive(Copy, Clone, Debug)]
pub(crate) struct LeaseSpan {
    /// When the claim was asked for.
    pub(crate) from: Duration,
    /// When it ends, unless it is renewed before.
    pub(crate) until: Duration,
    /// How long a renewal lasts.
    pub(crate) length: Duration,
}

/// How often a lease is renewed before it would end.
pub(crate) const RENEWALS_PER_LEASE: u32 = 3;

/// The shortest time without a heartbeat after which an instance stops carrying.
const LIMIT_MIN: Duration = Duration::from_secs(10);
/// Heartbeats that may fail before that.
const BEATS_MIN: u32 = 3;
/// What is kept between an instance's own limit and the moment others take its messages.
const MARGIN: Duration = Duration::from_secs(2);

impl Life {
    pub(crate) fn new(heartbeat: Duration) -> Self {
        Self {
            pulse: Mutex::default(),
            refusal: Mutex::default(),
            limit: LIMIT_MIN.max(heartbeat * BEATS_MIN + MARGIN),
            heartbeat,
        }
    }

    /// Uptime until which a carrying may last, under a lease of this begin and end. Each heartbeat that the store
    /// confirms moves it on.
    pub(crate) fn carry_until(&self, lease_from: Duration, lease_until: Duration) -> Duration {
        let Pulse { beat_at, void_before, .. } = *self.pulse();
        if planted::is(Bug::CarriesAfterHeartbeatLimit) {
            return lease_until;
        }
        if planted::is(Bug::NoSelfFence) {
            return Duration::MAX;
        }
        if lease_from < void_before { Duration::ZERO } else { lease_until.min(beat_at + self.limit) }
    }

    /// Whether a claim made now could be carried at all.
    pub(crate) fn is_fresh(&self, uptime: Duration, send_timeout: Duration) -> bool {
        self.carry_until(uptime, Duration::MAX) > uptime + send_timeout.min(self.limit / 2)
    }

    /// Whether a send of at most `within` may start at this uptime. A long one may count on some of the heartbeats and
    /// lease renewals to come, and is given up without them.
    pub(crate) fn may_start(&self, lease: LeaseSpan, uptime: Duration, within: Duration) -> bool {
        let lasts = lease.until > uptime + within.min(lease.length / RENEWALS_PER_LEASE)
            || planted::is(Bug::NoSelfFence);
        lasts && self.carry_until(lease.from, Duration::MAX) > uptime + within.min(self.limit / 2)
    }

    /// How long after its last heartbeat others may take this instance's messages.
    pub(crate) fn silent_max(&self) -> Duration {
        if planted::is(Bug::ReapsTooEarly) { self.limit / 20 } else { self.limit + MARGIN }
    }

    /// Time since the last heartbeat that the store confirmed was sent; `None` before the first one.
    fn age(&self, uptime: Duration) -> Option<Duration> {
        let beat_at = self.pulse().beat_at;
        (!beat_at.is_zero()).then(|| uptime.saturating_sub(beat_at))
    }

    /// Notes a heartbeat that the store confirmed, and says how late it was confirmed.
    fn confirmed(&self, sent_at: Duration, heard_at: Duration) -> Lateness {
        let late = self.age(heard_at).unwrap_or_default().saturating_sub(self.heartbeat);
        let mut pulse = self.pulse();
        if heard_at.saturating_sub(pulse.beat_at) > self.limit {
            pulse.void_before = heard_at;
        }
        pulse.beat_at = sent_at;
        pulse.is_confirmed = true;
        Lateness { late, limit: self.limit - self.heartbeat }
    }

    /// Notes that the store had no room for new messages.
    pub(crate) fn accept_failed(&self, error: &StoreError, uptime: Duration) {
        if matches!(error, StoreError::Full(_) | StoreError::Damaged(_)) {
            self.refusal().accept = Some((uptime + self.limit, error.clone()));
        }
    }

    /// Whether messages can be accepted, as far as the heartbeats tell; nothing if there are none.
    fn readiness(&self, uptime: Duration) -> Option<Result<(), Unready>> {
        let Refusal { was_tried, beat, accept } = self.refusal().clone();
        if !was_tried {
            return None;
        }
        let Pulse { is_confirmed, beat_at, .. } = *self.pulse();
        let silent_for = uptime.saturating_sub(beat_at);
        let accept = accept.filter(|(until, _)| uptime < *until).map(|(_, error)| error);
        Some(match beat.or(accept) {
            Some(error) => Err(Unready::Refused(error)),
            None if !is_confirmed => Err(Unready::Starting),
            None if silent_for > self.limit => Err(Unready::Silent(silent_for)),
            None => Ok(()),
        })
    }

    fn refusal(&self) -> MutexGuard<'_, Refusal> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pulse(&self) -> MutexGuard<'_, Pulse> {
        self.pulse.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Has the store keep what this instance says of itself, if it hasn't yet.
    async fn introduce(&self) -> Result<(), StoreError> {
        let about = self.about.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(about) = about else { return Ok(()) };
        self.store.introduce(self.instance, about).await?;
        *self.about.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// Says once that this instance lives.
    pub async fn beat(&self) -> Result<(), StoreError> {
        let sent_at = self.clock.uptime();
        self.life.refusal().was_tried = true;
        let beat = self.store.beat(self.instance, self.clock.now(), self.life.silent_max()).await;
        self.life.refusal().beat = beat.as_ref().err().cloned();
        beat?;
        let lateness = self.life.confirmed(sent_at, self.clock.uptime());
        self.observer.beaten(lateness);
        self.introduce().await
    }

    /// Whether messages can be accepted: the store has confirmed a heartbeat, which is a write, and none failed
    /// since. An engine that isn't run asks the store instead.
    pub async fn readiness(&self) -> Result<(), Unready> {
        if let Some(error) = self.store.broken().now_or_never() {
            return Err(Unready::Refused(error));
        }
        match self.life.readiness(self.clock.uptime()) {
            Some(ready) => ready,
            None => self.store.gates().await.map(drop).map_err(Unready::Refused),
        }
    }

    /// Time since this instance's last heartbeat that the store confirmed; `None` before the first one.
    pub fn heartbeat_age(&self) -> Option<Duration> {
        self.life.age(self.clock.uptime())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(1_000 + seconds)
    }

    /// Heard of at this time, and given half a minute for a send under a lease of two minutes.
    fn may_start(beat_at: u64, now: u64) -> bool {
        let life = Life::new(Duration::from_secs(2));
        life.confirmed(at(beat_at), at(beat_at));
        life.may_start(lease(beat_at, now + 120), at(now), Duration::from_secs(30))
    }

    /// A lease that is renewed for two minutes.
    fn lease(from: u64, until: u64) -> LeaseSpan {
        LeaseSpan { from: at(from), until: at(until), length: Duration::from_secs(120) }
    }

    #[test]
    fn a_long_carrying_starts_while_the_last_heartbeat_is_fresh_and_ends_by_its_limit() {
        assert!(may_start(0, 0));
        assert!(may_start(0, 4));
        assert!(!may_start(0, 5), "half of the limit is over");
        let life = Life::new(Duration::from_secs(2));
        life.confirmed(at(0), at(0));
        assert_eq!(life.carry_until(at(0), at(30)), at(10));
        life.confirmed(at(8), at(9));
        assert_eq!(life.carry_until(at(0), at(30)), at(18), "a heartbeat gives it more time");
        assert_eq!(life.carry_until(at(0), at(12)), at(12), "but never more than it was allowed");
    }

    #[test]
    fn a_lease_must_outlast_a_short_send_and_leave_a_long_one_time_for_its_renewal() {
        let life = Life::new(Duration::from_secs(2));
        life.confirmed(at(0), at(0));
        let short = Duration::from_secs(30);
        assert!(life.may_start(lease(0, 31), at(0), short));
        assert!(!life.may_start(lease(0, 30), at(0), short));
        let long = Duration::from_secs(700);
        assert!(life.may_start(lease(0, 41), at(0), long));
        assert!(!life.may_start(lease(0, 40), at(0), long));
    }

    #[test]
    fn a_heartbeat_is_late_by_what_it_comes_after_its_time() {
        let life = Life::new(Duration::from_secs(2));
        assert_eq!(life.age(at(0)), None);
        assert_eq!(life.confirmed(at(0), at(1)).late, Duration::ZERO, "nobody waited for the first one");
        assert_eq!(life.confirmed(at(2), at(2)).late, Duration::ZERO);
        let lateness = life.confirmed(at(4), at(9));
        assert_eq!((lateness.late, lateness.limit), (Duration::from_secs(5), Duration::from_secs(8)));
        assert_eq!(life.age(at(10)), Some(Duration::from_secs(6)));
    }

    #[test]
    fn readiness_follows_the_last_heartbeat_and_what_was_refused_lately() {
        let life = Life::new(Duration::from_secs(2));
        assert_eq!(life.readiness(at(0)), None, "nobody has tried");
        life.refusal().was_tried = true;
        assert_eq!(life.readiness(at(0)), Some(Err(Unready::Starting)));
        life.confirmed(at(0), at(0));
        assert_eq!(life.readiness(at(10)), Some(Ok(())));
        assert_eq!(life.readiness(at(11)), Some(Err(Unready::Silent(Duration::from_secs(11)))));
        life.confirmed(at(11), at(11));
        let away = StoreError::Unavailable("no answer".to_owned());
        life.refusal().beat = Some(away.clone());
        assert_eq!(life.readiness(at(11)), Some(Err(Unready::Refused(away.clone()))));
        life.refusal().beat = None;
        life.accept_failed(&away, at(11));
        assert_eq!(life.readiness(at(11)), Some(Ok(())), "the next heartbeat tells");
        let full = StoreError::Full("no room".to_owned());
        life.accept_failed(&full, at(11));
        assert_eq!(life.readiness(at(12)), Some(Err(Unready::Refused(full))));
        assert_eq!(life.readiness(at(21)), Some(Ok(())), "whether there is room now is found out by trying");
    }

    #[test]
    fn others_have_the_messages_of_a_dead_instance_within_fifteen_seconds() {
        assert!(Life::new(Duration::from_secs(2)).silent_max() <= Duration::from_secs(13));
    }
}
