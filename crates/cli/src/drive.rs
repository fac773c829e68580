//! Runs the parts of an engine, each on a task of its own, and doesn't let one of them end unnoticed.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use redeliver_core::Name;
use redeliver_engine::Engine;
use redeliver_engine::intake::Intake;
use redeliver_engine::stop::{Stop, Stopper};
use tokio::task::{Id, JoinError, JoinSet};

/// Runs an engine until told to stop and nothing is in the air any more, or `drain_timeout` is over. An error means
/// that a part failed; the others were told to stop then, and have finished.
pub async fn drive(engine: &Arc<Engine>, stopper: &Stopper, stop: Stop) -> anyhow::Result<()> {
    drive_with(engine, Vec::new(), stopper, stop).await
}

/// The same with what feeds messages in beside it. An intake whose source is away waits for it; one that gives up has
/// failed.
pub async fn drive_with(
    engine: &Arc<Engine>,
    intakes: Vec<(Name, Arc<dyn Intake>)>,
    stopper: &Stopper,
    stop: Stop,
) -> anyhow::Result<()> {
    let mut parts = Arc::clone(engine).parts(stop.clone()).await;
    let routes: Vec<String> = engine.routes().map(|route| format!("route {}", route.name)).collect();
    let house = parts.split_off(routes.len().min(parts.len()));
    let mut tasks = Tasks::default();
    for (name, part) in routes.into_iter().zip(parts) {
        tasks.start_work(name, part);
    }
    for part in house {
        tasks.start_house(part);
    }
    tasks.start_house(Arc::clone(engine).bulks(stop.clone()));
    for (name, intake) in intakes {
        let (engine, stop) = (Arc::clone(engine), stop.clone());
        tasks.start_work(format!("intake {name}"), async move {
            if let Err(error) = intake.run(&*engine, stop).await {
                tracing::error!(event = "intake.failed", intake = %name, "{error}");
            }
        });
    }
    let ended = tasks.run(stopper, &stop).await;
    engine.retire().await;
    ended
}

/// Tasks that all must run until they are told to stop.
#[derive(Default)]
struct Tasks {
    /// Those that have something in the air.
    work: JoinSet<()>,
    /// Those that needn't be waited for when one of the others has failed.
    house: JoinSet<()>,
    names: HashMap<Id, String>,
}

impl Tasks {
    fn start_work(&mut self, name: String, part: impl Future<Output = ()> + Send + 'static) {
        let id = self.work.spawn(part).id();
        self.names.insert(id, name);
    }

    fn start_house(&mut self, part: impl Future<Output = ()> + Send + 'static) {
        self.house.spawn(part);
    }

    /// Runs them all to their end. After the first failure, only those with something in the air.
    async fn run(mut self, stopper: &Stopper, stop: &Stop) -> anyhow::Result<()> {
        let mut failure = None;
        while !(self.work.is_empty() && (self.house.is_empty() || failure.is_some())) {
            let ended = tokio::select! {
                Some(ended) = self.work.join_next_with_id() => ended,
                Some(ended) = self.house.join_next_with_id() => ended,
                else => break,
            };
            if let Some(what) = self.failed(ended, stop) {
                tracing::error!(event = "engine.failed", "{what}; stopping, so that it can be started again");
                failure = failure.or(Some(what));
                stopper.stop();
            }
        }
        failure.map_or(Ok(()), |what| Err(anyhow::Error::msg(what)))
    }

    /// What is wrong about the way that a task ended, if anything is.
    fn failed(&self, ended: Result<(Id, ()), JoinError>, stop: &Stop) -> Option<String> {
        let name = |id: &Id| self.names.get(id).map_or("the house keeping", String::as_str);
        match ended {
            Ok(_) if stop.is_stopped() => None,
            Ok((id, ())) => Some(format!("{} ended without being told to", name(&id))),
            Err(error) => Some(format!("{} panicked", name(&error.id()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use redeliver_engine::stop::stop_pair;

    fn run<T>(story: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(story)
    }

    /// A part that ends when it is told to, and says that it did.
    fn obedient(mut stop: Stop, ended: &Arc<AtomicBool>) -> impl Future<Output = ()> + Send + 'static {
        let ended = Arc::clone(ended);
        async move {
            stop.stopped().await;
            ended.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn parts_that_end_when_they_are_told_to_have_ended_well() {
        run(async {
            let (stopper, stop) = stop_pair();
            let ended = Arc::default();
            let mut tasks = Tasks::default();
            tasks.start_work("route a".to_owned(), obedient(stop.clone(), &ended));
            tasks.start_house(obedient(stop.clone(), &Arc::default()));
            stopper.stop();
            tasks.run(&stopper, &stop).await.unwrap();
            assert!(ended.load(Ordering::Relaxed));
        });
    }

    #[test]
    fn a_part_that_panics_stops_the_others_and_is_named() {
        run(async {
            let (stopper, stop) = stop_pair();
            let ended = Arc::default();
            let mut tasks = Tasks::default();
            tasks.start_work("route a".to_owned(), async { panic!("a bug") });
            tasks.start_work("route b".to_owned(), obedient(stop.clone(), &ended));
            // Nobody waits for the house: what it looks after is gone.
            tasks.start_house(std::future::pending());
            let error = tasks.run(&stopper, &stop).await.unwrap_err();
            assert_eq!(error.to_string(), "route a panicked");
            assert!(ended.load(Ordering::Relaxed), "route b was let finish");
        });
    }

    #[test]
    fn a_part_that_ends_untold_is_a_failure() {
        run(async {
            let (stopper, stop) = stop_pair();
            let mut tasks = Tasks::default();
            tasks.start_house(std::future::ready(()));
            tasks.start_work("route a".to_owned(), obedient(stop.clone(), &Arc::default()));
            let error = tasks.run(&stopper, &stop).await.unwrap_err();
            assert_eq!(error.to_string(), "the house keeping ended without being told to");
        });
    }
}
