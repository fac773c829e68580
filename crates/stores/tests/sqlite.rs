//! What is true of SQLite alone: who may open a file, what is said when it can't be, and a caller's own transaction.
#![allow(clippy::unwrap_used, clippy::panic, reason = "that's how a test fails")]

use std::fs;
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redeliver_conformance::make::{at, id, message, request, row, row_with};
use redeliver_core::{Content, InstanceId};
use redeliver_engine::store::{Inserted, Store, StoreError};
use redeliver_stores::sqlite::insert_in;
use redeliver_stores::{Durability, OpenError, OpenOptions, Role, Sqlite, SyncSqlite};
use rusqlite::Connection;

fn run<T>(story: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(story)
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("store.db")
    }

    fn engine(&self) -> Result<Sqlite, OpenError> {
        Sqlite::open(self.path(), OpenOptions::default())
    }

    fn client(&self) -> Sqlite {
        Sqlite::open(self.path(), client()).unwrap()
    }

    /// A connection as an application has one.
    fn application(&self) -> Connection {
        let db = Connection::open(self.path()).unwrap();
        db.pragma_update(None, "synchronous", "FULL").unwrap();
        db
    }

    /// Has everything in the file itself. The threads of a store that was dropped may still be closing it.
    fn write_back(&self) {
        let db = self.application();
        let is_busy =
            || -> i64 { db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap() };
        while is_busy() != 0 {
            std::thread::yield_now();
        }
    }
}

fn client() -> OpenOptions {
    OpenOptions { role: Role::Client, busy_timeout: Duration::from_millis(50), ..OpenOptions::default() }
}

fn refused(result: Result<Sqlite, OpenError>) -> (OpenError, String) {
    let Err(error) = result else { panic!("it was opened") };
    let words = error.to_string();
    (error, words)
}

#[test]
fn a_second_engine_is_turned_away_until_the_first_is_gone() {
    let place = Place::new();
    let first = place.engine().unwrap();
    let (error, words) = refused(place.engine());
    assert!(matches!(error, OpenError::Taken { .. }), "{words}");
    assert!(words.contains("store.db") && words.contains("another redeliver is running"), "{words}");
    drop(first);
    place.engine().unwrap();
}

#[test]
fn only_its_owner_may_read_a_store() {
    let place = Place::new();
    let _store = place.engine().unwrap();
    for suffix in ["", "-wal", "-shm", ".lock"] {
        let file = place.0.path().join(format!("store.db{suffix}"));
        let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{} has mode {mode:o}", file.display());
    }
}

#[test]
fn a_client_beside_the_engine_is_welcome_and_noticed() {
    run(async {
        let place = Place::new();
        let engine = place.engine().unwrap();
        let client = place.client();
        assert!(!engine.changed_outside().await.unwrap(), "nobody has written");
        engine.insert(vec![row(message(0))]).await.unwrap();
        assert!(!engine.changed_outside().await.unwrap(), "only the engine itself has written");
        client.insert(vec![row(message(1))]).await.unwrap();
        assert!(engine.changed_outside().await.unwrap());
        assert!(!engine.changed_outside().await.unwrap(), "that was told already");
        assert!(engine.get(id(1)).await.unwrap().is_some());
    });
}

#[test]
fn a_message_in_the_callers_transaction_is_accepted_if_it_commits() {
    run(async {
        let place = Place::new();
        let engine = place.engine().unwrap();
        let mut db = place.application();
        db.execute_batch("CREATE TABLE orders (number INTEGER)").unwrap();

        let transaction = db.transaction().unwrap();
        transaction.execute("INSERT INTO orders VALUES (1)", []).unwrap();
        let inserted = insert_in(&transaction, vec![row(message(0))], Durability::Full).unwrap();
        assert_eq!(inserted, [Inserted::New]);
        transaction.rollback().unwrap();
        assert_eq!(engine.get(id(0)).await.unwrap(), None);

        let transaction = db.transaction().unwrap();
        insert_in(&transaction, vec![row(message(0))], Durability::Full).unwrap();
        assert_eq!(engine.get(id(0)).await.unwrap(), None, "not before it commits");
        transaction.commit().unwrap();
        assert!(engine.get(id(0)).await.unwrap().is_some());
        assert!(engine.changed_outside().await.unwrap());
    });
}

#[test]
fn a_transaction_that_a_power_cut_could_undo_is_turned_away_unless_the_caller_knows() {
    let place = Place::new();
    let _engine = place.engine().unwrap();
    let mut db = place.application();
    db.pragma_update(None, "synchronous", "NORMAL").unwrap();
    let transaction = db.transaction().unwrap();
    let Err(StoreError::Unfit(why)) = insert_in(&transaction, vec![row(message(0))], Durability::Full) else {
        panic!("it was taken")
    };
    assert!(why.contains("synchronous") && why.contains("FULL"), "{why}");
    let inserted = insert_in(&transaction, vec![row(message(0))], Durability::Relaxed).unwrap();
    assert_eq!(inserted, [Inserted::New]);
}

