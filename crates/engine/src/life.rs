//! How long this instance may trust its own claims: as long as the fleet has surely heard from it.

use std::sync::Mutex;
use std::time::Duration;

use redeliver_core::planted::{self, Bug};

use crate::engine::Engine;
use crate::store::StoreError;

/// The last heartbeat that the store confirmed, and what follows from it.
pub(crate) struct Life {
    /// Uptime when the last confirmed heartbeat was sent.
    beat_at: Mutex<Duration>,
    /// How long after it no carrying may still be under way.
    limit: Duration,
}

/// The shortest time without a heartbeat after which an instance stops carrying.
const LIMIT_MIN: Duration = Duration::from_secs(10);
/// What is kept between an instance's own limit and the moment others take its messages.
const MARGIN: Duration = Duration::from_secs(2);

impl Life {
    pub(crate) fn new(heartbeat: Duration, send_timeout_max: Duration) -> Self {
        let limit = LIMIT_MIN.max(send_timeout_max + heartbeat * 2 + MARGIN);
        Self { beat_at: Mutex::new(Duration::ZERO), limit }
    }

    /// Uptime until which a carrying may last that starts now under a lease of this end.
    pub(crate) fn carry_until(&self, lease_until: Duration) -> Duration {
        let beat_at = *self.beat_at.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if planted::is(Bug::CarriesAfterHeartbeatLimit) {
            return lease_until;
        }
        if planted::is(Bug::NoSelfFence) {
            return Duration::MAX;
        }
        lease_until.min(beat_at + self.limit)
    }

    /// How long after its last heartbeat others may take this instance's messages.
    pub(crate) fn silent_max(&self) -> Duration {
        if planted::is(Bug::ReapsTooEarly) { self.limit / 20 } else { self.limit + MARGIN }
    }

    fn confirmed(&self, sent_at: Duration) {
        *self.beat_at.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = sent_at;
    }
}

impl Engine {
    /// Says once that this instance lives.
    pub async fn beat(&self) -> Result<(), StoreError> {
        let sent_at = self.clock.uptime();
        self.store.beat(self.instance, self.clock.now(), self.life.silent_max()).await?;
        self.life.confirmed(sent_at);
        Ok(())
    }
}
