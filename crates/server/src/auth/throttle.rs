//! Slows down clients that guess keys. Every login, and every key in a header that is not in the store, takes a place; a failed one keeps it for a while, whether or not the
//! caller waits for the answer. So there are only so many guesses a second, and an honest login waits its turn.

use std::sync::Arc;
use std::time::Duration;

use redeliver_engine::clock::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// Logins that are looked at at once.
const PLACES: usize = 4;

/// Logins that are looked at or wait for that, at most.
const LINE_MAX: usize = 64;

/// How long a failed login keeps its place.
const FAILED_FOR: Duration = Duration::from_millis(500);

/// The line before the door.
pub(crate) struct Throttle {
    places: Arc<Semaphore>,
    line: Arc<Semaphore>,
}

/// The turn of one login.
pub(crate) struct Turn {
    _place: OwnedSemaphorePermit,
    _in_line: OwnedSemaphorePermit,
}

impl Default for Throttle {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(PLACES)), line: Arc::new(Semaphore::new(LINE_MAX)) }
    }
}

impl Throttle {
    /// Waits for a turn; refuses whoever comes when the line is long.
    pub(crate) async fn turn(&self) -> Result<Turn, Problem> {
        let line = Arc::clone(&self.line).try_acquire_owned().map_err(|_| too_many())?;
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| Problem::internal())?;
        Ok(Turn { _place: place, _in_line: line })
    }
}

impl Turn {
    /// Keeps the place of a failed login for a while, and its caller waiting.
    pub(crate) async fn failed(self, clock: Arc<dyn Clock>) {
        // On its own, because somebody who hangs up early must not make room for the next guess.
        let kept = tokio::spawn(async move {
            clock.sleep(FAILED_FOR).await;
            drop(self);
        });
        // It can only fail by being stopped with everything else.
        let _ = kept.await;
    }
}

fn too_many() -> Problem {
    let mut problem = Problem::overloaded();
    problem.title = "Too many people are logging in".to_owned();
    problem.detail = "too many logins at once, most of them failing: try again in a moment".to_owned();
    problem
}

#[cfg(test)]
mod tests {
    use redeliver_core::Timestamp;
    use redeliver_engine::clock::ManualClock;

    use super::*;

    #[tokio::test]
    async fn failed_logins_keep_their_places_even_if_nobody_waits_for_the_answer() {
        let (throttle, clock) = (Throttle::default(), ManualClock::at(Timestamp::default()));
        for _ in 0..PLACES {
            let turn = throttle.turn().await.unwrap();
            let failing = tokio::spawn(turn.failed(clock.clone()));
            tokio::task::yield_now().await;
            failing.abort();
        }
        tokio::task::yield_now().await;
        let next = throttle.turn();
        tokio::pin!(next);
        assert!(futures_util::poll!(&mut next).is_pending());
        clock.advance(FAILED_FOR);
        assert!(next.await.is_ok());
    }

    #[tokio::test]
    async fn the_line_has_an_end() {
        let throttle = Arc::new(Throttle::default());
        let mut turns: Vec<_> = (0..LINE_MAX).map(|_| Box::pin(throttle.turn())).collect();
        let mut held = Vec::new();
        for turn in &mut turns {
            held.push(futures_util::poll!(turn));
        }
        assert_eq!(throttle.turn().await.err().map(|problem| problem.status), Some(429));
    }
}
