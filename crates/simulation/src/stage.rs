//! A stage for stories: one engine over the memory store, a transport that a closure plays, and time that the story
//! moves.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::accept::NewMessage;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::quota::Whose;
use redeliver_core::{Content, Event, Message, MessageId, Name, Outcome, Policy, Route, Timestamp};
use redeliver_engine::clock::Clock;
use redeliver_engine::emit::{Counted, Observer, Planned};
use redeliver_engine::gate::Gate;
use redeliver_engine::intake::{Accepted, Sink};
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::stop::{Stopper, stop_pair};
use redeliver_engine::store::Store;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings};

use crate::clock::{SimClock, SimHandle};
use crate::executor::Executor;
use crate::rng::Rng;

/// What a carrying comes to, after how long.
pub type Act = (Duration, Outcome);

/// One carrying as the receiver saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Carrying {
    /// When it began.
    pub at: Timestamp,
    /// Of which message, as it stood.
    pub message: Message,
    /// What it said.
    pub content: Content,
    /// Where to.
    pub destination: Name,
}

/// What the receiver has seen and heard.
#[derive(Default)]
pub struct Log {
    /// Carryings, in the order in which they began.
    pub carryings: Vec<Carrying>,
    /// Carryings at once, at most, by destination.
    pub at_once_max: HashMap<Name, usize>,
    /// Events, in order.
    pub events: Vec<Event>,
    /// What became of mails and quotas, in order.
    pub quotas: Vec<(Whose, Counted)>,
    /// Mails that each part of a campaign scheduled, and those that it knew before.
    pub planned: Vec<(u64, u64)>,
    at_once: HashMap<Name, usize>,
}

type Play = Box<dyn Fn(&Carrying) -> Act + Send + Sync>;

struct Actor {
    play: Play,
    clock: SimHandle,
    log: Arc<Mutex<Log>>,
    fixed: Option<Name>,
}

/// One engine, its receiver and its time.
pub struct Stage {
    /// The engine.
    pub engine: Arc<Engine>,
    /// Its store.
    pub store: Arc<MemoryStore>,
    clock: Arc<SimClock>,
    log: Arc<Mutex<Log>>,
    executor: Executor,
    rng: Rng,
    stopper: Stopper,
}

/// A route to the stage's receiver with waits of ten seconds and four tries.
pub fn route() -> Route {
    let policy = Policy {
        backoff: Backoff::Table(vec![Duration::from_secs(10)]),
        jitter: Jitter::None,
        max_attempts: 4,
        expires_after: None,
    };
    Route { lease: Duration::from_secs(30), ..Route::new("story", "stage", policy) }
}

/// A message to a destination.
pub fn to(destination: &str) -> NewMessage {
    let mut content = Content::of_bytes("hello");
    content.target = Some(destination.into());
    NewMessage::new("story", content)
}

impl Stage {
    /// Sets the stage: `play` says what each carrying comes to.
    pub fn new(route: Route, play: impl Fn(&Carrying) -> Act + Send + Sync + 'static) -> Self {
        Self::with_gates(route, Vec::new(), play)
    }

    /// The same at a pace at which days pass quickly: the engine looks around once a minute, and not many times a second.
    pub fn at_ease(route: Route, play: impl Fn(&Carrying) -> Act + Send + Sync + 'static) -> Self {
        Self::at_pace(Duration::from_secs(60), route, play)
    }

    /// The same at a pace of the story's own: so often does the engine look around.
    pub fn at_pace(
        pace: Duration,
        route: Route,
        play: impl Fn(&Carrying) -> Act + Send + Sync + 'static,
    ) -> Self {
        let settings = Settings {
            poll_interval: 60 * pace,
            heartbeat: pace,
            keep_interval: pace,
            watch_interval: 60 * pace,
            prune_interval: 60 * pace,
            ..Settings::default()
        };
        Self::set(Route { lease: 10 * pace, ..route }, Vec::new(), settings, play)
    }

    /// The same with gates of the story's own.
    pub fn with_gates(
        route: Route,
        gates: Vec<Arc<dyn Gate>>,
        play: impl Fn(&Carrying) -> Act + Send + Sync + 'static,
    ) -> Self {
        Self::set(route, gates, Settings::default(), play)
    }

