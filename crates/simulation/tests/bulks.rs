//! Bulk operations of several instances on one store.
#![allow(clippy::unwrap_used, reason = "that's how a test fails")]

use std::collections::{BTreeMap, HashMap};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::accept::NewMessage;
use redeliver_core::bulk::{Bulk, Pace, Standing, Which};
use redeliver_core::operate::Action;
use redeliver_core::{Content, Name, Outcome, Timestamp};
use redeliver_engine::clock::Clock;
use redeliver_engine::emit::Silence;
use redeliver_engine::intake::{Accepted, Sink};
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::store::Store;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings};
use redeliver_simulation::clock::{SimClock, SimHandle};
use redeliver_simulation::stage::route;
use redeliver_simulation::store::{FaultyStore, StoreFaults};
use redeliver_simulation::world::World;

fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Carries nothing: nothing is due.
struct Nowhere;

#[async_trait]
impl Transport for Nowhere {
    async fn carry(&self, _: &Envelope<'_>, _: Duration) -> Outcome {
        Outcome::Delivered { receipt: None }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "nowhere".into()
    }
}

fn engine(store: Arc<dyn Store>, clock: &Arc<SimClock>) -> Engine {
    let nowhere: Arc<dyn Transport> = Arc::new(Nowhere);
    let line = Line::new(route(), &HashMap::from([("stage".into(), nowhere)]), Vec::new()).unwrap();
    let clock = Arc::new(SimHandle(Arc::clone(clock)));
    Engine::new(store, clock, Arc::new(Silence), Settings::default(), vec![line])
}

fn at_once<T>(future: impl Future<Output = T>) -> T {
    poll(pin!(future)).unwrap()
}

#[test]
fn whoever_counts_for_longer_than_they_hold_an_operation_leaves_it_to_whoever_went_on() {
    let (clock, store) = (SimClock::new(1), Arc::new(MemoryStore::default()));
    let slow = FaultyStore {
        inner: Arc::clone(&store) as Arc<dyn Store>,
        world: World::new(1, BTreeMap::new()),
        clock: SimHandle(Arc::clone(&clock)),
        process: 1,
        faults: StoreFaults {
            absent: 0,
            answer_lost: 0,
            slow: 1_000,
            slow_ms_max: 5_000,
            unheard_ms: (0, 0),
        },
    };
    let (ann, bob) = (engine(Arc::new(slow), &clock), engine(store.clone(), &clock));
    let later = || NewMessage {
        due_at: Some(Timestamp::MAX),
        ..NewMessage::new("story", Content::of_bytes("hello"))
    };
    let id = |accepted: Accepted| match accepted {
        Accepted::New(id) => Some(id.to_string().into()),
        _ => None,
    };
    let accepted = at_once(bob.accept(vec![later(), later(), later()])).unwrap();
    let now = SimHandle(Arc::clone(&clock)).now();
    let which = Which { ids: accepted.into_iter().filter_map(id).collect(), ..Which::default() };
    let pace = Pace { rate_per_s: 50, is_careful: false };
    let bulk = Bulk::new("b", "ada", Action::Cancel, which, pace, now);
    assert!(at_once(store.put_bulk(bulk, None)).unwrap());
    let known = || at_once(store.bulk("b".into())).unwrap().unwrap();
    let mut counting = pin!(ann.bulk_tick());
    while known().held.is_none() {
        assert!(poll(counting.as_mut()).is_none());
        clock.advance(u64::MAX);
    }
    let mut a_while = pin!(SimHandle(Arc::clone(&clock)).sleep(Duration::from_secs(11)));
    while poll(a_while.as_mut()).is_none() {
        clock.advance(u64::MAX);
    }
    at_once(bob.bulk_tick()).unwrap();
    assert_eq!((known().standing, known().done, known().skipped), (Standing::Done, 3, 0));
    while poll(counting.as_mut()).is_none() {
        clock.advance(u64::MAX);
    }
    assert_eq!((known().standing, known().done, known().skipped), (Standing::Done, 3, 0));
}
