//! Three engines on one PostgreSQL share the rate of a destination, and one of them dies in the middle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::accept::NewMessage;
use redeliver_core::limit::Rate;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Content, Name, Outcome, Policy, Route};
use redeliver_engine::clock::Clock;
use redeliver_engine::emit::Silence;
use redeliver_engine::intake::Sink;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings};
use redeliver_servers::postgres::PostgresServer;
use redeliver_stores::Postgres;
use redeliver_stores::postgres::OpenOptions;

const PER_S: f64 = 20.0;
/// What one machine's scheduling may add between the moment that counts and the one that is written down.
const TOLERANCE: Duration = Duration::from_millis(20);

struct Receiver {
    starts: Arc<Mutex<Vec<Duration>>>,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Transport for Receiver {
    async fn carry(&self, _: &Envelope<'_>, _: Duration) -> Outcome {
        self.starts.lock().unwrap().push(self.clock.uptime());
        Outcome::Delivered { receipt: None }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "mx".into()
    }
}

async fn engine(url: &str, starts: &Arc<Mutex<Vec<Duration>>>) -> Arc<Engine> {
    let store = Arc::new(Postgres::open(url, OpenOptions::default()).await.unwrap());
    let clock = store.clock();
    let receiver = Receiver { starts: Arc::clone(starts), clock: Arc::clone(&clock) };
    let transports: HashMap<Name, Arc<dyn Transport>> =
        HashMap::from([("receiver".into(), Arc::new(receiver) as _)]);
    let backoff = Backoff::Table(vec![Duration::from_secs(1)]);
    let policy = Policy { backoff, jitter: Jitter::None, max_attempts: 3, expires_after: None };
    let route = Route { rate: Some(Rate { per_s: PER_S }), ..Route::new("limited", "receiver", policy) };
    let line = Line::new(route, &transports, Vec::new()).unwrap();
    Arc::new(Engine::new(store, clock, Arc::new(Silence), Settings::default(), vec![line]))
}

fn most_in(starts: &[Duration], window: Duration) -> usize {
    let in_window =
        |from: &Duration| starts.iter().filter(|at| **at >= *from && **at < *from + window).count();
    starts.iter().map(in_window).max().unwrap_or(0)
}

#[test]
fn a_rate_holds_for_three_engines_of_which_one_dies() {
    let server = PostgresServer::shared();
    let database = server.database();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut starts = runtime.block_on(async {
        let starts = Arc::new(Mutex::new(Vec::new()));
        let mut running = Vec::new();
        let mut stoppers = Vec::new();
        for _ in 0..3 {
            let engine = engine(&database.url(), &starts).await;
            let (stopper, stop) = stop_pair();
            stoppers.push(stopper);
            running.push((Arc::clone(&engine), tokio::spawn(engine.run(stop))));
        }
        let batch = vec![NewMessage::new("limited", Content::of_bytes("hello")); 600];
        running[0].0.accept(batch).await.unwrap();
        tokio::time::sleep(Duration::from_secs(7)).await;
        running[0].1.abort();
        tokio::time::sleep(Duration::from_secs(13)).await;
        let starts = starts.lock().unwrap().clone();
        stoppers.iter().for_each(redeliver_engine::stop::Stopper::stop);
        starts
    });
    starts.sort_unstable();
    let second = most_in(&starts, Duration::from_secs(1) - TOLERANCE);
    let whole = starts.last().unwrap().saturating_sub(starts[0]).as_secs_f64();
    let share = starts.len() as f64 / (whole * PER_S);
    println!("{} starts in {whole:.1} s: {second} in a second at most, {share:.2} of the rate", starts.len());
    assert!(second <= PER_S as usize, "{second} starts in a second");
    assert!(starts.len() as f64 <= (whole * PER_S).ceil(), "more than the rate over the whole run");
    assert!(share >= 0.8, "{share:.2} of the rate was used");
}
