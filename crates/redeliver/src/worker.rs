//! What carries messages out while it runs: the engine's parts, each on a task of the caller's runtime.

use std::sync::Arc;

use redeliver_engine::Engine;
use redeliver_engine::stop::{Stop, Stopper};
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle, JoinSet};

use crate::error::Error;

/// Carries messages out until it is stopped. Dropped, it is told to stop, and ends by itself as long as the runtime
/// lives; a runtime that ends under it is no worse than a crash.
#[must_use = "a worker that is dropped stops"]
#[derive(Debug)]
pub struct Worker {
    stopper: Arc<Stopper>,
    running: JoinHandle<Result<(), Error>>,
}

impl Worker {
    pub(crate) fn start(runtime: &Handle, engine: Arc<Engine>, stopper: Stopper, stop: Stop) -> Self {
        let stopper = Arc::new(stopper);
        let running = runtime.spawn(run(engine, Arc::clone(&stopper), stop));
        Self { stopper, running }
    }

    /// Takes nothing new, waits for what is in the air (no longer than `Settings::drain_timeout`), and ends. An
    /// error means that it had failed before.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.stopper.stop();
        let ended = (&mut self.running).await;
        ended.unwrap_or_else(|error| Err(Error::WorkerEnded(show(&error))))
    }

    /// Whether messages are being carried: what an application's own health check can ask.
    pub fn is_running(&self) -> bool {
        !self.running.is_finished()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

/// Runs the parts of an engine until it is told to stop and nothing is in the air any more. If one of them fails, the
/// routes that still work finish what they have; nobody waits for the house, which looks after what is gone.
async fn run(engine: Arc<Engine>, stopper: Arc<Stopper>, stop: Stop) -> Result<(), Error> {
    let mut parts = Arc::clone(&engine).parts(stop.clone()).await;
    let house = parts.split_off(engine.routes().count().min(parts.len()));
    let mut routes: JoinSet<()> = parts.into_iter().collect();
    let mut house: JoinSet<()> = house.into_iter().collect();
    let mut failure = None;
    loop {
        let is_watched = failure.is_none() && !(routes.is_empty() && house.is_empty());
        let ended = tokio::select! {
            Some(ended) = routes.join_next() => ended,
            Some(ended) = house.join_next(), if failure.is_none() => ended,
            error = engine.store().broken(), if is_watched => {
                tracing::error!(event = "engine.failed", "{error}");
                stopper.stop();
                return Err(Error::WorkerEnded(error.to_string()));
            }
            else => break,
        };
        let what = match ended {
            Ok(()) if stop.is_stopped() => continue,
            Ok(()) => "a part ended without being told to".to_owned(),
            Err(error) => show(&error),
        };
        tracing::error!(
            event = "engine.failed",
            "{what}; nothing is carried until the store is opened again"
        );
        failure.get_or_insert(what);
        stopper.stop();
    }
    drop(house);
    engine.retire().await;
    failure.map_or(Ok(()), |what| Err(Error::WorkerEnded(what)))
}

fn show(error: &JoinError) -> String {
    if error.is_panic() { "a part panicked; this is a bug" } else { "the runtime ended" }.to_owned()
}
