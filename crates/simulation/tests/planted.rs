//! A simulator is worth its planted bugs: each is caught within 5,000 seeds.

mod disk;

use redeliver_core::planted::{Bug, plant};
use redeliver_simulation::batch::{Batch, run_batch};
use redeliver_simulation::crowd::crowds;
use redeliver_simulation::stores::in_memory;
use redeliver_simulation::threaded::{Tally, on_threads};

const SEEDS_MAX: u64 = 5_000;
const CROWDS_MAX: u64 = 4;
const THREADED_MAX: u64 = 500;

/// Runs seeds with this bug: small worlds, or crowds for a bug that takes more than one batch to show.
fn run_with(bug: Bug) -> Batch {
    match bug {
        Bug::BeatsBehindTheReaper | Bug::PrunesOneBatch => run_batch(0, CROWDS_MAX, 1, || {
            plant(Some(bug));
            crowds()
        }),
        Bug::AnswersBeforeSync | Bug::FailedSyncIgnored | Bug::FailedCommitAnswered => {
            let tally = Tally::default();
            run_batch(0, THREADED_MAX, 1, || {
                plant(Some(bug));
                on_threads(&tally)
            })
        }
        _ => run_batch(0, SEEDS_MAX, 1, || {
            plant(Some(bug));
            in_memory()
        }),
    }
}

#[test]
fn every_planted_bug_is_caught() {
    if !disk::is_simulated("every_planted_bug_is_caught") {
        return;
    }
    let mut escaped = Vec::new();
    for bug in Bug::ALL {
        let batch = run_with(bug);
        match batch.violations.first() {
            Some((seed, violation)) => println!("{bug:?}: caught by seed {seed}: {violation}"),
            None => escaped.push(bug),
        }
    }
    println!(
        "{} of {} planted bugs caught within {SEEDS_MAX} seeds",
        Bug::ALL.len() - escaped.len(),
        Bug::ALL.len()
    );
    assert!(escaped.is_empty(), "not caught: {escaped:?}");
}
