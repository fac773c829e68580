//! Calls that come together share a statement, and nothing else.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redeliver_conformance::make::{id, keyed, message, row};
use redeliver_core::change::NewRow;
use redeliver_engine::store::{Inserted, Store, StoreError};
use redeliver_servers::postgres::{Database, PostgresServer};
use redeliver_stores::Postgres;
use redeliver_stores::postgres::OpenOptions;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

/// The longest that anything here is waited for.
const WITHIN: Duration = Duration::from_secs(60);

/// Statements that may be under way at once.
const STATEMENTS: usize = 2;

fn run(story: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(WITHIN * 2, story).await }).unwrap();
}

/// A store whose writers wait for as long as somebody holds its table.
struct Stage {
    store: Arc<Postgres>,
    holder: Client,
    /// Not in a transaction, within which what others do never changes.
    watcher: Client,
    begun: Arc<AtomicUsize>,
}

type Answer = JoinHandle<Result<Vec<Inserted>, StoreError>>;

impl Stage {
    async fn new(database: &Database<'_>) -> Self {
        let options =
            OpenOptions { lock_timeout: WITHIN, statement_timeout: WITHIN, ..OpenOptions::default() };
        let store = Arc::new(Postgres::open(&database.url(), options).await.unwrap());
        let (holder, watcher) = (connect(database).await, connect(database).await);
        Self { store, holder, watcher, begun: Arc::default() }
    }

    /// Has every writer wait, each with a call of its own.
    async fn hold(&self) -> Vec<Answer> {
        self.holder
            .batch_execute("BEGIN; LOCK TABLE redeliver.redeliver_messages IN EXCLUSIVE MODE")
            .await
            .unwrap();
        let mut answers = Vec::new();
        for n in 1..=STATEMENTS {
            answers.push(self.insert(vec![row(message(9_000 + n as u32))]));
            self.until_waiting(n).await;
        }
        answers
    }

    async fn let_go(&self) {
        self.holder.batch_execute("COMMIT").await.unwrap();
    }

    async fn until_waiting(&self, count: usize) {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        self.until(async || self.watcher.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == count as i64)
            .await;
    }

    async fn until(&self, mut is_so: impl AsyncFnMut() -> bool) {
        let asking = async {
            while !is_so().await {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(WITHIN, asking).await.unwrap();
    }

    /// Calls, without waiting for the answer.
    fn insert(&self, rows: Vec<NewRow>) -> Answer {
        let (store, begun) = (self.store.clone(), self.begun.clone());
        tokio::spawn(async move {
            begun.fetch_add(1, Ordering::Relaxed);
            store.insert(rows).await
        })
    }

    async fn until_called(&self, count: usize) {
        self.until(async || self.begun.load(Ordering::Relaxed) == count + STATEMENTS).await;
    }
}

async fn connect(database: &Database<'_>) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[test]
fn calls_that_come_while_others_are_written_share_the_next_statement() {
    let database = PostgresServer::shared().database();
    run(async {
        let stage = Stage::new(&database).await;
        let mut answers = stage.hold().await;
        answers.extend((0..300).map(|n| stage.insert(vec![row(message(n))])));
        stage.until_called(300).await;
        stage.let_go().await;
        for answer in answers {
            assert_eq!(answer.await.unwrap().unwrap(), [Inserted::New]);
        }
        // Each statement has counted its own.
        let statements: usize =
            database.say("SELECT count(*) FROM redeliver.redeliver_tallies").parse().unwrap();
        assert!(statements <= 30, "{statements} statements for 300 calls");
        assert!(stage.store.get(id(299)).await.unwrap().is_some());
    });
}

#[test]
fn a_call_that_cannot_be_kept_spoils_no_other() {
    let database = PostgresServer::shared().database();
    run(async {
        let stage = Stage::new(&database).await;
        let mut others = stage.hold().await;
        others.push(stage.insert(vec![row(message(0))]));
        let spoilt = stage.insert(vec![row(message(5)), row(keyed(1, "a\0b"))]);
        others.push(stage.insert(vec![row(message(2))]));
        stage.until_called(3).await;
        stage.let_go().await;
        let refused = spoilt.await.unwrap();
        assert!(matches!(&refused, Err(StoreError::Unfit(why)) if why.contains("NUL")), "{refused:?}");
        for other in others {
            assert_eq!(other.await.unwrap().unwrap(), [Inserted::New]);
        }
        assert_eq!(stage.store.get(id(5)).await.unwrap(), None, "half of a call is nothing");
        assert!(stage.store.get(id(2)).await.unwrap().is_some());
    });
}

#[test]
fn of_two_callers_with_one_key_the_second_hears_of_the_first() {
    let database = PostgresServer::shared().database();
    run(async {
        let stage = Stage::new(&database).await;
        let held = stage.hold().await;
        let calls = [1, 2].map(|n| stage.insert(vec![row(message(n + 10)), row(keyed(n, "k"))]));
        stage.until_called(2).await;
        stage.let_go().await;
        let mut known = Vec::new();
        for call in calls {
            let answers = call.await.unwrap().unwrap();
            assert_eq!(answers[0], Inserted::New, "what else a caller brings is kept");
            known.extend(answers.into_iter().filter_map(|answer| match answer {
                Inserted::Known(known) => Some(known.id),
                Inserted::New => None,
            }));
        }
        assert_eq!(known.len(), 1);
        assert!(stage.store.get(known[0].clone()).await.unwrap().is_some());
        for answer in held {
            answer.await.unwrap().unwrap();
        }
    });
}

#[test]
fn an_answer_that_is_lost_is_an_error_to_all_who_wait_for_it() {
    let database = PostgresServer::shared().database();
    run(async {
        let stage = Stage::new(&database).await;
        let held = stage.hold().await;
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE wait_event_type = 'Lock' AND datname = current_database()";
        stage.watcher.query(cut, &[]).await.unwrap();
        for answer in held {
            let lost = answer.await.unwrap();
            assert!(lost.as_ref().is_err_and(StoreError::is_passing), "{lost:?}");
        }
        stage.let_go().await;
        for n in 1..=STATEMENTS as u32 {
            let again =
                async || stage.store.insert(vec![row(message(9_000 + n))]).await == Ok(vec![Inserted::New]);
            stage.until(again).await;
        }
        let count = database.say("SELECT count(*) FROM redeliver.redeliver_messages");
        assert_eq!(count, STATEMENTS.to_string(), "said again, it is kept once");
    });
}
