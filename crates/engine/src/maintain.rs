//! Maintenance: the jobs that an engine repeats while it runs. Each job is a future of its own and does a bounded amount
//! of work per turn, so that none of them delays another. The heartbeat waits for nobody.

use std::sync::atomic::Ordering;
use std::time::Duration;

use redeliver_core::planted::{self, Bug};
use tokio::task::yield_now;

use crate::engine::Engine;
use crate::prune::Pruning;
use crate::stop::Stop;
use crate::store::StoreError;

/// How soon limited destinations are looked at while messages wait for them.
const LIMITED_INTERVAL: Duration = Duration::from_millis(100);

/// A job that is repeated while an engine runs.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Job {
    /// Tells the store that this instance lives.
    Beat,
    /// Settles lost leases, overdue reports and expired messages.
    Reap,
    /// Reads the gates and releases messages whose gate has opened.
    Gates,
    /// Deletes messages that ended long enough ago.
    Prune,
}

impl Job {
    pub(crate) const ALL: [Self; 4] = [Self::Beat, Self::Reap, Self::Gates, Self::Prune];
}

impl Engine {
    /// Repeats a job until told to stop and no route has work in the air.
    pub(crate) async fn repeat(&self, job: Job, mut stop: Stop) {
        let mut pruning = Pruning::default();
        loop {
            // Made before the check: it also hears of a route that ends between here and the wait.
            let idle = self.idle.notified();
            if stop.is_stopped() && self.working.load(Ordering::Relaxed) == 0 {
                return;
            }
            let pause = self.turn(job, &mut pruning).await;
            if pause.is_zero() {
                yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                () = idle => {}
                () = stop.stopped(), if !stop.is_stopped() => {}
                () = self.clock.sleep(pause) => {}
            }
        }
    }

    /// Does one turn of a job, and says how long to wait before the next one. Zero means that there is more to do.
    async fn turn(&self, job: Job, pruning: &mut Pruning) -> Duration {
        let begun = self.clock.uptime();
        match job {
            Job::Beat if planted::is(Bug::BeatsBehindTheReaper) => self.settings.heartbeat,
            Job::Beat => {
                self.tell("saying that this instance lives", self.beat().await);
                let took = self.clock.uptime().saturating_sub(begun);
                self.settings.heartbeat.saturating_sub(took)
            }
            Job::Reap if planted::is(Bug::BeatsBehindTheReaper) => {
                self.tell("saying that this instance lives", self.beat().await);
                while self.reap().await.is_ok_and(|reaped| reaped.has_more) {}
                self.settings.keep_interval
            }
            Job::Reap => match self.reap().await {
                Ok(reaped) if reaped.has_more => Duration::ZERO,
                result => {
                    self.tell("looking for lost leases", result.map(drop));
                    self.settings.keep_interval
                }
            },
            Job::Gates => match self.keep_gates().await {
                Ok(true) => self.settings.keep_interval.min(LIMITED_INTERVAL),
                result => {
                    self.tell("looking after the gates", result.map(drop));
                    self.settings.keep_interval
                }
            },
            Job::Prune => self.prune(pruning).await.unwrap_or_else(|error| {
                self.observer.store_failed("deleting old messages", &error);
                self.settings.prune_interval
            }),
        }
    }

    pub(crate) fn tell(&self, doing: &'static str, result: Result<(), StoreError>) {
        if let Err(error) = result {
            self.observer.store_failed(doing, &error);
        }
    }
}