#[test]
fn a_connection_that_was_there_before_the_store_finds_its_tables() {
    let place = Place::new();
    let mut db = place.application();
    db.execute_batch("CREATE TABLE orders (number INTEGER)").unwrap();
    let _engine = place.engine().unwrap();

    let transaction = db.transaction().unwrap();
    insert_in(&transaction, vec![row(message(0))], Durability::Full).unwrap();
}

#[test]
fn a_database_that_is_no_store_is_said_to_be_none() {
    let mut db = Connection::open_in_memory().unwrap();
    let transaction = db.transaction().unwrap();
    let Err(StoreError::Unfit(why)) = insert_in(&transaction, vec![row(message(0))], Durability::Full) else {
        panic!("it was taken")
    };
    assert!(why.contains("isn't a store"), "{why}");
}

#[test]
fn an_application_may_keep_its_tables_in_the_same_file() {
    let place = Place::new();
    let names = "CREATE TABLE messages (a); CREATE TABLE keys (a); CREATE TABLE migrations (a)";
    place.application().execute_batch(names).unwrap();
    run(place.engine().unwrap().insert(vec![row(message(0))])).unwrap();
}

#[test]
fn what_is_no_database_is_damaged() {
    let place = Place::new();
    fs::write(place.path(), "this is a letter to my grandmother, and no database".repeat(100)).unwrap();
    let (error, words) = refused(place.engine());
    assert!(matches!(error, OpenError::Damaged { .. }), "{words}");
    assert!(words.contains("store.db") && words.contains("redeliver doctor"), "{words}");
}

#[test]
fn a_damaged_page_is_said_to_be_one() {
    run(async {
        let place = Place::new();
        let engine = place.engine().unwrap();
        engine.insert((0..2_000).map(|n| row(message(n))).collect()).await.unwrap();
        drop(engine);
        place.write_back();
        let mut bytes = fs::read(place.path()).unwrap();
        let middle = bytes.len() / 8;
        let end = bytes.len() - 4_096;
        bytes[middle..end].fill(0xa5);
        fs::write(place.path(), bytes).unwrap();
        let errors = match place.engine() {
            Err(error) => error.to_string(),
            Ok(engine) => {
                let Err(error) = engine.insert((0..2_000).map(|n| row(message(n))).collect()).await else {
                    panic!("it was taken")
                };
                assert!(matches!(error, StoreError::Damaged(_)), "{error}");
                assert!(!error.is_passing());
                error.to_string()
            }
        };
        assert!(errors.contains("store.db") && errors.contains("restore it from a backup"), "{errors}");
    });
}

#[test]
fn a_locked_file_is_worth_another_try() {
    run(async {
        let place = Place::new();
        let store = place.client();
        let other = place.application();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let error = store.insert(vec![row(message(0))]).await.unwrap_err();
        assert!(error.is_passing() && error.to_string().contains("is another redeliver running?"), "{error}");
        let (error, words) = refused(Sqlite::open(place.path(), client()));
        assert!(matches!(error, OpenError::Locked { .. }), "{words}");
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(store.insert(vec![row(message(0))]).await.unwrap(), [Inserted::New]);
    });
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let place = Place::new();
    let check = |path: &Path, expected: &str| {
        for role in [Role::Engine, Role::Client] {
            let (error, words) = refused(Sqlite::open(path, OpenOptions { role, ..client() }));
            assert!(matches!(error, OpenError::Unreachable { .. }), "{words}");
            assert!(words.contains(expected) && words.contains(path.to_str().unwrap()), "{words}");
        }
    };
    check(&place.0.path().join("nowhere/store.db"), "there is no directory");
    check(place.0.path(), "it is a directory");
    check(Path::new("/proc/store.db"), "cannot");
    check(Path::new(":memory:"), "a store is a file");
}

#[test]
fn a_migration_that_was_changed_is_noticed() {
    let place = Place::new();
    drop(place.engine().unwrap());
    place.application().execute("UPDATE redeliver_migrations SET checksum = 'other'", []).unwrap();
    let (error, words) = refused(place.engine());
    assert!(matches!(error, OpenError::OtherVersion { .. }), "{words}");
    assert!(words.contains("migration 1 (messages)"), "{words}");
}

#[test]
fn the_database_of_a_newer_version_is_left_alone() {
    let place = Place::new();
    drop(place.engine().unwrap());
    let newer = "INSERT INTO redeliver_migrations VALUES (99, 'later', 'x')";
    place.application().execute(newer, []).unwrap();
    let (_, words) = refused(place.engine());
    assert!(words.contains("newer redeliver"), "{words}");
}

