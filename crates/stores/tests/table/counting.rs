//! A table is counted beside what is told of it, by one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use redeliver_conformance::make::at;
use redeliver_core::Timestamp;
use redeliver_engine::store::{Applied, Store, StoreError};
use redeliver_stores::adopted::{Due, Examined, Judge, Row, Rows, Tally, Which};
use redeliver_stores::mails::Fields;
use redeliver_stores::sqlite::table::SqliteTable;
use redeliver_stores::table::{Beside, TableStore};
use redeliver_stores::{OpenOptions, Role, Sqlite};
use tokio::sync::Semaphore;

use crate::rig::{Place, Put, Rig};

/// Rows that take their time to be counted: as long as nobody lets them.
struct Slow {
    rows: SqliteTable,
    may_count: Semaphore,
    begun: AtomicUsize,
}

#[async_trait]
impl Rows for Slow {
    async fn claim(&self, due: Due) -> Result<Vec<Row>, StoreError> {
        self.rows.claim(due).await
    }

    async fn next_due_at(&self, attempts_max: u32) -> Result<Option<Timestamp>, StoreError> {
        self.rows.next_due_at(attempts_max).await
    }

    async fn rewrite(&self, ids: Vec<String>, judge: Judge) -> Result<Vec<Applied>, StoreError> {
        self.rows.rewrite(ids, judge).await
    }

    async fn find(&self, which: Which, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.rows.find(which, limit).await
    }

    async fn tally(&self, now: Timestamp) -> Result<Vec<Tally>, StoreError> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let let_go = self.may_count.acquire().await;
        let_go.map_err(|_| StoreError::Unavailable("it is gone".to_owned()))?.forget();
        self.rows.tally(now).await
    }

    async fn examine(&self, now: Timestamp) -> Result<Examined, StoreError> {
        self.rows.examine(now).await
    }

    async fn mail(&self, id: Option<String>) -> Result<Option<Fields>, StoreError> {
        self.rows.mail(id).await
    }

    fn is_id(&self, text: &str) -> bool {
        self.rows.is_id(text)
    }

    fn has_number_ids(&self) -> bool {
        self.rows.has_number_ids()
    }
}

fn slow(rig: &Rig) -> (Beside, Arc<Slow>) {
    let Place::Sqlite { path, .. } = &rig.place else { panic!("it is in a file") };
    let options = OpenOptions { role: Role::Client, ..OpenOptions::default() };
    let own = Arc::new(Sqlite::open(path, options).unwrap());
    let rows = SqliteTable::open(path, rig.mapping.clone()).unwrap();
    let rows = Arc::new(Slow { rows, may_count: Semaphore::new(0), begun: AtomicUsize::new(0) });
    let table = TableStore::new(rig.mapping.clone(), rows.clone(), own.clone(), own.clone());
    (Beside::new(own, vec![table]), rows)
}

async fn waiting(store: &Beside, s: i64) -> Result<u64, StoreError> {
    Ok(store.counts(at(s)).await?.iter().map(|count| count.count).sum())
}

#[test]
fn what_was_counted_is_told_at_once_while_the_table_is_counted_anew() {
    redeliver_conformance::judge(async {
        let rig = Rig::sqlite();
        rig.put(&Put::failed("1", at(0)));
        let (store, rows) = slow(&rig);
        rows.may_count.add_permits(1);
        assert_eq!(waiting(&store, 0).await, Ok(1), "the first one waits");
        rig.put(&Put::failed("2", at(0)));
        assert_eq!(waiting(&store, 9).await, Ok(1));
        assert_eq!(rows.begun.load(Ordering::Relaxed), 1);
        // Nobody lets it be counted, and nobody waits for that.
        for s in 10..20 {
            assert_eq!(waiting(&store, s).await, Ok(1));
        }
        rows.may_count.add_permits(1);
        while waiting(&store, 11).await != Ok(2) {
            tokio::task::yield_now().await;
        }
        assert_eq!(rows.begun.load(Ordering::Relaxed), 2, "one counted for all who asked");
    });
}

#[test]
fn what_is_too_old_to_be_told_is_waited_for_and_so_is_the_word_that_it_cannot_be_counted() {
    redeliver_conformance::judge(async {
        let rig = Rig::sqlite();
        rig.put(&Put::failed("1", at(0)));
        let (store, rows) = slow(&rig);
        rows.may_count.add_permits(2);
        assert_eq!(waiting(&store, 0).await, Ok(1));
        rig.put(&Put::failed("2", at(0)));
        assert_eq!(waiting(&store, 60).await, Ok(2));
        rows.may_count.close();
        while waiting(&store, 75).await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
}
