//! The limits of the database's time take effect: brought along by connections, or said in each transaction behind a
//! pooler that takes no settings, or drops them.

use std::future::Future;
use std::time::Duration;

use redeliver_engine::store::StoreError;
use redeliver_servers::pgbouncer::PgBouncer;
use redeliver_servers::postgres::PostgresServer;
use tokio_postgres::{Client, NoTls};

use super::connections::{ask, transact};
use super::errors::Fault;
use super::{OpenOptions, Postgres};

const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(60);

/// No limit that is met by chance.
fn unlimited() -> OpenOptions {
    OpenOptions {
        statement_timeout: LONG,
        lock_timeout: LONG,
        idle_in_transaction_timeout: LONG,
        ..OpenOptions::default()
    }
}

/// Runs a story with a store that has the database to itself, and with one behind each kind of pooler.
fn each_way<F: Future<Output = ()>>(
    options: &OpenOptions,
    story: impl Fn(&'static str, Postgres, String) -> F,
) {
    let server = PostgresServer::shared();
    let (refusing, dropping) = (PgBouncer::start(server), PgBouncer::start_dropping_settings(server));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let database = server.database();
    for (way, url) in [
        ("by itself", database.url()),
        ("behind a pooler that refuses settings", refusing.url(&database)),
        ("behind a pooler that drops settings", dropping.url(&database)),
    ] {
        let options = OpenOptions { direct_url: Some(database.url()), ..options.clone() };
        runtime.block_on(async {
            let store = Postgres::open(&url, options).await.unwrap();
            story(way, store, url).await;
        });
    }
}

async fn say(db: &Client, sql: &str) -> Result<(), Fault> {
    Ok(db.batch_execute(sql).await?)
}

/// Says a statement that needs no transaction.
async fn say_alone(store: &Postgres, sql: &str) -> Result<(), StoreError> {
    ask!(store, |db| say(db, sql))
}

/// Says a statement in a transaction.
async fn say_in_turn(store: &Postgres, sql: &str) -> Result<(), StoreError> {
    transact!(store, |db| async {
        let transaction = db.begin().await?;
        say(transaction.client(), sql).await?;
        Ok(transaction.commit().await?)
    })
}

/// Expects that the database ended both, and says why.
async fn expect_ended(way: &str, store: &Postgres, sql: &str, why: &str) {
    for ended in [say_alone(store, sql).await, say_in_turn(store, sql).await] {
        let words = ended.expect_err(way).to_string();
        assert!(words.contains(why), "{way}: {words}");
    }
    say_alone(store, "SELECT 1").await.unwrap();
}

#[test]
fn the_database_works_on_one_statement_only_so_long() {
    let options = OpenOptions { statement_timeout: SHORT, ..unlimited() };
    each_way(&options, |way, store, _| async move {
        expect_ended(way, &store, "SELECT pg_sleep(60)", "statement timeout").await;
    });
}

#[test]
fn a_limit_that_a_database_has_by_itself_does_not_hide_that_the_others_were_dropped() {
    let server = PostgresServer::shared();
    let pooler = PgBouncer::start_dropping_settings(server);
    let database = server.database();
    database.say(&format!(
        "ALTER DATABASE \"{}\" SET idle_in_transaction_session_timeout = {}",
        database.name(),
        LONG.as_millis()
    ));
    let direct_url = Some(database.url());
    let options = OpenOptions { statement_timeout: SHORT, direct_url, ..unlimited() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Postgres::open(&pooler.url(&database), options).await.unwrap();
        expect_ended("behind the pooler", &store, "SELECT pg_sleep(60)", "statement timeout").await;
    });
}

#[test]
fn a_statement_waits_for_others_only_so_long() {
    let options = OpenOptions { lock_timeout: SHORT, ..unlimited() };
    each_way(&options, |way, store, url| async move {
        let (mut other, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let locking = other.transaction().await.unwrap();
        locking.batch_execute("LOCK TABLE redeliver.redeliver_gates").await.unwrap();
        let sql = "SELECT count(*) FROM redeliver.redeliver_gates";
        expect_ended(way, &store, sql, "lock timeout").await;
    });
}

#[test]
fn a_transaction_that_says_nothing_more_is_undone() {
    // Longer than a busy machine leaves the others between two of their statements.
    let options = OpenOptions { idle_in_transaction_timeout: Duration::from_secs(1), ..unlimited() };
    each_way(&options, |way, store, _| async move {
        say_alone(&store, "CREATE TABLE IF NOT EXISTS said (word text)").await.unwrap();
        let ended = stop_in_the_middle(&store).await;
        assert!(ended.as_ref().is_err_and(StoreError::is_passing), "{way}: {ended:?}");
        // What was locked is free, or will be: who is told may be told before the database has undone it.
        say_in_turn(&store, "LOCK TABLE said").await.unwrap();
        say_in_turn(&store, "DO $$ BEGIN ASSERT (SELECT count(*) FROM said) = 0; END $$").await.unwrap();
    });
}

/// Begins to write, and goes on only when the database has given up waiting for it.
async fn stop_in_the_middle(store: &Postgres) -> Result<(), StoreError> {
    transact!(store, |db| async {
        let transaction = db.begin().await?;
        say(transaction.client(), "INSERT INTO said VALUES ('half')").await?;
        while !transaction.client().is_closed() {
            tokio::task::yield_now().await;
        }
        Ok(transaction.commit().await?)
    })
}

#[test]
fn whoever_comes_next_behind_a_pooler_finds_settings_of_his_own() {
    let server = PostgresServer::shared();
    let pooler = PgBouncer::start(server);
    let database = server.database();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = OpenOptions { direct_url: Some(database.url()), ..OpenOptions::default() };
        let store = Postgres::open(&pooler.url(&database), options).await.unwrap();
        say_alone(&store, "DO $$ BEGIN ASSERT current_setting('lock_timeout') = '5s'; END $$").await.unwrap();
        let (other, connection) = tokio_postgres::connect(&pooler.url(&database), NoTls).await.unwrap();
        tokio::spawn(connection);
        let found = other.query_typed("SHOW lock_timeout", &[]).await.unwrap();
        assert_eq!(found[0].get::<_, &str>(0), "0");
    });
}