    fn set(
        route: Route,
        gates: Vec<Arc<dyn Gate>>,
        settings: Settings,
        play: impl Fn(&Carrying) -> Act + Send + Sync + 'static,
    ) -> Self {
        let clock = SimClock::new(7);
        let handle = SimHandle(Arc::clone(&clock));
        let log = Arc::new(Mutex::new(Log::default()));
        let fixed = route.lanes[0].target.clone();
        let actor = Actor { play: Box::new(play), clock: handle.clone(), log: Arc::clone(&log), fixed };
        let transports: HashMap<Name, Arc<dyn Transport>> =
            HashMap::from([("stage".into(), Arc::new(actor) as _)]);
        let line = Line::new(route, &transports, gates).expect("every lane travels by the stage's transport");
        let store = Arc::new(MemoryStore::default());
        let witness = Arc::new(Witness(Arc::clone(&log)));
        let engine = Engine::new(
            Arc::clone(&store) as Arc<dyn Store>,
            Arc::new(handle),
            witness,
            settings,
            vec![line],
        );
        let engine = Arc::new(engine.with_campaigns(Arc::clone(&store) as _));
        let (stopper, stop) = stop_pair();
        let mut executor = Executor::new();
        executor.spawn(1, Box::pin(Arc::clone(&engine).run(stop)));
        Self { engine, store, clock, log, executor, rng: Rng::new(7), stopper }
    }

    /// Lets this much time pass.
    pub fn pass(&mut self, span: Duration) {
        let until_ms = self.clock.uptime_ms() + span.as_millis() as u64;
        while self.executor.step(&self.clock, &mut self.rng, until_ms) {}
    }

    /// Begins something beside the engine that may take its time.
    pub fn begin(&mut self, deed: impl Future<Output = ()> + 'static) {
        self.executor.spawn(2, Box::pin(deed));
    }

    /// Does something that takes no time of its own, beside the engine.
    pub fn now<T: 'static>(&mut self, deed: impl Future<Output = T> + 'static) -> T {
        let answer = Arc::new(Mutex::new(None));
        let told = Arc::clone(&answer);
        let task: Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move {
            let value = deed.await;
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        });
        self.executor.spawn(0, task);
        let until_ms = self.clock.uptime_ms();
        while self.executor.step(&self.clock, &mut self.rng, until_ms) {}
        answer.lock().unwrap_or_else(PoisonError::into_inner).take().expect("the deed takes no time")
    }

    /// Accepts messages, and gives their ids.
    pub fn accept(&mut self, batch: Vec<NewMessage>) -> Vec<MessageId> {
        let engine = Arc::clone(&self.engine);
        let answers = self.now(async move { engine.accept(batch).await });
        let id = |answer: Accepted| match answer {
            Accepted::New(id)
            | Accepted::Duplicate(id)
            | Accepted::Reentered(id)
            | Accepted::Conflict(id) => Some(id),
            Accepted::NoRoute => None,
        };
        answers.unwrap_or_default().into_iter().filter_map(id).collect()
    }

    /// A message as it stands.
    pub fn message(&mut self, id: &MessageId) -> Message {
        let (store, id) = (Arc::clone(&self.store), id.clone());
        let found = self.now(async move { store.get(id).await });
        found.ok().flatten().expect("the story speaks of a message that is there")
    }

    /// What the receiver has seen and heard so far.
    pub fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time on the stage.
    pub fn time(&self) -> Timestamp {
        SimHandle(Arc::clone(&self.clock)).now()
    }

    /// Tells the engine to stop.
    pub fn stop(&self) {
        self.stopper.stop();
    }

    /// Whether the engine still runs.
    pub fn is_running(&self) -> bool {
        self.executor.is_alive(1)
    }
}

#[async_trait]
impl Transport for Actor {
    async fn carry(&self, envelope: &Envelope<'_>, _: Duration) -> Outcome {
        let destination = self.destination(envelope);
        let at = self.clock.now();
        let (wait, outcome) = {
            let carrying = Carrying {
                at,
                message: envelope.message.clone(),
                content: envelope.content.clone(),
                destination: destination.clone(),
            };
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.carryings.push(carrying.clone());
            let count = log.at_once.entry(destination.clone()).or_insert(0);
            *count += 1;
            let count = *count;
            let most = log.at_once_max.entry(destination.clone()).or_insert(0);
            *most = count.max(*most);
            drop(log);
            (self.play)(&carrying)
        };
        if !wait.is_zero() {
            self.clock.sleep(wait).await;
        }
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = log.at_once.get_mut(&destination) {
            *count -= 1;
        }
        outcome
    }

    fn destination(&self, envelope: &Envelope<'_>) -> Name {
        envelope.target.unwrap_or("nowhere").into()
    }

    fn fixed_destination(&self) -> Option<Name> {
        self.fixed.clone()
    }
}

struct Witness(Arc<Mutex<Log>>);

impl Witness {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Witness {
    fn observe(&self, event: &Event) {
        self.log().events.push(event.clone());
    }

    fn quota(&self, whose: Whose, counted: Counted) {
        self.log().quotas.push((whose, counted));
    }

    fn planned(&self, part: &Planned<'_>) {
        self.log().planned.push((part.scheduled, part.skipped));
    }
}
