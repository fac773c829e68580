//! Worlds of thousands of messages over a store that is slow and stays slow, so that every loop over batches runs.
//!
//! Nothing else goes wrong here: nobody is killed, receivers accept everything, and the store always answers. So no send
//! may be lost, no instance may be silent, and messages that ended may not pile up.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::accept::NewMessage;
use redeliver_core::policy::{Backoff, Jitter, Policy};
use redeliver_core::{Content, Event, Name, Outcome, Route, State, Timestamp};
use redeliver_engine::clock::Clock;
use redeliver_engine::emit::Observer;
use redeliver_engine::intake::{Accepted, Sink};
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::stop::{Stopper, stop_pair};
use redeliver_engine::store::{Store, StoreError};
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings};

use crate::clock::{SimClock, SimHandle};
use crate::executor::Executor;
use crate::rng::Rng;
use crate::run::Report;
use crate::scenario::Scenario;
use crate::store::{FaultyStore, StoreFaults};
use crate::world::{SharedWorld, World, look};

/// Messages of one world.
const MESSAGES: u64 = 5_000;
/// Messages accepted by one call.
const ACCEPTED_AT_ONCE: u64 = 500;
/// When all those expire that can't be sent in time.
const EXPIRE_MS: u64 = 20_000;
/// When everything must have ended.
const END_MS: u64 = 300_000;
/// How long a message may stay after its end: its retention, and this.
const PRUNED_WITHIN: Duration = Duration::from_secs(80);
/// The longest that an instance may go without a heartbeat. After ten seconds, its sends would count as lost.
const SILENT_MAX: Duration = Duration::from_secs(8);
const RETENTION: Duration = Duration::from_secs(5);
const CLIENTS: usize = 0;

/// Runs seeds over a memory store, a fresh one each.
pub fn crowds() -> impl FnMut(u64) -> Report {
    run
}

/// Runs the crowd of one seed.
pub fn run(seed: u64) -> Report {
    let mut rng = Rng::new(seed ^ 0xc20e_d000);
    let instances = rng.between(1, 2) as usize;
    // Each call waits twice.
    let slow_ms_max = rng.between(400, 900);
    let store = StoreFaults { absent: 0, answer_lost: 0, slow: 1_000, slow_ms_max, unheard_ms: (0, 0) };
    let scenario = Scenario { instances, store, trouble: 0, blows: 0, ..Scenario::draw(&mut Rng::new(seed)) };
    let world = World::new(seed, routes());
    let mut crowd = Crowd {
        clock: SimClock::new(seed),
        store: Arc::new(MemoryStore::default()),
        executor: Executor::new(),
        stoppers: Vec::new(),
        faults: store,
        world: Arc::clone(&world),
        rng,
    };
    for process in 1..=instances {
        crowd.start(process);
    }
    crowd.accept();
    crowd.watch();
    crowd.judge();
    let world = look(&world);
    Report { violation: world.violation.clone(), scenario, figures: world.figures.clone() }
}

struct Crowd {
    clock: Arc<SimClock>,
    store: Arc<MemoryStore>,
    executor: Executor,
    stoppers: Vec<Stopper>,
    faults: StoreFaults,
    world: SharedWorld,
    rng: Rng,
}

fn routes() -> BTreeMap<Name, Route> {
    let policy = Policy {
        backoff: Backoff::Table(vec![Duration::from_secs(5)]),
        jitter: Jitter::None,
        max_attempts: 3,
        expires_after: None,
    };
    let base = |name: &str| Route {
        lease: Duration::from_secs(60),
        send_timeout: Duration::from_secs(5),
        concurrency_max: 200,
        retention: RETENTION,
        key_retention: Some(Duration::from_secs(30)),
        ..Route::new(name, "direct", policy.clone())
    };
    let routes = [
        Route { dead_letter: Some("letters".into()), concurrency_max: 4, ..base("expiring") },
        base("letters"),
        // Its sends last long enough to be under way whenever a heartbeat is missed.
        Route { concurrency_max: 40, ..base("steady") },
    ];
    routes.into_iter().map(|route| (route.name.clone(), route)).collect()
}

impl Crowd {
    fn engine(&self, process: usize) -> Arc<Engine> {
        let clock = SimHandle(Arc::clone(&self.clock));
        let receiver = Receiver { world: Arc::clone(&self.world), clock: clock.clone(), process };
        let transports: HashMap<Name, Arc<dyn Transport>> =
            HashMap::from([("direct".into(), Arc::new(receiver) as Arc<dyn Transport>)]);
        let lines = look(&self.world)
            .routes
            .values()
            .filter_map(|route| Line::new(route.clone(), &transports, Vec::new()).ok())
            .collect();
        let store = FaultyStore {
            inner: Arc::clone(&self.store) as Arc<dyn Store>,
            world: Arc::clone(&self.world),
            clock: clock.clone(),
            process,
            faults: self.faults,
        };
        let observer = Arc::new(Witness { world: Arc::clone(&self.world), process });
        let settings = Settings {
            watch_interval: Duration::from_secs(10),
            prune_interval: Duration::from_secs(20),
            ..Settings::default()
        };
        Arc::new(Engine::new(Arc::new(store), Arc::new(clock), observer, settings, lines))
    }

