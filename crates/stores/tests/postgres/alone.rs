//! What is true of PostgreSQL alone: many instances on one database, its end and its return, a caller's transaction.

use std::future::Future;
use std::time::Duration;

use redeliver_conformance::make::{at, failed_record, id, keyed, message, request, row};
use redeliver_engine::campaigns::{Campaigns, ReserveRequest, Reserved, Room};
use redeliver_engine::store::{Inserted, PruneRequest, Store, StoreError};
use redeliver_servers::pgbouncer::PgBouncer;
use redeliver_servers::postgres::PostgresServer;
use redeliver_stores::Postgres;
use redeliver_stores::postgres::{Durability, OpenError, OpenOptions, accept_in};
use tokio_postgres::NoTls;

/// The longest that anything here is waited for.
const WITHIN: Duration = Duration::from_secs(30);

pub(crate) fn run<T>(story: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(WITHIN * 2, story).await }).unwrap()
}

async fn open(url: &str) -> Postgres {
    Postgres::open(url, OpenOptions::default()).await.unwrap()
}

/// Opens a store that isn't there yet eight times at once.
async fn open_many_at_once(url: &str) {
    let open = |url: String| async move { Postgres::open(&url, OpenOptions::default()).await.map(drop) };
    let starts: Vec<_> = (0..8).map(|_| tokio::spawn(open(url.to_owned()))).collect();
    for start in starts {
        start.await.unwrap().unwrap();
    }
}

/// Asks until the answer is yes.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(WITHIN, asking).await.is_ok(), "{what}");
}

#[test]
fn many_that_start_at_once_make_the_tables_once() {
    let database = PostgresServer::shared().database();
    run(async {
        open_many_at_once(&database.url()).await;
        assert_eq!(database.say("SELECT count(*) FROM redeliver.redeliver_migrations"), "16");
    });
}

#[test]
fn behind_a_pooler_alone_the_tables_are_made_once_and_instances_find_what_others_accept_by_looking() {
    let database = PostgresServer::shared().database();
    let pooler = PgBouncer::start(PostgresServer::shared());
    run(async {
        let url = pooler.url(&database);
        open_many_at_once(&url).await;
        assert_eq!(database.say("SELECT count(*) FROM redeliver.redeliver_migrations"), "16");
        let (ann, bob) = (open(&url).await, open(&url).await);
        ann.insert(vec![row(message(1))]).await.unwrap();
        assert_eq!(bob.claim(request()).await.unwrap().claimed.len(), 1);
        // Her own words don't come back to her, so that she hears nobody's: she is told to look, once in a while.
        let mut n = 1;
        let looks = async || {
            n += 1;
            ann.insert(vec![row(message(n))]).await.unwrap();
            ann.changed_outside().await.unwrap()
        };
        until("ann is told to look", looks).await;
    });
}

#[test]
fn what_one_instance_accepts_the_others_hear_of() {
    let database = PostgresServer::shared().database();
    run(async {
        let (ann, bob) = (open(&database.url()).await, open(&database.url()).await);
        assert!(!bob.changed_outside().await.unwrap(), "nobody has written");
        ann.insert(vec![row(message(1))]).await.unwrap();
        until("bob hears of it", async || bob.changed_outside().await.unwrap()).await;
        assert!(!ann.changed_outside().await.unwrap(), "only ann herself has written");
        assert!(bob.get(id(1)).await.unwrap().is_some());
    });
}

#[test]
fn a_message_in_the_callers_transaction_is_accepted_if_it_commits() {
    let database = PostgresServer::shared().database();
    run(async {
        let engine = open(&database.url()).await;
        database.say("CREATE TABLE orders (number integer)");
        let (mut db, connection) = tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        for (commits, expected) in [(false, "0"), (true, "1")] {
            let transaction = db.transaction().await.unwrap();
            transaction.batch_execute("INSERT INTO orders VALUES (1)").await.unwrap();
            let accepted = accept_in(&transaction, vec![row(keyed(1, "k"))], Durability::Full).await.unwrap();
            assert_eq!(accepted, [Inserted::New]);
            assert_eq!(engine.get(id(1)).await.unwrap(), None, "not before it commits");
            match commits {
                true => transaction.commit().await.unwrap(),
                false => transaction.rollback().await.unwrap(),
            }
            assert_eq!(engine.get(id(1)).await.unwrap().is_some(), commits);
            assert_eq!(database.say("SELECT count(*) FROM orders"), expected);
        }
        assert_eq!(engine.counts(at(0)).await.unwrap()[0].count, 1);
    });
}

