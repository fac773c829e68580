//! Stories of what was handed off: whose report counts, for whom, and what a bad one does to its neighbours.

use std::sync::Arc;
use std::time::Duration;

use redeliver_core::change::NewRow;
use redeliver_core::content::ContentSource;
use redeliver_core::report::Report;
use redeliver_core::{Failure, Message, MessageId, Outcome};
use redeliver_engine::intake::{Sink, Told};
use redeliver_engine::pulse::Minute;
use redeliver_engine::store::Store;
use redeliver_simulation::stage::{Stage, route, to};

const AT_ONCE: Duration = Duration::ZERO;

fn delivered() -> Outcome {
    Outcome::Delivered { receipt: None }
}

#[test]
fn a_report_that_is_bound_to_a_workspace_says_nothing_of_others() {
    let mut stage = Stage::new(route(), |_| (AT_ONCE, Outcome::HandedOff));
    let [id] = stage.accept(vec![to("mx")]).try_into().unwrap();
    stage.pass(Duration::from_secs(1));
    assert_eq!(stage.message(&id).state.name(), "handed_off");
    let mut report = |workspace: Option<&str>| {
        let workspace = workspace.map(Into::into);
        let report = Report { message: id.clone(), attempt: None, outcome: delivered(), workspace };
        let engine = Arc::clone(&stage.engine);
        stage.now(async move { Sink::report(&*engine, vec![report]).await }).unwrap()
    };
    assert_eq!(report(Some("other")), [Told::NoMessage]);
    assert_eq!(report(Some("default")), [Told::Applied]);
    assert_eq!(report(None), [Told::Ignored], "it has ended");
}

#[test]
fn a_hand_off_is_delivered_when_that_is_reported_and_counted_once() {
    let mut stage = Stage::new(route(), |_| (AT_ONCE, Outcome::HandedOff));
    let ids = stage.accept(vec![to("mx"), to("mx")]);
    stage.pass(Duration::from_secs(1));
    let counts = |stage: &Stage| {
        let minutes = stage.engine.pulse().minutes(stage.time());
        let sum = |count: fn(&Minute) -> u32| minutes.iter().map(count).sum::<u32>();
        (sum(|minute| minute.handed_off), sum(|minute| minute.delivered), sum(|minute| minute.dead))
    };
    assert_eq!(counts(&stage), (2, 0, 0), "a broker has them, and nobody else");
    for (id, outcome) in ids.iter().zip([delivered(), Outcome::Refused(Failure::new("550 no"))]) {
        let report = Report { message: id.clone(), attempt: None, outcome, workspace: None };
        let engine = Arc::clone(&stage.engine);
        stage.now(async move { Sink::report(&*engine, vec![report]).await }).unwrap();
    }
    assert_eq!(counts(&stage), (2, 1, 1));
}

#[test]
fn a_report_that_cannot_be_kept_fails_none_of_its_neighbours() {
    let mut stage = Stage::new(route(), |_| (AT_ONCE, Outcome::HandedOff));
    let [id] = stage.accept(vec![to("mx")]).try_into().unwrap();
    stage.pass(Duration::from_secs(1));
    let message = Message { route: "gone".into(), id: MessageId::own(9), ..stage.message(&id) };
    let content = ContentSource::Given(Arc::default());
    let row = NewRow { message, content, hash: None, spawn: None, revives: false };
    let store = Arc::clone(&stage.store);
    stage.now(async move { store.insert(vec![row]).await }).unwrap();
    let report = |id: MessageId| Report { message: id, attempt: None, outcome: delivered(), workspace: None };
    let batch = vec![report(id.clone()), report(MessageId::own(9))];
    let engine = Arc::clone(&stage.engine);
    let told = stage.now(async move { Sink::report(&*engine, batch).await }).unwrap();
    assert!(matches!(told.as_slice(), [Told::Applied, Told::Unfit(_)]), "{told:?}");
    assert_eq!(stage.message(&id).state.name(), "delivered");
}
