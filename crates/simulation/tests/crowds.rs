//! Worlds of 5,000 messages over a store that stays slow: no send is lost, no instance is silent, nothing piles up.

use redeliver_simulation::batch::run_batch;
use redeliver_simulation::crowd::crowds;

const SEEDS: u64 = 8;

#[test]
fn no_crowd_breaks_a_promise() {
    let batch = run_batch(0, SEEDS, 1, crowds);
    println!("crowds, {batch}");
    assert!(batch.violations.is_empty(), "{batch}");
}