#[test]
fn a_transaction_that_a_power_cut_could_undo_is_turned_away_unless_the_caller_knows() {
    let database = PostgresServer::shared().database();
    run(async {
        let _engine = open(&database.url()).await;
        let (mut db, connection) = tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let transaction = db.transaction().await.unwrap();
        transaction.batch_execute("SET LOCAL synchronous_commit = off").await.unwrap();
        let refused = accept_in(&transaction, vec![row(message(1))], Durability::Full).await;
        let Err(StoreError::Unfit(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("synchronous_commit"), "{why}");
        accept_in(&transaction, vec![row(message(1))], Durability::Relaxed).await.unwrap();
    });
}

#[test]
fn a_database_that_dies_and_comes_back_has_all_that_was_accepted() {
    let mut server = PostgresServer::start();
    let url = server.url("postgres");
    run(async {
        let store = open(&url).await;
        store.insert(vec![row(message(1))]).await.unwrap();
        server.kill();
        let during = store.insert(vec![row(message(2))]).await;
        assert!(during.as_ref().is_err_and(StoreError::is_passing), "{during:?}");
        server.resume();
        until("it is reached again", async || store.insert(vec![row(message(2))]).await.is_ok()).await;
        assert!(store.get(id(1)).await.unwrap().is_some());
        assert_eq!(store.claim(request()).await.unwrap().claimed.len(), 2);
        until("news comes again", async || store.changed_outside().await.unwrap()).await;
    });
}

#[test]
fn a_database_that_is_not_there_is_named_without_its_password() {
    run(async {
        let url = format!("postgres://ann:secret@127.0.0.1:{}/mail", redeliver_servers::free_port());
        let Err(error) = Postgres::open(&url, OpenOptions::default()).await else { panic!("it was opened") };
        let words = error.to_string();
        assert!(matches!(error, OpenError::Unreachable { .. }), "{words}");
        assert!(
            words.contains("127.0.0.1") && words.contains("/mail") && !words.contains("secret"),
            "{words}"
        );
    });
}

#[test]
fn a_key_with_a_nul_is_refused_and_takes_nothing_down() {
    let database = PostgresServer::shared().database();
    run(async {
        let store = open(&database.url()).await;
        let refused = store.insert(vec![row(keyed(1, "a\0b"))]).await;
        let Err(StoreError::Unfit(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("NUL"), "{why}");
        store.insert(vec![row(keyed(1, "ab"))]).await.unwrap();
    });
}

#[test]
fn the_clock_is_the_databases() {
    let database = PostgresServer::shared().database();
    run(async {
        let store = open(&database.url()).await;
        let clock = store.clock();
        for _ in 0..20 {
            let told = clock.now().as_ms();
            let said = database.say("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
            let said: i64 = said.parse().unwrap();
            assert!(told <= said && said - told < 10_000, "{told} {said}");
        }
    });
}

#[test]
fn days_of_history_are_made_ahead_and_go_when_nobody_asks_for_them() {
    let database = PostgresServer::shared().database();
    run(async {
        let store = open(&database.url()).await;
        let days = || {
            database.say(
                "SELECT count(*) FROM pg_inherits WHERE inhparent = 'redeliver.redeliver_attempts'::regclass",
            )
        };
        assert_eq!(days(), "4", "three days, and all others");
        let prune = |s| PruneRequest {
            route: "mail".into(),
            before: at(s),
            key_retention: None,
            now: at(s),
            limit: 100,
        };
        store.insert(vec![row(message(1))]).await.unwrap();
        store.prune(prune(0)).await.unwrap();
        store.note(id(1), failed_record(1, 5)).await.unwrap();
        assert_eq!(database.say("SELECT count(*) FROM redeliver.redeliver_attempts_others"), "0");
        let before = database.say("SELECT count(*) FROM redeliver.redeliver_attempts");
        for n in 1..12 {
            store.prune(prune(20 * 86_400 + n * 600)).await.unwrap();
        }
        assert_eq!(database.say("SELECT count(*) FROM redeliver.redeliver_attempts_others"), before);
        let kept = store.attempts(id(1)).await.unwrap();
        assert_eq!(kept, [failed_record(1, 5)], "a message that is there keeps its history");
        assert_eq!(days(), "4", "only the days to come are left");
    });
}

#[test]
fn counts_stay_right_when_they_are_folded() {
    let database = PostgresServer::shared().database();
    run(async {
        let store = open(&database.url()).await;
        for n in 0..600 {
            store.insert(vec![row(message(n))]).await.unwrap();
        }
        for _ in 0..600 {
            store.claim(redeliver_engine::store::ClaimRequest { limit: 1, ..request() }).await.unwrap();
        }
        let counts = store.counts(at(0)).await.unwrap();
        assert_eq!(
            counts.iter().map(|count| (count.state, count.count)).collect::<Vec<_>>(),
            [("claimed", 600)]
        );
        let prune =
            PruneRequest { route: "mail".into(), before: at(0), key_retention: None, now: at(0), limit: 1 };
        store.prune(prune).await.unwrap();
        assert_eq!(store.counts(at(0)).await.unwrap(), counts);
        assert_eq!(database.say("SELECT count(*) FROM redeliver.redeliver_tallies"), "1");
    });
}

#[test]
fn whoever_asks_for_room_waits_for_nobody_who_reserves() {
    let database = PostgresServer::shared().database();
    run(async {
        let store = open(&database.url()).await;
        let (workspace, sender, allowances) = ("w".into(), "ada".into(), Vec::new());
        let request = ReserveRequest { workspace, sender, now: at(0), free_at: at(30), allowances };
        assert_eq!(store.reserve(request.clone()).await.unwrap(), Reserved::Yes);
        let (mut other, connection) = tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let reserving = other.transaction().await.unwrap();
        reserving.batch_execute("SELECT * FROM redeliver.redeliver_senders FOR UPDATE").await.unwrap();
        assert_eq!(store.room(request).await.unwrap(), Room { free_at: Some(at(30)), full: None });
    });
}
