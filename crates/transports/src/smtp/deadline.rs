//! How much time a carrying has left.

use std::sync::Arc;
use std::time::Duration;

use redeliver_engine::clock::Clock;

/// The moment by which a carrying has said what came of it.
pub(super) struct Deadline {
    clock: Arc<dyn Clock>,
    end: Duration,
}

/// Nothing came in time.
#[derive(Debug)]
pub(super) struct TooLate;

/// What is kept back, at most, for saying so before the carrying is given up by others, who would have to call it lost.
const RESERVE: Duration = Duration::from_millis(500);

impl Deadline {
    pub(super) fn new(clock: &Arc<dyn Clock>, within: Duration) -> Self {
        let end = clock.uptime() + within.saturating_sub(RESERVE.min(within / 10));
        Self { clock: Arc::clone(clock), end }
    }

    /// Waits for something, no longer than `at_most` and never past the deadline.
    pub(super) async fn wait<T>(
        &self,
        at_most: Duration,
        what: impl Future<Output = T>,
    ) -> Result<T, TooLate> {
        let left = self.end.saturating_sub(self.clock.uptime());
        tokio::time::timeout(at_most.min(left), what).await.map_err(|_| TooLate)
    }
}
