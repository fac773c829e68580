//! A send whose process was held up until its slot had closed does not start.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use redeliver_core::accept::NewMessage;
use redeliver_core::limit::Rate;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Content, Name, Outcome, Policy, Route, Timestamp};
use redeliver_engine::clock::{Clock, ManualClock, Sleep};
use redeliver_engine::emit::Silence;
use redeliver_engine::intake::Sink;
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings};

/// A clock of a process that is held up whenever it reads the time.
struct Halting {
    clock: Arc<ManualClock>,
    held_up_ms: AtomicU64,
}

impl Clock for Halting {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        self.clock.advance(Duration::from_millis(self.held_up_ms.load(Ordering::Relaxed)));
        now
    }

    fn uptime(&self) -> Duration {
        self.clock.uptime()
    }

    fn sleep(&self, span: Duration) -> Sleep {
        self.clock.sleep(span)
    }

    fn bits(&self) -> u128 {
        self.clock.bits()
    }
}

#[derive(Default)]
struct Counting(AtomicUsize);

#[async_trait]
impl Transport for Counting {
    async fn carry(&self, _: &Envelope<'_>, _: Duration) -> Outcome {
        self.0.fetch_add(1, Ordering::Relaxed);
        Outcome::Delivered { receipt: None }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "here".into()
    }
}

#[tokio::test]
async fn a_send_that_is_held_up_until_its_slot_has_closed_does_not_start() {
    let clock = ManualClock::at(Timestamp::from_ms(1_000_000));
    let clock = Arc::new(Halting { clock, held_up_ms: AtomicU64::new(0) });
    let sends = Arc::new(Counting::default());
    let transports: HashMap<Name, Arc<dyn Transport>> =
        HashMap::from([("here".into(), Arc::clone(&sends) as Arc<dyn Transport>)]);
    let backoff = Backoff::Table(vec![Duration::ZERO]);
    let policy = Policy { backoff, jitter: Jitter::None, max_attempts: 1, expires_after: None };
    let route = Route { rate: Some(Rate { per_s: 10.0 }), ..Route::new("limited", "here", policy) };
    let line = Line::new(route, &transports, Vec::new()).unwrap();
    let (store, settings) = (Arc::new(MemoryStore::default()), Settings::default());
    let engine =
        Arc::new(Engine::new(store, Arc::clone(&clock) as _, Arc::new(Silence), settings, vec![line]));
    engine.accept(vec![NewMessage::new("limited", Content::of_bytes("hello"))]).await.unwrap();

    let (_stopper, stop) = stop_pair();
    let mut work = Arc::clone(&engine).parts(stop).await.swap_remove(0);
    // Six seconds, in which the process is held up for so long whenever it reads the time.
    let mut pass = async |held_up_ms: u64| {
        for _ in 0..600 {
            clock.held_up_ms.store(held_up_ms, Ordering::Relaxed);
            assert!((&mut work).now_or_never().is_none(), "the work ended");
            clock.held_up_ms.store(0, Ordering::Relaxed);
            engine.beat().await.unwrap();
            engine.keep_gates().await.unwrap();
            clock.clock.advance(Duration::from_millis(10));
            // Tokio lets a task that never yields wait for nothing any more.
            tokio::task::yield_now().await;
        }
        sends.0.load(Ordering::Relaxed)
    };
    // A slot is open for 80 ms: it is still open at the fourth reading, and no longer at the fifth.
    assert_eq!(pass(20).await, 0, "sent after its slot had closed");
    assert_eq!(pass(1).await, 1, "a process that runs sends it");
}