    fn start(&mut self, process: usize) {
        let (stopper, stop) = stop_pair();
        self.stoppers.push(stopper);
        let engine = self.engine(process);
        self.executor.spawn(process, Box::pin(engine.run(stop)));
    }

    /// Most messages can't be sent before they expire, all at the same time; the others are sent steadily.
    fn accept(&mut self) {
        let api = self.engine(CLIENTS);
        let now = SimHandle(Arc::clone(&self.clock)).now();
        let at = |ms: u64| now.plus(Duration::from_millis(ms));
        for first in (0..MESSAGES).step_by(ACCEPTED_AT_ONCE as usize) {
            let batch: Vec<NewMessage> = (first..first + ACCEPTED_AT_ONCE)
                .map(|n| {
                    let key = Some(format!("key-{n}").into());
                    let content = Content::of_bytes("hello");
                    if self.rng.chance(800) {
                        let (due_at, expires_at) = (Some(at(EXPIRE_MS - 500)), Some(at(EXPIRE_MS)));
                        NewMessage { key, due_at, expires_at, ..NewMessage::new("expiring", content) }
                    } else {
                        let due_at = Some(at(self.rng.between(0, 3 * EXPIRE_MS)));
                        NewMessage { key, due_at, ..NewMessage::new("steady", content) }
                    }
                })
                .collect();
            let (api, world) = (Arc::clone(&api), Arc::clone(&self.world));
            self.executor.spawn(
                CLIENTS,
                Box::pin(async move {
                    let answers = api.accept(batch).await.unwrap_or_default();
                    let ids = answers.into_iter().filter_map(|answer| match answer {
                        Accepted::New(id) => Some(id),
                        _ => None,
                    });
                    let mut world = look(&world);
                    world.acked.extend(ids);
                    world.figures.accepted = world.acked.len() as u64;
                }),
            );
        }
    }

    /// Lets the time pass, and looks once a second.
    fn watch(&mut self) {
        let start_ms = self.clock.uptime_ms();
        for second in 1..=END_MS / 1_000 {
            self.step_until(start_ms + second * 1_000);
            let now = SimHandle(Arc::clone(&self.clock)).now();
            let mut world = look(&self.world);
            world.check_beats(now);
            world.check_pruned(now);
            if world.violation.is_some() {
                return;
            }
        }
    }

    fn step_until(&mut self, until_ms: u64) {
        while self.executor.step(&self.clock, &mut self.rng, until_ms) {}
    }

    fn judge(&mut self) {
        if look(&self.world).violation.is_some() {
            return;
        }
        self.stoppers.iter().for_each(Stopper::stop);
        let until_ms = self.clock.uptime_ms() + 60_000;
        self.executor.kill(CLIENTS);
        self.step_until(until_ms);
        let mut world = look(&self.world);
        if (1..=self.stoppers.len()).any(|process| self.executor.is_alive(process)) {
            world.violate(|| "an engine did not end when it was told to".to_owned());
        }
        if world.acked.len() as u64 != MESSAGES {
            world.violate(|| "the store always answers, and yet messages were not accepted".to_owned());
        }
        world.check_the_end();
    }
}

impl World {
    fn check_beats(&mut self, now: Timestamp) {
        let silent = self.beats.iter().map(|(instance, at)| (now.since(*at), *instance)).max();
        if let Some((silence, instance)) = silent.filter(|(silence, _)| *silence > SILENT_MAX) {
            self.violate(|| format!("{instance} was silent for {silence:?} although its store answers"));
        }
        let lost = self.figures.lost;
        if lost > 0 {
            self.violate(|| format!("{lost} sends counted as lost although every receiver answers"));
        }
    }

    fn check_pruned(&mut self, now: Timestamp) {
        let is_late = |message: &&redeliver_core::Message| match message.state {
            State::Delivered { at, .. } => now.since(at) > RETENTION + PRUNED_WITHIN,
            _ => false,
        };
        let late = self.mirror.values().filter(is_late).count();
        if late > 0 {
            self.violate(|| {
                format!("{late} messages are still there {PRUNED_WITHIN:?} past their retention")
            });
        }
    }
}

/// Accepts everything, after a while.
struct Receiver {
    world: SharedWorld,
    clock: SimHandle,
    process: usize,
}

#[async_trait]
impl Transport for Receiver {
    async fn carry(&self, envelope: &Envelope<'_>, _: Duration) -> Outcome {
        let destination = self.destination(envelope);
        look(&self.world).carrying(self.process, envelope.message, &[0], &destination, self.clock.now());
        let ms = look(&self.world).rng.between(500, 3_500);
        if &*envelope.message.route == "steady" {
            self.clock.sleep(Duration::from_millis(ms)).await;
        }
        look(&self.world).received(&envelope.message.id, &[0]);
        Outcome::Delivered { receipt: None }
    }

    /// So that the time of the first send is kept.
    fn carries_emails(&self) -> bool {
        true
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "here".into()
    }
}

struct Witness {
    world: SharedWorld,
    process: usize,
}

impl Observer for Witness {
    fn observe(&self, event: &Event) {
        look(&self.world).told(self.process, event);
    }

    fn store_failed(&self, doing: &'static str, error: &StoreError) {
        look(&self.world).violate(|| format!("the store failed although it is only slow: {doing}: {error}"));
    }
}
