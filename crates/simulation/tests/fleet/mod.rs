//! Three instances on one store in virtual time, and the receiver that they send to.
#![allow(dead_code, reason = "each story uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "that's how a test fails")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::accept::NewMessage;
use redeliver_core::outcome::{Blame, Failure};
use redeliver_core::{Content, Name, Outcome, Route, Timestamp};
use redeliver_engine::clock::Clock;
use redeliver_engine::emit::Silence;
use redeliver_engine::intake::Sink;
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::stop::{Stopper, stop_pair};
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings};
use redeliver_simulation::clock::{SimClock, SimHandle};
use redeliver_simulation::executor::Executor;
use redeliver_simulation::rng::Rng;

/// The sends of the whole fleet.
#[derive(Default)]
pub struct Seen {
    /// Until when the receiver can't be reached.
    pub down_until: Option<Timestamp>,
    pub starts: Vec<Timestamp>,
    /// Which instance started each.
    pub starters: Vec<usize>,
    at_once: usize,
    pub at_once_max: usize,
}

struct Receiver {
    seen: Arc<Mutex<Seen>>,
    clock: SimHandle,
    takes: Duration,
    fixed: bool,
    instance: usize,
}

struct UnderWay<'a>(&'a Mutex<Seen>);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).at_once -= 1;
    }
}

#[async_trait]
impl Transport for Receiver {
    async fn carry(&self, _: &Envelope<'_>, _: Duration) -> Outcome {
        {
            let mut seen = self.seen.lock().unwrap();
            if seen.down_until.is_some_and(|until| self.clock.now() < until) {
                let failure = Failure { blame: Blame::Connection, ..Failure::new("no connection") };
                return Outcome::Failed(failure);
            }
            seen.starts.push(self.clock.now());
            seen.starters.push(self.instance);
            seen.at_once += 1;
            seen.at_once_max = seen.at_once_max.max(seen.at_once);
        }
        let _under_way = UnderWay(&self.seen);
        self.clock.sleep(self.takes).await;
        Outcome::Delivered { receipt: None }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "mx".into()
    }

    fn fixed_destination(&self) -> Option<Name> {
        self.fixed.then(|| "mx".into())
    }
}

pub struct Fleet {
    route: Route,
    takes: Duration,
    fixed: bool,
    store: Arc<MemoryStore>,
    pub clock: Arc<SimClock>,
    pub seen: Arc<Mutex<Seen>>,
    pub executor: Executor,
    rng: Rng,
    stoppers: Vec<Stopper>,
}

impl Fleet {
    pub fn new(route: Route, takes: Duration, fixed: bool) -> Self {
        let mut fleet = Self {
            route,
            takes,
            fixed,
            store: Arc::default(),
            clock: SimClock::new(11),
            seen: Arc::default(),
            executor: Executor::new(),
            rng: Rng::new(11),
            stoppers: Vec::new(),
        };
        (0..3).for_each(|_| fleet.start());
        fleet
    }

    fn engine(&self) -> Arc<Engine> {
        let clock = SimHandle(Arc::clone(&self.clock));
        let receiver = Receiver {
            seen: Arc::clone(&self.seen),
            clock: clock.clone(),
            takes: self.takes,
            fixed: self.fixed,
            instance: self.stoppers.len(),
        };
        let transports: HashMap<Name, Arc<dyn Transport>> =
            HashMap::from([("stage".into(), Arc::new(receiver) as _)]);
        let line = Line::new(self.route.clone(), &transports, Vec::new()).unwrap();
        let store = Arc::clone(&self.store) as _;
        Arc::new(Engine::new(store, Arc::new(clock), Arc::new(Silence), Settings::default(), vec![line]))
    }

    pub fn start(&mut self) {
        let (stopper, stop) = stop_pair();
        self.stoppers.push(stopper);
        let engine = self.engine();
        self.executor.spawn(self.stoppers.len(), Box::pin(engine.run(stop)));
    }

    pub fn accept(&mut self, count: usize) {
        let engine = self.engine();
        let batch = vec![NewMessage::new("story", Content::of_bytes("hello")); count];
        self.executor.spawn(0, Box::pin(async move { drop(engine.accept(batch).await.unwrap()) }));
    }

    pub fn pass(&mut self, seconds: u64) {
        let until_ms = self.clock.uptime_ms() + seconds * 1_000;
        while self.executor.step(&self.clock, &mut self.rng, until_ms) {}
    }

    /// A minute and a half in which one instance is killed and replaced, and another stands still for 20 seconds.
    pub fn live_through_faults(&mut self) {
        self.pass(20);
        self.executor.kill(1);
        self.pass(15);
        self.start();
        self.pass(15);
        self.executor.suspend(2, self.clock.uptime_ms() + 20_000);
        self.pass(40);
    }

    /// The most starts in any window of this length.
    pub fn most_in(&self, window: Duration) -> usize {
        let starts = &self.seen.lock().unwrap().starts;
        let in_window =
            |from: &Timestamp| starts.iter().filter(|at| **at >= *from && at.since(*from) < window).count();
        starts.iter().map(in_window).max().unwrap_or(0)
    }
}
