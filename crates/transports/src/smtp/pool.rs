//! Connections that are kept for the next mail, and no more of them than the server is to see.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redeliver_engine::clock::Clock;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::session::Session;

/// The connections to one server.
pub(super) struct Pool {
    clock: Arc<dyn Clock>,
    idle_timeout: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<(Duration, Session)>>,
}

impl Pool {
    pub(super) fn new(clock: Arc<dyn Clock>, connections_max: usize, idle_timeout: Duration) -> Self {
        let permits = Semaphore::new(connections_max.clamp(1, Semaphore::MAX_PERMITS));
        Self { clock, idle_timeout, permits, idle: Mutex::default() }
    }

    /// The right to use one connection; waits until there is one. `None` never happens: nobody closes the pool.
    pub(super) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.permits.acquire().await.ok()
    }

    /// The connection that was used last, if one is still fresh; those that are not are dropped.
    pub(super) fn take(&self) -> Option<Session> {
        let now = self.clock.uptime();
        let mut idle = self.idle();
        idle.retain(|(since, _)| now.saturating_sub(*since) < self.idle_timeout);
        let mut session = idle.pop()?.1;
        session.has_begun = false;
        Some(session)
    }

    /// Keeps a connection for the next mail, if it can take one.
    pub(super) fn give_back(&self, session: Session) {
        if session.is_usable && !self.idle_timeout.is_zero() {
            self.idle().push((self.clock.uptime(), session));
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Duration, Session)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
