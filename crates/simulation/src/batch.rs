//! Many runs, on all cores, with their figures added up.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::run::Report;
use crate::world::Figures;

/// What many runs came to.
#[derive(Debug, Default)]
pub struct Batch {
    /// Seeds that broke a promise, with the promise.
    pub violations: Vec<(u64, String)>,
    /// What happened in all of them together.
    pub figures: Figures,
    /// Runs made.
    pub runs: u64,
}

/// Runs seeds `from..to` on all cores, until `violations_max` of them broke a promise.
///
/// `runner` is called once on each thread and gives what runs one seed there.
pub fn run_batch<R>(from: u64, to: u64, violations_max: usize, runner: impl Fn() -> R + Sync) -> Batch
where
    R: FnMut(u64) -> Report,
{
    let next = AtomicU64::new(from);
    let enough = AtomicBool::new(false);
    let batch = Mutex::new(Batch::default());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let mut run = runner();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= to || enough.load(Ordering::Relaxed) {
                        return;
                    }
                    let report = run(seed);
                    let mut batch = batch.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    batch.runs += 1;
                    batch.figures.add(&report.figures);
                    if let Some(violation) = report.violation {
                        batch.violations.push((seed, violation));
                        enough.fetch_or(batch.violations.len() >= violations_max, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let mut batch = batch.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    batch.violations.sort();
    batch
}

impl std::fmt::Display for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Figures { accepted, carryings, store_faults, kills, stops, lost, late } = self.figures;
        write!(
            f,
            "{} runs: {accepted} messages accepted, {carryings} carryings, {store_faults} store faults, {kills} kills, \
             {stops} stops, {lost} lost, {late} late results, {} violations",
            self.runs,
            self.violations.len()
        )?;
        for (seed, violation) in self.violations.iter().take(20) {
            write!(f, "\n  seed {seed}: {violation}")?;
        }
        Ok(())
    }
}
