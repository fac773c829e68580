//! Runs seeds over both stores: none may break a promise.

mod disk;

use redeliver_simulation::batch::run_batch;
use redeliver_simulation::stores::{in_memory, on_sqlite};
use redeliver_simulation::threaded::{Tally, on_threads};

const SEEDS_IN_MEMORY: u64 = 100_000;
const SEEDS_ON_SQLITE: u64 = 2_000;
const SEEDS_ON_THREADS: u64 = 2_000;

#[test]
fn no_seed_breaks_a_promise_in_memory() {
    let batch = run_batch(0, SEEDS_IN_MEMORY, 1, in_memory);
    println!("in memory, {batch}");
    assert!(batch.violations.is_empty(), "{batch}");
}

#[test]
fn no_seed_breaks_a_promise_on_sqlite() {
    // Other seeds than in memory: the same ones would draw the same things.
    let batch = run_batch(1_000_000, 1_000_000 + SEEDS_ON_SQLITE, 1, on_sqlite);
    println!("on SQLite, {batch}");
    assert!(batch.violations.is_empty(), "{batch}");
}

/// Its seeds draw work and faults, not the turns of the threads.
#[test]
fn no_seed_breaks_a_promise_on_the_threads_of_sqlite() {
    if !disk::is_simulated("no_seed_breaks_a_promise_on_the_threads_of_sqlite") {
        return;
    }
    let tally = Tally::default();
    let batch = run_batch(0, SEEDS_ON_THREADS, 1, || on_threads(&tally));
    println!("on the threads of SQLite, {batch}; {tally}");
    assert!(batch.violations.is_empty(), "{batch}");
    assert!(tally.fewest() >= SEEDS_ON_THREADS / 100, "a fault that hardly occurs shows nothing: {tally}");
}

#[test]
fn a_seed_says_the_same_twice_and_on_either_store() {
    let (mut memory, mut sqlite) = (in_memory(), on_sqlite());
    for seed in 0..20 {
        let report = memory(seed);
        let first = format!("{report:?}");
        assert_eq!(first, format!("{:?}", memory(seed)), "seed {seed} in memory");
        let on_sqlite = format!("{:?}", sqlite(seed));
        assert_eq!(on_sqlite, format!("{:?}", sqlite(seed)), "seed {seed} on SQLite");
        // A burst parks messages that are due at the same time, and stores may release those in any order.
        if report.scenario.burst == 0 {
            assert_eq!(first, on_sqlite, "seed {seed} on either store");
        }
    }
}
