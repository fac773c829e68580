//! The threads that everything runs on: as many as the machine has cores, less the one that a store keeps busy itself.

use std::thread::available_parallelism;

use anyhow::Context;
use tokio::runtime::{Builder, Runtime};

use crate::config::StoreUrl;

/// What tokio takes for the number of threads, where a person has said it.
const SAID: &str = "TOKIO_WORKER_THREADS";

/// A runtime for whoever works on this store.
pub fn runtime(store: &StoreUrl) -> anyhow::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if std::env::var_os(SAID).is_none() {
        let cores = available_parallelism().map_or(1, usize::from);
        builder.worker_threads(count(store, cores));
    }
    builder.enable_all().build().context("cannot start threads")
}

/// One that writes to SQLite is a thread of its own, and the busiest: it shares its core with nobody (decision 0064).
fn count(store: &StoreUrl, cores: usize) -> usize {
    match store {
        StoreUrl::Sqlite(_) => cores.saturating_sub(1).max(1),
        StoreUrl::Memory | StoreUrl::Postgres(_) => cores,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_writes_to_sqlite_has_a_core_for_itself_where_there_is_one() {
        let check = |store: &str, counts: [usize; 3]| {
            let store = StoreUrl::parse(store).unwrap();
            assert_eq!([1, 2, 8].map(|cores| count(&store, cores)), counts);
        };
        check("sqlite:outbox.db", [1, 1, 7]);
        check("memory:", [1, 2, 8]);
        check("postgres://localhost/outbox", [1, 2, 8]);
    }
}
