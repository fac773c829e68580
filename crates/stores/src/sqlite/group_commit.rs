//! Calls that come together share a commit, and nothing else.

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc;

use redeliver_conformance::make::{id, message, row};
use redeliver_core::MessageId;
use redeliver_engine::store::{Inserted, Store, StoreError};

use super::{OpenOptions, Runs, Sqlite};

/// Keeps the writer busy until the sender says that it may go on.
async fn busy(store: &Arc<Sqlite>) -> mpsc::Sender<()> {
    let (go, wait) = mpsc::channel::<()>();
    let (begun, seen) = mpsc::channel::<()>();
    let store = store.clone();
    tokio::spawn(async move {
        let work = move |_: &rusqlite::Connection| {
            let _ = begun.send(());
            let _ = wait.recv();
            Ok(())
        };
        store.runs.write(0, work).await
    });
    tokio::task::yield_now().await;
    seen.recv().unwrap();
    go
}

fn run(story: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(story);
}

fn open(directory: &tempfile::TempDir) -> Arc<Sqlite> {
    Arc::new(Sqlite::open(directory.path().join("store.db"), OpenOptions::default()).unwrap())
}

#[test]
fn calls_that_come_while_a_commit_runs_share_the_next_one() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let go = busy(&store).await;
        let insert = |n| {
            let store = store.clone();
            tokio::spawn(async move { store.insert(vec![row(message(n))]).await })
        };
        let calls: Vec<_> = (0..300).map(insert).collect();
        // Each time, one of them at the least gets as far as the queue.
        for _ in 0..calls.len() {
            tokio::task::yield_now().await;
        }
        let before = store.commits();
        go.send(()).unwrap();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap(), [Inserted::New]);
        }
        let commits = store.commits() - before;
        assert!(commits <= 2, "{commits} commits for 300 calls");
        assert!(store.get(id(299)).await.unwrap().is_some());
    });
}

#[test]
fn a_call_that_fails_spoils_no_other() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let go = busy(&store).await;
        let mut foreign = row(message(1));
        foreign.message.id = MessageId::Row("table:1".into());
        let rows = [vec![row(message(0))], vec![row(message(5)), foreign], vec![row(message(2))]];
        let insert = |rows| {
            let store = store.clone();
            tokio::spawn(async move { store.insert(rows).await })
        };
        let [first, second, third] = rows.map(insert);
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        go.send(()).unwrap();
        assert_eq!(first.await.unwrap().unwrap(), [Inserted::New]);
        assert!(matches!(second.await.unwrap(), Err(StoreError::Unfit(_))));
        assert_eq!(third.await.unwrap().unwrap(), [Inserted::New]);
        assert_eq!(store.get(id(5)).await.unwrap(), None, "half of a call is nothing");
        assert!(store.get(id(2)).await.unwrap().is_some());
    });
}

#[test]
fn closing_finishes_what_is_queued() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let go = busy(&store).await;
        let waiting = store.clone();
        let call = tokio::spawn(async move { waiting.insert(vec![row(message(0))]).await });
        tokio::task::yield_now().await;
        call.abort();
        let _ = call.await;
        go.send(()).unwrap();
        while Arc::strong_count(&store) > 1 {
            tokio::task::yield_now().await;
        }
        drop(store);
        assert!(open(&directory).get(id(0)).await.unwrap().is_some());
    });
}

#[test]
fn a_full_store_loses_nothing_and_works_again_once_there_is_room() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let pages_max = |pages: i64| {
            store.runs.write(1, move |db: &rusqlite::Connection| {
                Ok(db.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?)
            })
        };
        pages_max(60).await.unwrap();
        let mut kept = 0;
        let error = loop {
            match store.insert((0..20).map(|n| row(message(kept + n))).collect()).await {
                Ok(_) => kept += 20,
                Err(error) => break error,
            }
        };
        assert!(matches!(&error, StoreError::Full(why) if why.contains("store.db")), "{error}");
        assert!(kept > 0);
        for n in 0..kept {
            assert!(store.get(id(n)).await.unwrap().is_some(), "{n} was accepted");
        }
        assert_eq!(store.get(id(kept)).await.unwrap(), None, "what was refused is not there");
        pages_max(1_000_000).await.unwrap();
        assert_eq!(store.insert(vec![row(message(kept))]).await.unwrap(), [Inserted::New]);
        assert!(store.examine().await.unwrap().is_whole());
    });
}
