//! Stories of messages that are tried before the caller's eyes, on a stage where time is virtual.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redeliver_core::accept::NewMessage;
use redeliver_core::operate::Action;
use redeliver_core::{Failure, Message, Outcome, Route};
use redeliver_simulation::stage::{Carrying, Stage, route, to};

const AT_ONCE: Duration = Duration::ZERO;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn delivered() -> Outcome {
    Outcome::Delivered { receipt: None }
}

/// Accepts a message to be tried at once, and gives what its waiter was told, once it is.
fn send_now(stage: &mut Stage, message: NewMessage) -> Arc<OnceLock<Option<Message>>> {
    let told = Arc::new(OnceLock::new());
    let (engine, telling) = (Arc::clone(&stage.engine), Arc::clone(&told));
    stage.begin(async move {
        let (_, waiter) = engine.accept_now(message).await.expect("the store answers");
        let settled = match waiter {
            Some(waiter) => waiter.settled().await,
            None => None,
        };
        telling.set(settled).expect("told once");
    });
    told
}

#[test]
fn a_message_is_tried_before_the_callers_eyes_and_waits_on_if_that_fails() {
    let mut stage = Stage::new(Route { inline_first: true, ..route() }, |carrying| {
        let first = carrying.message.attempts == 0;
        (seconds(1), if first { Outcome::Failed(Failure::new("451")) } else { delivered() })
    });
    stage.pass(seconds(1));
    let begun = stage.time();
    let told = send_now(&mut stage, to("a"));
    stage.pass(Duration::from_millis(900));
    assert!(told.get().is_none(), "the try is under way");
    stage.pass(Duration::from_millis(200));
    let settled = told.get().unwrap().clone().unwrap();
    assert_eq!((settled.state.name(), settled.attempts, settled.attempts_before), ("waiting", 1, 1));
    stage.pass(seconds(20));
    let times: Vec<u64> = stage.log().carryings.iter().map(|c| c.at.since(begun).as_secs()).collect();
    assert_eq!(times, [0, 11]);
    assert_eq!(stage.message(&settled.id).state.name(), "delivered");
}

#[test]
fn the_budget_of_an_inline_first_route_is_the_workers_and_the_try_before_the_callers_eyes() {
    let failing = |_: &Carrying| (AT_ONCE, Outcome::Failed(Failure::new("451")));
    let tries = |inline: bool| {
        let mut stage = Stage::new(Route { inline_first: true, ..route() }, failing);
        stage.pass(seconds(1));
        if inline {
            send_now(&mut stage, to("a"));
        } else {
            stage.accept(vec![to("a")]);
        }
        stage.pass(seconds(100));
        let count = stage.log().carryings.len();
        let id = stage.log().carryings[0].message.id.clone();
        assert_eq!(stage.message(&id).state.name(), "dead");
        let engine = Arc::clone(&stage.engine);
        stage.now(async move { engine.operate(&id, Action::Retry, &"ada".into()).await }).unwrap();
        stage.pass(seconds(100));
        (count, stage.log().carryings.len() - count)
    };
    assert_eq!(tries(true), (4, 3), "one inline and three by the worker, then three more");
    assert_eq!(tries(false), (3, 3));
}

#[test]
fn what_comes_while_the_engine_stops_waits_for_the_next_start() {
    let mut stage = Stage::new(route(), |_| (seconds(5), delivered()));
    stage.pass(seconds(1));
    let early = send_now(&mut stage, to("a"));
    stage.pass(seconds(1));
    stage.stop();
    stage.pass(Duration::from_millis(1));
    let late = send_now(&mut stage, to("b"));
    stage.pass(seconds(10));
    assert!(!stage.is_running());
    assert_eq!(early.get().unwrap().as_ref().unwrap().state.name(), "delivered");
    assert_eq!(late.get(), Some(&None), "nobody will try it here");
    assert_eq!(stage.log().carryings.len(), 1);
    let engine = Arc::clone(&stage.engine);
    let waiting = stage.now(async move { engine.store().counts(engine.clock().now()).await }).unwrap();
    assert!(waiting.iter().any(|count| count.state == "waiting" && count.due == 1), "{waiting:?}");
}
