//! How much time a send has left.

use std::sync::Arc;
use std::time::Duration;

use redeliver_engine::clock::Clock;

/// The moments by which a mail is handed over, and by which the server has answered for it.
pub(super) struct Deadline {
    clock: Arc<dyn Clock>,
    /// When the whole mail must have been sent.
    handed_over_by: Duration,
    /// When the server must have answered for it.
    end: Duration,
}

/// Nothing came in time.
#[derive(Debug)]
pub(super) struct TooLate;

/// What is kept back, at most, for saying so before the carrying is given up by others, who would have to call it lost.
const RESERVE: Duration = Duration::from_millis(500);

impl Deadline {
    /// A deadline that keeps `answer` of the time for the server's answer to a whole mail, or half of it where there is
    /// no more than that.
    pub(super) fn new(clock: &Arc<dyn Clock>, within: Duration, answer: Duration) -> Self {
        let end = clock.uptime() + within.saturating_sub(RESERVE.min(within / 10));
        let kept = if answer < within { answer } else { within / 2 };
        let handed_over_by = end.saturating_sub(kept);
        Self { clock: Arc::clone(clock), handed_over_by, end }
    }

    /// Waits for something that comes before the mail is handed over, no longer than `at_most`.
    pub(super) async fn wait<T>(
        &self,
        at_most: Duration,
        what: impl Future<Output = T>,
    ) -> Result<T, TooLate> {
        self.wait_until(self.handed_over_by, at_most, what).await
    }

    /// Waits for the answer to a mail that was handed over, no longer than `at_most`.
    pub(super) async fn wait_for_answer<T>(
        &self,
        at_most: Duration,
        what: impl Future<Output = T>,
    ) -> Result<T, TooLate> {
        self.wait_until(self.end, at_most, what).await
    }

    async fn wait_until<T>(
        &self,
        end: Duration,
        at_most: Duration,
        what: impl Future<Output = T>,
    ) -> Result<T, TooLate> {
        let left = end.saturating_sub(self.clock.uptime());
        tokio::time::timeout(at_most.min(left), what).await.map_err(|_| TooLate)
    }
}
