//! Runs an engine: a loop for each route, one that tends campaigns, and one that keeps the house.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};

use crate::engine::Engine;
use crate::inline::Ending;
use crate::stop::Stop;
use crate::store::StoreError;
use crate::work::work;

/// How long the start waits before it asks the store again.
const START_WAIT: Duration = Duration::from_millis(500);
/// How soon limited destinations are looked at while messages wait for them.
const LIMITED_INTERVAL: Duration = Duration::from_millis(100);

impl Engine {
    /// Runs until told to stop, then finishes what is in the air, but waits no longer than `drain_timeout`.
    pub async fn run(self: Arc<Self>, stop: Stop) {
        let parts = Arc::clone(&self).parts(stop).await;
        join_all(parts).await;
        self.retire().await;
    }

    /// The parts of a run, to be driven side by side: one for each route and one that keeps the house. When all
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
                        engine.idle.notify_one();
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
        let engine = Arc::clone(&self);
        parts.push(async move { engine.keep(stop).await }.boxed());
        parts
    }

    /// Says that this instance is gone, so that others need not wait for its leases.
    pub async fn retire(&self) {
        if let Err(error) = self.store.leave(self.instance).await {
            self.observer.store_failed("saying goodbye", &error);
        }
    }

    /// Keeps the house until told to stop and nothing is in the air: heartbeats, lost leases, gates, deletions.
    async fn keep(&self, mut stop: Stop) {
        let mut beat_at = self.clock.uptime();
        let mut prune_at = self.clock.uptime();
        while !(stop.is_stopped() && self.working.load(Ordering::Relaxed) == 0) {
            let uptime = self.clock.uptime();
            if uptime >= beat_at {
                self.tell("saying that this instance lives", self.beat().await);
                beat_at = uptime + self.settings.heartbeat;
            }
            self.tell("looking for lost leases", self.reap().await.map(drop));
            let limited = self.keep_gates().await.unwrap_or_else(|error| {
                self.observer.store_failed("looking after the gates", &error);
                false
            });
            if uptime >= prune_at {
                self.tell("deleting old messages", self.prune().await.map(drop));
                prune_at = uptime + self.settings.prune_interval;
            }
            let interval = self.settings.keep_interval.min(self.settings.heartbeat);
            let interval = if limited { interval.min(LIMITED_INTERVAL) } else { interval };
            tokio::select! {
                biased;
                () = self.idle.notified() => {}
                () = stop.stopped(), if !stop.is_stopped() => {}
                () = self.clock.sleep(interval) => {}
            }
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

    fn tell(&self, doing: &'static str, result: Result<(), StoreError>) {
        if let Err(error) = result {
            self.observer.store_failed(doing, &error);
        }
    }
}
