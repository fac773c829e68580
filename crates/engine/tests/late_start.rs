//! A send whose process was held up until its slot had closed does not start.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use redeliver_core::accept::NewMessage;
use redeliver_core::limit::Rate;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Content, Name, Outcome, Policy, Route, Timestamp};
use redeliver_engine::clock::{Clock, Sleep, WallClock};
use redeliver_engine::emit::Silence;
use redeliver_engine::intake::Sink;
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings};

/// A clock of a process that is held up whenever it reads the time.
struct Halting {
    ms: Arc<AtomicI64>,
    held_up_ms: AtomicI64,
    bits: Arc<WallClock>,
}

impl Clock for Halting {
    fn now(&self) -> Timestamp {
        let held_up_ms = self.held_up_ms.load(Ordering::Relaxed);
        Timestamp::from_ms(self.ms.fetch_add(held_up_ms, Ordering::Relaxed))
    }

    /// Stands still: this is not about leases.
    fn uptime(&self) -> Duration {
        Duration::from_secs(1)
    }

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
    let clock = Arc::new(Halting {
        ms: Arc::new(AtomicI64::new(1_000_000)),
        // A slot is open for 80 ms: it is still open at one reading, and no longer at the next.
        held_up_ms: AtomicI64::new(50),
        bits: WallClock::new(Timestamp::default()),
    });
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
    for _ in 0..1_000 {
        assert!((&mut work).now_or_never().is_none(), "the work ended");
        engine.keep_gates().await.unwrap();
    }
    assert_eq!(sends.0.load(Ordering::Relaxed), 0, "sent after its slot had closed");

    clock.held_up_ms.store(1, Ordering::Relaxed);
    for _ in 0..1_000 {
        assert!((&mut work).now_or_never().is_none(), "the work ended");
        engine.keep_gates().await.unwrap();
    }
    assert_eq!(sends.0.load(Ordering::Relaxed), 1, "a process that runs sends it");
}
