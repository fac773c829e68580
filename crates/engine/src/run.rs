//! Runs an engine: a loop for each route, one that tends campaigns, and one for each maintenance job.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};

use crate::engine::Engine;
use crate::inline::Ending;
use crate::maintain::Job;
use crate::stop::Stop;
use crate::work::work;

/// How long the start waits before it asks the store again.
const START_WAIT: Duration = Duration::from_millis(500);

impl Engine {
    /// Runs until told to stop, then finishes what is in the air, but waits no longer than `drain_timeout`.
    pub async fn run(self: Arc<Self>, stop: Stop) {
        let parts = Arc::clone(&self).parts(stop).await;
        join_all(parts).await;
        self.retire().await;
    }

    /// The parts of a run, to be driven side by side: first one for each route, then the maintenance. When all
    /// have ended, [`Engine::retire`] says goodbye.
    pub async fn parts(self: Arc<Self>, stop: Stop) -> Vec<BoxFuture<'static, ()>> {
        self.first_beat(stop.clone()).await;
        let mut parts: Vec<BoxFuture<'static, ()>> = Vec::new();
        for name in self.lines.keys() {
            let name = name.clone();
            let engine = Arc::clone(&self);
            let stop = stop.clone();
            self.working.fetch_add(1, Ordering::Relaxed);
            parts.push(
                async move {
                    if let Some(line) = engine.lines.get(&name) {
                        let _ending = Ending(&line.inline);
                        tokio::select! {
                            biased;
                            () = work(&engine, line, stop.clone()) => {}
                            () = engine.drained(stop) => {}
                        }
                    }
                    if engine.working.fetch_sub(1, Ordering::Relaxed) == 1 {
                        engine.idle.notify_waiters();
                    }
                }
                .boxed(),
            );
        }
        let engine = Arc::clone(&self);
        let watch_stop = stop.clone();
        parts.push(async move { engine.watch(watch_stop).await }.boxed());
        if self.desk.is_some() {
            let (engine, tend_stop) = (Arc::clone(&self), stop.clone());
            parts.push(async move { engine.tend(tend_stop).await }.boxed());
        }
        for job in Job::ALL {
            let (engine, stop) = (Arc::clone(&self), stop.clone());
            parts.push(async move { engine.repeat(job, stop).await }.boxed());
        }
        parts
    }

    /// Says that this instance is gone, so that others need not wait for its leases.
    pub async fn retire(&self) {
        if let Err(error) = self.store.leave(self.instance).await {
            self.observer.store_failed("saying goodbye", &error);
        }
    }

    /// Wakes everybody when somebody outside this process has written.
    async fn watch(&self, mut stop: Stop) {
        while !stop.is_stopped() {
            if self.store.changed_outside().await.unwrap_or(false) {
                self.wake_all();
            }
            tokio::select! {
                biased;
                () = stop.stopped() => {}
                () = self.clock.sleep(self.settings.watch_interval) => {}
            }
        }
    }

    /// Claims are only worth something once the store knows that we live.
    async fn first_beat(&self, stop: Stop) {
        while let Err(error) = self.beat().await {
            self.observer.store_failed("saying that this instance lives", &error);
            if stop.is_stopped() {
                return;
            }
            self.clock.sleep(START_WAIT).await;
        }
        self.tell("reading the gates", self.refresh_gates().await);
    }

    /// Ends `drain_timeout` after the stop.
    async fn drained(&self, mut stop: Stop) {
        stop.stopped().await;
        self.clock.sleep(self.settings.drain_timeout).await;
    }
}
