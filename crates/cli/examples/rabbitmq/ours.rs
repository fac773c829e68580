//! The same by Redeliver, with a SQLite store of its own for each job: everything that is accepted or settled is committed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::join_all;
use redeliver_core::accept::NewMessage;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::report::Report;
use redeliver_core::{Content, Event, Policy, Route, Timestamp};
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_engine::emit::Observer;
use redeliver_engine::intake::{Accepted, Intake, Sink, Told};
use redeliver_engine::stop::{Stopper, stop_pair};
use redeliver_engine::store::StoreError;
use redeliver_engine::transport::Transport;
use redeliver_engine::{Engine, Line, Settings};
use redeliver_stores::{OpenOptions, Sqlite};
use redeliver_transports::rabbitmq::{
    Broker, BrokerConfig, RabbitmqConfig, RabbitmqIntake, RabbitmqIntakeConfig, RabbitmqTransport,
};
use tempfile::TempDir;

use crate::{BATCH, BODY_BYTES, IN_FLIGHT, PREFETCH};

/// Ten times what the document of broker retries asks for: so many a second for so long, then so many at once.
const SUSTAINED_PER_S: usize = 500;
const SUSTAINED_S: usize = 10;
const BURST: usize = 2_000;

/// Redeliver on a broker.
pub struct Ours {
    broker: BrokerConfig,
    clock: Arc<dyn Clock>,
}

impl Ours {
    pub fn to(url: &str) -> Self {
        let broker = BrokerConfig { broker: Broker::parse(url).ok(), ..BrokerConfig::default() };
        Self { broker, clock: WallClock::new(Timestamp::default()) }
    }

    /// Carries so many messages that are all due: claimed, published, confirmed, written down; how many a second.
    pub async fn republish(&self, queue: &str, count: usize) -> f64 {
        let rig = self.rig();
        let all: Vec<NewMessage> = (0..count).map(|n| message(n, queue, None)).collect();
        for batch in all.chunks(BATCH) {
            rig.engine.accept(batch.to_vec()).await.unwrap();
        }
        let begun = Instant::now();
        rig.run_until_delivered(count).await;
        count as f64 / begun.elapsed().as_secs_f64()
    }

    /// Takes so many messages from a queue into the store; how many a second.
    pub async fn take_in(&self, queue: &str, count: usize) -> f64 {
        let rig = self.rig();
        let config = RabbitmqIntakeConfig {
            broker: self.broker.clone(),
            queue: queue.to_owned(),
            route: "retry".into(),
            rejects: "retry".into(),
            prefetch: PREFETCH,
            batch_max: BATCH,
            ..RabbitmqIntakeConfig::default()
        };
        let intake = RabbitmqIntake::new("bench", config, Arc::clone(&self.clock)).unwrap();
        let (stopper, stop) = stop_pair();
        let sink = Counting { engine: rig.engine, taken: AtomicUsize::new(0), wanted: count, stopper };
        let begun = Instant::now();
        intake.run(&sink, stop).await.unwrap();
        count as f64 / begun.elapsed().as_secs_f64()
    }

    /// Says how late messages are under the document's load ten times over.
    pub async fn lateness(&self, queue: &str) {
        let rig = self.rig();
        let sustained = SUSTAINED_PER_S * SUSTAINED_S;
        let first = self.clock.now().plus(Duration::from_secs(3));
        let at = |n: usize| first.plus(Duration::from_millis((n * 1_000 / SUSTAINED_PER_S) as u64));
        let burst_at = first.plus(Duration::from_secs(SUSTAINED_S as u64 + 1));
        let all = (0..sustained).map(|n| message(n, queue, Some(at(n))));
        let all = all.chain((sustained..sustained + BURST).map(|n| message(n, queue, Some(burst_at))));
        rig.engine.accept(all.collect()).await.unwrap();
        rig.run_until_delivered(sustained + BURST).await;
        let (burst, steady) = rig.seen.late().into_iter().partition(|(due_at, _)| *due_at == burst_at);
        say_late(&format!("{SUSTAINED_PER_S} a second"), steady);
        say_late(&format!("{BURST} at once"), burst);
    }

