//! How long this instance may trust its own claims: as long as the fleet has surely heard from it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redeliver_core::planted::{self, Bug};

use crate::engine::Engine;
use crate::store::StoreError;

/// The last heartbeat that the store confirmed, and what follows from it.
pub(crate) struct Life {
    pulse: Mutex<Pulse>,
    /// How long after it no carrying may still be under way.
    limit: Duration,
}

#[derive(Copy, Clone, Default)]
struct Pulse {
    /// Uptime when the last confirmed heartbeat was sent.
    beat_at: Duration,
    /// Claims made before this uptime are void: nothing had been heard of us for so long that others may have
    /// judged us dead, and may act on that judgement even now.
    void_before: Duration,
}

/// The shortest time without a heartbeat after which an instance stops carrying.
const LIMIT_MIN: Duration = Duration::from_secs(10);
/// What is kept between an instance's own limit and the moment others take its messages.
const MARGIN: Duration = Duration::from_secs(2);

impl Life {
    pub(crate) fn new(heartbeat: Duration, send_timeout_max: Duration) -> Self {
        let limit = LIMIT_MIN.max(send_timeout_max + heartbeat * 2 + MARGIN);
        Self { pulse: Mutex::default(), limit }
    }

    /// Uptime until which a carrying may last that starts now, under a lease of this begin and end.
    pub(crate) fn carry_until(&self, lease_from: Duration, lease_until: Duration) -> Duration {
        let Pulse { beat_at, void_before } = *self.pulse();
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
        self.carry_until(uptime, Duration::MAX) > uptime + send_timeout
    }

    /// How long after its last heartbeat others may take this instance's messages.
    pub(crate) fn silent_max(&self) -> Duration {
        if planted::is(Bug::ReapsTooEarly) { self.limit / 20 } else { self.limit + MARGIN }
    }

    fn confirmed(&self, sent_at: Duration, heard_at: Duration) {
        let mut pulse = self.pulse();
        if heard_at.saturating_sub(pulse.beat_at) > self.limit {
            pulse.void_before = heard_at;
        }
        pulse.beat_at = sent_at;
    }

    fn pulse(&self) -> MutexGuard<'_, Pulse> {
        self.pulse.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Says once that this instance lives.
    pub async fn beat(&self) -> Result<(), StoreError> {
        let sent_at = self.clock.uptime();
        self.store.beat(self.instance, self.clock.now(), self.life.silent_max()).await?;
        self.life.confirmed(sent_at, self.clock.uptime());
        Ok(())
    }
}
