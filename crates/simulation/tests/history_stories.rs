//! Stories of what is kept of a try: when it was due, claimed, sent and answered.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::accept::NewMessage;
use redeliver_core::attempt::{AttemptRecord, Verdict as CameTo};
use redeliver_core::gate::Verdict;
use redeliver_core::report::Report;
use redeliver_core::{AttemptId, Content, Failure, Message, MessageId, Outcome, Timestamp};
use redeliver_engine::clock::Clock;
use redeliver_engine::gate::Gate;
use redeliver_engine::intake::{Accepted, Sink, Told};
use redeliver_engine::store::Store;
use redeliver_simulation::stage::{Act, Carrying, Stage, route, to};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Takes two seconds to say yes, on the stage's own clock.
#[derive(Default)]
struct Slow(OnceLock<Arc<dyn Clock>>);

#[async_trait]
impl Gate for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    async fn check(&self, _: &Message, _: &Content, _: Timestamp) -> Verdict {
        if let Some(clock) = self.0.get() {
            clock.sleep(seconds(2)).await;
        }
        Verdict::Pass
    }
}

/// A stage with a slow gate, whose receiver takes three seconds to say no.
fn slow_stage() -> Stage {
    let later = |_: &Carrying| -> Act { (seconds(3), Outcome::Failed(Failure::new("451"))) };
    let gate = Arc::new(Slow::default());
    let stage = Stage::with_gates(route(), vec![Arc::clone(&gate) as Arc<dyn Gate>], later);
    assert!(gate.0.set(Arc::clone(stage.engine.clock())).is_ok());
    stage
}

fn history(stage: &mut Stage, id: &MessageId) -> Vec<AttemptRecord> {
    let (store, id) = (Arc::clone(&stage.store), id.clone());
    stage.now(async move { store.attempts(id).await }).expect("the store answers")
}

/// When a try was due, claimed, sent and answered, in seconds from a time.
fn times(record: &AttemptRecord, from: Timestamp) -> [Option<u64>; 4] {
    [record.due_at, record.claimed_at, record.sent_at, Some(record.at)]
        .map(|at| at.map(|at| at.since(from).as_secs()))
}

#[test]
fn a_failed_try_is_kept_with_the_times_at_which_it_was_due_claimed_and_sent() {
    let mut stage = slow_stage();
    let begun = stage.time();
    let due_at = Some(begun.plus(seconds(5)));
    let [id] = stage.accept(vec![NewMessage { due_at, ..to("a") }]).try_into().unwrap();
    stage.pass(seconds(30));
    let kept: Vec<_> = history(&mut stage, &id).iter().map(|record| times(record, begun)).collect();
    assert_eq!(kept, [[5, 5, 7, 10], [20, 20, 22, 25]].map(|times| times.map(Some)));
}

#[test]
fn a_try_before_the_callers_eyes_was_due_and_claimed_when_it_was_accepted() {
    let mut stage = slow_stage();
    stage.pass(seconds(1));
    let begun = stage.time();
    let engine = Arc::clone(&stage.engine);
    let accepted = stage.now(async move { engine.accept_now(to("a")).await });
    let (Accepted::New(id), Some(_)) = accepted.unwrap() else { panic!("it is tried at once") };
    stage.pass(seconds(9));
    let kept = history(&mut stage, &id);
    let [record] = &kept[..] else { panic!("one try: {kept:?}") };
    assert_eq!(times(record, begun), [0, 0, 2, 5].map(Some));
}

#[test]
fn what_came_too_late_is_kept_with_its_times() {
    let mut stage = slow_stage();
    let begun = stage.time();
    let [id] = stage.accept(vec![to("a")]).try_into().unwrap();
    stage.pass(seconds(4));
    let attempt = Some(AttemptId::of(&stage.message(&id)));
    let outcome = Outcome::Delivered { receipt: None };
    let report = Report { message: id.clone(), attempt, outcome, workspace: None };
    let engine = Arc::clone(&stage.engine);
    let told = stage.now(async move { Sink::report(&*engine, vec![report]).await });
    assert_eq!(told.unwrap(), [Told::Applied], "a quick worker");
    stage.pass(seconds(4));
    let kept = history(&mut stage, &id);
    let [late] = &kept[..] else { panic!("one record: {kept:?}") };
    assert_eq!((late.verdict, times(late, begun)), (CameTo::Late, [0, 0, 2, 5].map(Some)));
}
