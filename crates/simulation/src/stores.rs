//! The stores that a run can be made over, each empty when its run begins.

use std::sync::Arc;

use redeliver_engine::memory::MemoryStore;
use redeliver_engine::store::Store;
use redeliver_stores::SyncSqlite;

use crate::run::{Report, run};

/// Runs seeds over a memory store, a fresh one each.
pub fn in_memory() -> impl FnMut(u64) -> Report {
    |seed| run(seed, Arc::new(MemoryStore::default()))
}

/// Runs seeds over SQLite, cleared after each.
pub fn on_sqlite() -> impl FnMut(u64) -> Report {
    let store = sqlite();
    move |seed| {
        if let Err(error) = store.clear() {
            return Report::failed(seed, format!("the store cannot be cleared: {error}"));
        }
        run(seed, Arc::clone(&store) as Arc<dyn Store>)
    }
}

fn sqlite() -> Arc<SyncSqlite> {
    Arc::new(SyncSqlite::in_memory().expect("a database in memory needs nothing that could be missing"))
}