    fn rig(&self) -> Rig {
        let directory = tempfile::tempdir().unwrap();
        let store = Sqlite::open(directory.path().join("bench.db"), OpenOptions::default()).unwrap();
        let config = RabbitmqConfig { broker: self.broker.clone(), ..RabbitmqConfig::default() };
        let transport = RabbitmqTransport::new("rabbitmq", config, Arc::clone(&self.clock)).unwrap();
        let transports: HashMap<_, Arc<dyn Transport>> =
            HashMap::from([("rabbitmq".into(), Arc::new(transport) as Arc<dyn Transport>)]);
        let line = Line::new(route(), &transports, Vec::new()).ok().unwrap();
        let seen = Arc::new(Seen::by(&self.clock));
        let (clock, observer) = (Arc::clone(&self.clock), Arc::clone(&seen) as Arc<dyn Observer>);
        let engine = Engine::new(Arc::new(store), clock, observer, Settings::default(), vec![line]);
        Rig { engine: Arc::new(engine), seen, _directory: directory }
    }
}

/// An engine with one route to the broker.
struct Rig {
    engine: Arc<Engine>,
    seen: Arc<Seen>,
    _directory: TempDir,
}

impl Rig {
    async fn run_until_delivered(&self, count: usize) {
        let (stopper, stop) = stop_pair();
        let parts = Arc::clone(&self.engine).parts(stop).await;
        let tasks: Vec<_> = parts.into_iter().map(tokio::spawn).collect();
        while self.seen.delivered.load(Ordering::Relaxed) < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stopper.stop();
        join_all(tasks).await;
    }
}

/// The route of the profile broker-retry.
fn route() -> Route {
    let backoff =
        Backoff::Exponential { base: Duration::from_secs(2), factor: 2.0, cap: Duration::from_secs(60) };
    let jitter = Jitter::Span(Duration::from_secs(1));
    let policy = Policy { backoff, jitter, max_attempts: 4, expires_after: None };
    Route { concurrency_max: IN_FLIGHT, ..Route::new("retry", "rabbitmq", policy) }
}

fn message(n: usize, queue: &str, due_at: Option<Timestamp>) -> NewMessage {
    let content = Content { target: Some(queue.into()), ..Content::of_bytes(vec![7; BODY_BYTES]) };
    NewMessage { key: Some(format!("m-{n}").into()), due_at, ..NewMessage::new("retry", content) }
}

/// From due to confirmed and committed.
fn say_late(what: &str, late: Vec<(Timestamp, Duration)>) {
    let mut late: Vec<Duration> = late.into_iter().map(|(_, late)| late).collect();
    late.sort_unstable();
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize].as_millis();
    println!("lateness, {what}: p50 {} ms, p99 {} ms, longest {} ms", at(0.5), at(0.99), at(1.0));
}

/// What became of the messages.
struct Seen {
    clock: Arc<dyn Clock>,
    delivered: AtomicUsize,
    late: Mutex<Vec<(Timestamp, Duration)>>,
}

impl Seen {
    fn by(clock: &Arc<dyn Clock>) -> Self {
        Self { clock: Arc::clone(clock), delivered: AtomicUsize::new(0), late: Mutex::default() }
    }

    /// When each was due, and how much later it was delivered.
    fn late(&self) -> Vec<(Timestamp, Duration)> {
        std::mem::take(&mut *self.late.lock().unwrap())
    }
}

impl Observer for Seen {
    fn observe(&self, event: &Event) {
        if event.kind.name() == "message.delivered" {
            self.late.lock().unwrap().push((event.due_at, self.clock.now().since(event.due_at)));
            self.delivered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Passes on to an engine, and says stop when it has taken everything.
struct Counting {
    engine: Arc<Engine>,
    taken: AtomicUsize,
    wanted: usize,
    stopper: Stopper,
}

#[async_trait]
impl Sink for Counting {
    async fn accept(&self, batch: Vec<NewMessage>) -> Result<Vec<Accepted>, StoreError> {
        let answers = self.engine.accept(batch).await?;
        if self.taken.fetch_add(answers.len(), Ordering::Relaxed) + answers.len() >= self.wanted {
            self.stopper.stop();
        }
        Ok(answers)
    }

    async fn report(&self, batch: Vec<Report>) -> Result<Vec<Told>, StoreError> {
        Sink::report(&*self.engine, batch).await
    }
}
