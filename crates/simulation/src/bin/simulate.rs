//! `simulate [FROM] TO [memory|sqlite]`: runs seeds and prints what they came to; one seed prints its options too.
#![allow(clippy::disallowed_methods, reason = "says how long it took")]

use std::process::ExitCode;
use std::sync::Arc;

use redeliver_engine::memory::MemoryStore;
use redeliver_simulation::batch::run_batch;
use redeliver_simulation::run::{Trace, run_traced};
use redeliver_simulation::stores::{in_memory, on_sqlite};

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let (from, to) = match numbers[..] {
        [from, to, ..] => (from, to),
        [to] => (0, to),
        [] => (0, 10_000),
    };
    let sqlite = std::env::args().any(|word| word == "sqlite");
    if to == from + 1 {
        let (report, trace) = run_traced(from, Arc::new(MemoryStore::default()), Trace::On);
        trace.iter().for_each(|line| println!("{line}"));
        println!("{report:#?}");
    }
    let begun = std::time::Instant::now();
    let batch = match sqlite {
        true => run_batch(from, to, 20, on_sqlite),
        false => run_batch(from, to, 20, in_memory),
    };
    println!("{batch}\nin {:.1?}", begun.elapsed());
    if batch.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
