//! A message that comes due while its route is busy with something else is not forgotten until the next poll.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use redeliver_core::accept::NewMessage;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Content, Name, Outcome, Policy, Route, Timestamp};
use redeliver_engine::clock::{Clock, Sleep, WallClock};
use redeliver_engine::emit::Silence;
use redeliver_engine::intake::Sink;
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings};

const MESSAGES: i64 = 500;

/// A clock that goes on by a millisecond whenever somebody reads it, and by the whole span when somebody sleeps.
struct Hasty {
    ms: Arc<AtomicI64>,
    bits: Arc<WallClock>,
}

impl Clock for Hasty {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.ms.fetch_add(1, Ordering::Relaxed))
    }

    /// Stands still: this is not about leases.
    fn uptime(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// Ends as soon as nobody has anything else to do.
    fn sleep(&self, span: Duration) -> Sleep {
        let ms = Arc::clone(&self.ms);
        let until = ms.load(Ordering::Relaxed) + span.as_millis() as i64;
        Box::pin(async move {
            ms.fetch_max(until, Ordering::Relaxed);
        })
    }

    fn bits(&self) -> u128 {
        self.bits.bits()
    }
}

/// Takes everything, and notes how late it was.
struct Noting {
    ms: Arc<AtomicI64>,
    late_ms: Mutex<Vec<i64>>,
}

#[async_trait]
impl Transport for Noting {
    async fn carry(&self, envelope: &Envelope<'_>, _: Duration) -> Outcome {
        let late_ms = self.ms.load(Ordering::Relaxed) - envelope.message.due_at.as_ms();
        self.late_ms.lock().unwrap().push(late_ms);
        Outcome::Delivered { receipt: None }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "here".into()
    }
}

#[tokio::test]
async fn what_comes_due_between_two_glances_at_the_clock_does_not_wait_for_the_poll() {
    let ms = Arc::new(AtomicI64::new(1_000_000));
    let clock = Arc::new(Hasty { ms: Arc::clone(&ms), bits: WallClock::new(Timestamp::default()) });
    let noting = Arc::new(Noting { ms, late_ms: Mutex::default() });
    let transports: HashMap<Name, Arc<dyn Transport>> =
        HashMap::from([("here".into(), Arc::clone(&noting) as Arc<dyn Transport>)]);
    let backoff = Backoff::Table(vec![Duration::ZERO]);
    let policy = Policy { backoff, jitter: Jitter::None, max_attempts: 1, expires_after: None };
    let line = Line::new(Route::new("bench", "here", policy), &transports, Vec::new()).unwrap();
    let settings = Settings { poll_interval: Duration::from_secs(3_600), ..Settings::default() };
    let store = Arc::new(MemoryStore::default());
    let engine = Arc::new(Engine::new(store, clock, Arc::new(Silence), settings, vec![line]));
    let mut due_ms = 1_100_000;
    for n in 0..MESSAGES {
        // At all distances from each other, so that each comes at another moment of the round before.
        due_ms += 1 + n % 23;
        let due_at = Some(Timestamp::from_ms(due_ms));
        let message = NewMessage { due_at, ..NewMessage::new("bench", Content::of_bytes(vec![b'x'])) };
        engine.accept(vec![message]).await.unwrap();
    }

    // The route alone: what keeps the house has its own sleeps, and this clock would run away with them.
    let (_stopper, stop) = stop_pair();
    let mut work = Arc::clone(&engine).parts(stop).await.swap_remove(0);
    while noting.late_ms.lock().unwrap().len() < MESSAGES as usize {
        assert!((&mut work).now_or_never().is_none(), "the work ended");
    }
    let latest_ms = noting.late_ms.lock().unwrap().iter().copied().max().unwrap();
    assert!(latest_ms < 1_000, "{latest_ms} ms late: somebody waited for the poll");
}