#[test]
fn after_a_restart_the_claims_of_the_old_engine_lapse_at_once() {
    run(async {
        let place = Place::new();
        let engine = place.engine().unwrap();
        engine.insert(vec![row(message(0))]).await.unwrap();
        let request = request();
        engine.beat(request.instance, at(0), Duration::from_secs(30)).await.unwrap();
        assert_eq!(engine.claim(request).await.unwrap().claimed.len(), 1);
        assert!(engine.lapsed(at(1), 10).await.unwrap().is_empty(), "its engine lives");
        drop(engine);
        let engine = place.engine().unwrap();
        assert_eq!(engine.lapsed(at(1), 10).await.unwrap().len(), 1);
    });
}

#[test]
fn a_client_that_opens_beside_the_engine_takes_nothing_from_it() {
    run(async {
        let place = Place::new();
        let engine = place.engine().unwrap();
        engine.insert(vec![row(message(0))]).await.unwrap();
        engine.beat(request().instance, at(0), Duration::from_secs(30)).await.unwrap();
        engine.claim(request()).await.unwrap();
        drop(place.client());
        assert!(engine.lapsed(at(1), 10).await.unwrap().is_empty());
    });
}

#[test]
fn the_latest_time_is_remembered_and_never_goes_back() {
    run(async {
        let place = Place::new();
        let engine = place.engine().unwrap();
        assert_eq!(engine.last_time(), None);
        for s in [100, 50] {
            engine.beat(InstanceId(1), at(s), Duration::from_secs(30)).await.unwrap();
        }
        drop(engine);
        assert_eq!(place.engine().unwrap().last_time(), Some(at(100)));
    });
}

#[test]
fn relaxed_durability_is_only_by_being_told() {
    let place = Place::new();
    let relaxed = OpenOptions { durability: Durability::Relaxed, ..OpenOptions::default() };
    assert_eq!(OpenOptions::default().durability, Durability::Full);
    run(Sqlite::open(place.path(), relaxed).unwrap().insert(vec![row(message(0))])).unwrap();
}

/// The log is written back by another thread, and still begins anew, though somebody always writes.
#[test]
fn the_log_stays_short_under_steady_load() {
    const BATCHES: u32 = 100;
    const BATCH: u32 = 250;
    const LOG_BYTES_MAX: u64 = 48 * 1_048_576;
    run(async {
        let place = Place::new();
        let engine = place.engine().unwrap();
        let mut log = place.path().into_os_string();
        log.push("-wal");
        let mut longest = 0;
        for batch in 0..BATCHES {
            let numbers = batch * BATCH..(batch + 1) * BATCH;
            let rows = numbers.map(|n| row_with(message(n), Content::of_bytes(vec![7; 3_000])));
            engine.insert(rows.collect()).await.unwrap();
            longest = longest.max(fs::metadata(&log).unwrap().len());
        }
        let kept = fs::metadata(place.path()).unwrap().len();
        assert!(longest < LOG_BYTES_MAX, "the log came to {longest} bytes");
        assert!(kept > LOG_BYTES_MAX, "only {kept} bytes were written back, which shows nothing");
    });
}

#[test]
fn an_examination_finds_what_is_missing() {
    run(async {
        let place = Place::new();
        let engine = place.engine().unwrap();
        let mut keyed = row(message(1));
        keyed.message.key = Some("k".into());
        engine.insert(vec![row(message(0)), keyed]).await.unwrap();
        assert!(engine.examine().await.unwrap().is_whole());
        let db = place.application();
        db.execute("DELETE FROM redeliver_messages WHERE key IS NOT NULL", []).unwrap();
        db.execute(
            "DELETE FROM redeliver_contents WHERE number IN (SELECT number FROM redeliver_messages)",
            [],
        )
        .unwrap();
        let found = engine.examine().await.unwrap();
        assert_eq!((found.orphan_contents, found.orphan_keys, found.missing_contents), (1, 1, 1));
        assert!(!found.is_whole());
    });
}

#[test]
fn a_store_that_was_cleared_is_like_a_new_one() {
    run(async {
        let store = SyncSqlite::in_memory().unwrap();
        let mut keyed = row(message(0));
        keyed.message.key = Some("k".into());
        for _ in 0..3 {
            assert_eq!(store.insert(vec![keyed.clone()]).await.unwrap(), [Inserted::New]);
            assert_eq!(store.counts(at(0)).await.unwrap().len(), 1);
            store.clear().unwrap();
            assert!(store.counts(at(0)).await.unwrap().is_empty());
        }
    });
}

#[test]
fn the_same_file_serves_threads_and_none() {
    run(async {
        let place = Place::new();
        place.engine().unwrap().insert(vec![row(message(0))]).await.unwrap();
        let store = SyncSqlite::open(place.path(), OpenOptions::default()).unwrap();
        assert!(store.get(id(0)).await.unwrap().is_some());
    });
}
