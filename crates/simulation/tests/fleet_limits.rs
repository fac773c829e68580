//! Three instances share the limits of a destination, while some of them are killed or stand still.
#![allow(clippy::unwrap_used, reason = "that's how a test fails")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::accept::NewMessage;
use redeliver_core::limit::Rate;
use redeliver_core::planted::{Bug, plant};
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
use redeliver_simulation::stage::route;

/// The sends of the whole fleet.
#[derive(Default)]
struct Seen {
    starts: Vec<Timestamp>,
    at_once: usize,
    at_once_max: usize,
}

struct Receiver {
    seen: Arc<Mutex<Seen>>,
    clock: SimHandle,
    takes: Duration,
    fixed: bool,
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
            seen.starts.push(self.clock.now());
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

struct Fleet {
    route: Route,
    takes: Duration,
    fixed: bool,
    store: Arc<MemoryStore>,
    clock: Arc<SimClock>,
    seen: Arc<Mutex<Seen>>,
    executor: Executor,
    rng: Rng,
    stoppers: Vec<Stopper>,
}

impl Fleet {
    fn new(route: Route, takes: Duration, fixed: bool) -> Self {
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
        };
        let transports: HashMap<Name, Arc<dyn Transport>> =
            HashMap::from([("stage".into(), Arc::new(receiver) as _)]);
        let line = Line::new(self.route.clone(), &transports, Vec::new()).unwrap();
        let store = Arc::clone(&self.store) as _;
        Arc::new(Engine::new(store, Arc::new(clock), Arc::new(Silence), Settings::default(), vec![line]))
    }

    fn start(&mut self) {
        let (stopper, stop) = stop_pair();
        self.stoppers.push(stopper);
        let engine = self.engine();
        self.executor.spawn(self.stoppers.len(), Box::pin(engine.run(stop)));
    }

    fn accept(&mut self, count: usize) {
        let engine = self.engine();
        let batch = vec![NewMessage::new("story", Content::of_bytes("hello")); count];
        self.executor.spawn(0, Box::pin(async move { drop(engine.accept(batch).await.unwrap()) }));
    }

    fn pass(&mut self, seconds: u64) {
        let until_ms = self.clock.uptime_ms() + seconds * 1_000;
        while self.executor.step(&self.clock, &mut self.rng, until_ms) {}
    }

    /// A minute and a half in which one instance is killed and replaced, and another stands still for 20 seconds.
    fn live_through_faults(&mut self) {
        self.pass(20);
        self.executor.kill(1);
        self.pass(15);
        self.start();
        self.pass(15);
        self.executor.suspend(2, self.clock.uptime_ms() + 20_000);
        self.pass(40);
    }

    /// The most starts in any window of this length.
    fn most_in(&self, window: Duration) -> usize {
        let starts = &self.seen.lock().unwrap().starts;
        let in_window =
            |from: &Timestamp| starts.iter().filter(|at| **at >= *from && at.since(*from) < window).count();
        starts.iter().map(in_window).max().unwrap_or(0)
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_rate_holds_for_the_fleet_and_is_used() {
    for (per_s, fixed) in
        [(10.0, false), (10.0, true), (50.0, true), (50.0, false), (0.5, false), (1.5, true)]
    {
        let limited = Route { rate: Some(Rate { per_s }), ..route() };
        let mut fleet = Fleet::new(limited, Duration::from_millis(30), fixed);
        fleet.accept((per_s * 120.0) as usize);
        fleet.live_through_faults();
        let (second, minute) = (fleet.most_in(Duration::from_secs(1)), fleet.most_in(MINUTE));
        let all = fleet.seen.lock().unwrap().starts.len();
        println!("{per_s}/s, fixed {fixed}: {second} in a second, {minute} in a minute, {all} in 90 s");
        assert!(second <= per_s.ceil() as usize, "{second} in a second at {per_s}/s, fixed: {fixed}");
        assert!(
            minute <= (per_s * 60.0).ceil() as usize,
            "{minute} in a minute at {per_s}/s, fixed: {fixed}"
        );
        let share = all as f64 / (per_s * 90.0);
        assert!(share >= 0.8, "{share:.2} of {per_s}/s was used, fixed: {fixed}");
    }
}

#[test]
fn a_concurrency_limit_holds_for_the_fleet_and_is_used() {
    for fixed in [true, false] {
        let limited = Route { destination_concurrency_max: Some(3), ..route() };
        let mut fleet = Fleet::new(limited, Duration::from_secs(2), fixed);
        fleet.accept(200);
        fleet.live_through_faults();
        let (at_once_max, all) = {
            let seen = fleet.seen.lock().unwrap();
            (seen.at_once_max, seen.starts.len())
        };
        println!("fixed {fixed}: {at_once_max} at once, {all} in 90 s");
        // A process that stands still can't end what it has sent; its permits go to others meanwhile.
        assert!(at_once_max <= 3 + 3, "{at_once_max} at once, fixed: {fixed}");
        assert!(all >= 80, "{all} of 135 sends of two seconds, fixed: {fixed}");
    }
}

#[test]
fn limits_that_hold_per_instance_are_caught() {
    plant(Some(Bug::LimitsHoldPerInstance));
    let limited = Route { rate: Some(Rate { per_s: 10.0 }), ..route() };
    let mut fleet = Fleet::new(limited, Duration::from_millis(30), false);
    fleet.accept(600);
    fleet.pass(20);
    plant(None);
    assert!(fleet.most_in(Duration::from_secs(1)) > 10, "the planted bug shows");
}
