//! Runs seeds over the memory store: none may break a promise.

use std::sync::Arc;

use redeliver_engine::memory::MemoryStore;
use redeliver_simulation::batch::run_batch;
use redeliver_simulation::run::run;

const SEEDS: u64 = 100_000;

#[test]
fn no_seed_breaks_a_promise_in_memory() {
    let batch = run_batch(0, SEEDS, 1, || |seed| run(seed, Arc::new(MemoryStore::default())));
    println!("in memory, {batch}");
    assert!(batch.violations.is_empty(), "{batch}");
}
