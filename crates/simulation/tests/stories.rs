//! Stories of the engine on a stage where time is virtual: gates, limits, breakers, lanes, drains.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::accept::NewMessage;
use redeliver_core::breaker::BreakerConfig;
use redeliver_core::gate::{Scope, Verdict};
use redeliver_core::limit::Rate;
use redeliver_core::operate::Action;
use redeliver_core::outcome::{Blame, Until};
use redeliver_core::route::OnAuthError;
use redeliver_core::{AttemptId, Content, Failure, Lane, Message, Outcome, Route, State, Timestamp};
use redeliver_engine::clock::Clock;
use redeliver_engine::gate::Gate;
use redeliver_simulation::stage::{Act, Carrying, Stage, route, to};

const AT_ONCE: Duration = Duration::ZERO;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn delivered() -> Outcome {
    Outcome::Delivered { receipt: None }
}

fn unreachable() -> Outcome {
    Outcome::Failed(Failure::new("no route to host").blaming(Blame::Connection))
}

fn takes_all(_: &Carrying) -> Act {
    (AT_ONCE, delivered())
}

#[test]
fn a_message_goes_at_its_time_and_not_before() {
    let mut stage = Stage::new(route(), takes_all);
    let due_at = stage.time().plus(Duration::from_millis(12_345));
    let ids = stage.accept(vec![NewMessage { due_at: Some(due_at), ..to("a") }]);
    stage.pass(Duration::from_millis(12_344));
    assert!(stage.log().carryings.is_empty());
    stage.pass(Duration::from_millis(2));
    assert_eq!(stage.log().carryings[0].at, due_at);
    assert_eq!(stage.message(&ids[0]).state.name(), "delivered");
}

#[test]
fn a_failed_try_is_repeated_on_time_until_it_is_hopeless() {
    let mut stage = Stage::new(route(), |_| (AT_ONCE, Outcome::Failed(Failure::new("451"))));
    let begun = stage.time();
    let ids = stage.accept(vec![to("a")]);
    stage.pass(seconds(100));
    let waits: Vec<u64> = stage.log().carryings.iter().map(|c| c.at.since(begun).as_secs()).collect();
    assert_eq!(waits, [0, 10, 20, 30]);
    assert_eq!(stage.message(&ids[0]).state.name(), "dead");
}

#[test]
fn a_refused_login_holds_everybody_until_one_message_finds_that_it_is_good_again() {
    let good_from = Arc::new(OnceLock::new());
    let good = Arc::clone(&good_from);
    let mut stage = Stage::new(route(), move |carrying| match good.get() {
        Some(from) if carrying.at >= *from => (AT_ONCE, delivered()),
        _ => (AT_ONCE, Outcome::Failed(Failure::new("535 no").blaming(Blame::Credential))),
    });
    stage.pass(seconds(1));
    good_from.set(stage.time().plus(seconds(400))).unwrap();
    let ids = stage.accept(vec![to("mx"), to("mx"), to("mx")]);
    stage.pass(seconds(200));
    let tried = stage.log().carryings.len();
    assert!(tried <= 3, "held after the first refusals, {tried} tries");
    stage.pass(seconds(180));
    assert_eq!(stage.log().carryings.len(), tried + 1, "one finds out, in vain");
    stage.pass(seconds(300));
    for id in &ids {
        let message = stage.message(id);
        assert_eq!((message.state.name(), message.attempts), ("delivered", 1), "the hold cost no try");
    }
}

#[test]
fn an_explanation_names_the_gate_that_a_message_waits_for() {
    let mut stage = Stage::new(route(), takes_all);
    stage.pass(seconds(1));
    let engine = Arc::clone(&stage.engine);
    stage.now(async move { engine.pause(Scope::Destination, "mx", &"ada".into()).await }).unwrap();
    let ids = stage.accept(vec![to("mx")]);
    stage.pass(seconds(1));
    let (engine, id) = (Arc::clone(&stage.engine), ids[0].clone());
    let said = stage.now(async move { engine.explain(&id).await }).unwrap().unwrap();
    assert!(said.sentence.contains("destination mx is paused by ada since"), "{}", said.sentence);
    assert!(said.sentence.contains("until an operator resumes it"), "{}", said.sentence);
    assert_eq!(said.earliest_at, None);
}

#[test]
fn a_flood_of_low_ones_does_not_hold_up_a_critical_one() {
    let mut stage = Stage::new(Route { concurrency_max: 20, ..route() }, |_| (seconds(5), delivered()));
    stage.accept((0..500).map(|_| NewMessage { lane: Lane::Low, ..to("a") }).collect());
    stage.pass(seconds(1));
    let asked = stage.time();
    stage.accept(vec![NewMessage { lane: Lane::Critical, ..to("a") }]);
    stage.pass(seconds(1));
    let log = stage.log();
    let critical = log.carryings.iter().find(|c| c.message.lane == Lane::Critical).expect("it went");
    assert!(critical.at.since(asked) < Duration::from_millis(50));
}

#[test]
fn critical_ones_do_not_starve_the_low() {
    let mut stage = Stage::new(Route { concurrency_max: 20, ..route() }, |_| (seconds(5), delivered()));
    stage.accept((0..500).map(|_| NewMessage { lane: Lane::Critical, ..to("a") }).collect());
    stage.accept(vec![NewMessage { lane: Lane::Low, ..to("a") }]);
    stage.pass(seconds(1));
    assert!(stage.log().carryings.iter().any(|c| c.message.lane == Lane::Low));
}

fn with_breaker() -> Route {
    let breaker = BreakerConfig { failures_max: 3, open_for: seconds(30), ..BreakerConfig::default() };
    Route { breaker: Some(breaker), ..route() }
}

#[test]
fn an_open_breaker_parks_without_cost_and_one_probe_opens_the_way() {
    let down_until = Timestamp::from_ms(1_796_115_600_000).plus(seconds(40));
    let mut stage = Stage::new(with_breaker(), move |carrying| match &*carrying.destination {
        "down" if carrying.at < down_until => (AT_ONCE, unreachable()),
        _ => (AT_ONCE, delivered()),
    });
    let first = stage.accept((0..3).map(|_| to("down")).collect());
    stage.pass(seconds(1));
    let parked = stage.accept((0..5).map(|_| to("down")).collect());
    let elsewhere = stage.accept(vec![to("up")]);
    stage.pass(seconds(5));
    assert_eq!(
        stage.log().carryings.iter().filter(|c| &*c.destination == "down").count(),
        3,
        "none after it tripped"
    );
    assert_eq!(stage.message(&elsewhere[0]).state.name(), "delivered", "other destinations go on");
    for id in &parked {
        let message = stage.message(id);
        assert!(matches!(&message.state, State::Waiting { parked_for: Some(_) }), "{:?}", message.state);
        assert_eq!(message.attempts, 0);
    }
    stage.pass(seconds(40));
    assert_eq!(
        stage.log().carryings.iter().filter(|c| &*c.destination == "down").count(),
        4,
        "one probe, in vain"
    );
    stage.pass(seconds(120));
    for id in first.iter().chain(&parked) {
        assert_eq!(stage.message(id).state.name(), "delivered");
    }
    let tries: u32 = parked.iter().map(|id| stage.message(id).attempts).sum();
    assert_eq!(tries, 5 + 1, "one try each, and one that was the probe in vain");
}

#[test]
fn a_refused_login_holds_the_destination_until_a_person_resumes_it() {
    let mut stage = Stage::new(route(), |carrying| match carrying.message.fence {
        0..=2 => (AT_ONCE, Outcome::Failed(Failure::new("535").blaming(Blame::Credential))),
        _ => (AT_ONCE, delivered()),
    });
    let ids = stage.accept(vec![to("relay"), to("relay")]);
    stage.pass(seconds(60));
    for id in &ids {
        let message = stage.message(id);
        assert!(matches!(message.state, State::Waiting { parked_for: Some(_) }));
        assert_eq!(message.attempts, 0, "a login that fails costs no try");
    }
    let carried = stage.log().carryings.len();
    stage.pass(seconds(200));
    assert_eq!(stage.log().carryings.len(), carried, "held means held");
    let engine = Arc::clone(&stage.engine);
    let resumed = stage.now(async move { engine.resume(Scope::Destination, "relay", &"ada".into()).await });
    assert_eq!(resumed, Ok(()));
    stage.pass(seconds(10));
    for id in &ids {
        assert_eq!(stage.message(id).state.name(), "delivered");
    }
}

#[test]
fn a_plea_to_slow_down_keeps_the_siblings_away_too() {
    let mut stage = Stage::new(route(), |carrying| match carrying.message.lane {
        Lane::High if carrying.message.attempts == 0 => {
            let failure =
                Failure::new("421").blaming(Blame::Throttle).with_retry_after(Duration::from_secs(60));
            (AT_ONCE, Outcome::Failed(failure))
        }
        _ => (AT_ONCE, delivered()),
    });
    let begun = stage.time();
    stage.accept(vec![NewMessage { lane: Lane::High, ..to("mx") }]);
    stage.pass(seconds(1));
    let sibling = stage.accept(vec![to("mx")]);
    stage.pass(seconds(58));
    assert_eq!(stage.message(&sibling[0]).attempts, 0);
    assert_eq!(stage.log().carryings.len(), 1);
    stage.pass(seconds(3));
    assert_eq!(stage.message(&sibling[0]).state.name(), "delivered");
    assert!(stage.log().carryings[1].at.since(begun) >= seconds(60));
}

#[test]
fn a_rate_is_kept_whether_the_destination_is_fixed_or_not() {
    for fixed in [true, false] {
        let mut limited = Route { rate: Some(Rate { per_s: 5.0 }), ..route() };
        if fixed {
            limited.lanes.iter_mut().for_each(|travel| travel.target = Some("a".into()));
        }
        let mut stage = Stage::new(limited, takes_all);
        stage.accept((0..60).map(|_| to("a")).collect());
        stage.pass(seconds(4));
        let begun = stage.log().carryings[0].at;
        let count = |stage: &Stage, from: u64, to: u64| {
            let log = stage.log();
            log.carryings.iter().filter(|c| (from..to).contains(&c.at.since(begun).as_secs())).count()
        };
        for second in 1..4 {
            let sent = count(&stage, second, second + 1);
            assert!((2..=10).contains(&sent), "{sent} in second {second}, fixed: {fixed}");
        }
        stage.pass(seconds(60));
        assert_eq!(stage.log().carryings.len(), 60, "all went in the end, once each");
    }
}

#[test]
fn a_slow_destination_has_no_more_at_once_than_it_may_and_holds_up_nobody_else() {
    let limited = Route { destination_concurrency_max: Some(2), concurrency_max: 16, ..route() };
    let mut stage = Stage::new(limited, |carrying| match &*carrying.destination {
        "slow" => (seconds(4), delivered()),
        _ => (AT_ONCE, delivered()),
    });
    stage.accept((0..20).map(|_| to("slow")).collect());
    let quick = stage.accept(vec![to("quick")]);
    stage.pass(seconds(2));
    assert_eq!(stage.message(&quick[0]).state.name(), "delivered");
    stage.pass(seconds(120));
    assert_eq!(stage.log().at_once_max["slow"], 2);
    assert_eq!(stage.log().carryings.len(), 21);
}

#[test]
fn a_paused_route_sends_nothing_and_loses_nothing() {
    let mut stage = Stage::new(route(), takes_all);
    let engine = Arc::clone(&stage.engine);
    assert_eq!(stage.now(async move { engine.pause(Scope::Route, "story", &"ada".into()).await }), Ok(()));
    let ids = stage.accept(vec![to("a"), to("b")]);
    stage.pass(seconds(600));
    assert!(stage.log().carryings.is_empty());
    let engine = Arc::clone(&stage.engine);
    assert_eq!(stage.now(async move { engine.resume(Scope::Route, "story", &"ada".into()).await }), Ok(()));
    stage.pass(seconds(5));
    for id in &ids {
        let message = stage.message(id);
        assert_eq!((message.state.name(), message.attempts), ("delivered", 1));
    }
}

#[test]
fn a_paused_workspace_campaign_or_sender_is_parked_and_released() {
    for (scope, name) in [(Scope::Workspace, "default"), (Scope::Campaign, "spring"), (Scope::Sender, "ada")]
    {
        let mut stage = Stage::new(route(), takes_all);
        let engine = Arc::clone(&stage.engine);
        assert_eq!(stage.now(async move { engine.pause(scope, name, &"ada".into()).await }), Ok(()));
        let mut message = to("a");
        message.content.attributes.insert("campaign".to_owned(), "spring".to_owned());
        message.content.attributes.insert("sender".to_owned(), "ada".to_owned());
        let ids = stage.accept(vec![message]);
        stage.pass(seconds(60));
        assert!(matches!(stage.message(&ids[0]).state, State::Waiting { parked_for: Some(_) }), "{scope:?}");
        let engine = Arc::clone(&stage.engine);
        assert_eq!(stage.now(async move { engine.resume(scope, name, &"ada".into()).await }), Ok(()));
        stage.pass(seconds(5));
        assert_eq!(stage.message(&ids[0]).state.name(), "delivered", "{scope:?}");
    }
}

#[test]
fn told_to_stop_it_finishes_what_is_in_the_air_and_starts_nothing_new() {
    let mut stage = Stage::new(Route { concurrency_max: 8, ..route() }, |_| (seconds(5), delivered()));
    let ids = stage.accept((0..20).map(|_| to("a")).collect());
    stage.pass(seconds(1));
    let in_the_air = stage.log().carryings.len();
    assert!(in_the_air > 0 && in_the_air < 20);
    stage.stop();
    stage.pass(seconds(10));
    assert!(!stage.is_running());
    assert_eq!(stage.log().carryings.len(), in_the_air);
    let states: Vec<&str> = ids.iter().map(|id| stage.message(id).state.name()).collect();
    assert_eq!(states.iter().filter(|state| **state == "delivered").count(), in_the_air);
    assert!(!states.contains(&"claimed"));
}

#[test]
fn a_transport_that_panics_loses_one_message_and_no_other() {
    let mut stage = Stage::new(route(), |carrying| match &*carrying.destination {
        "bad" => panic!("on purpose"),
        _ => (AT_ONCE, delivered()),
    });
    let ids = stage.accept(vec![to("bad"), to("good")]);
    stage.pass(seconds(5));
    let bad = stage.message(&ids[0]);
    // Bytes may have left before the panic: it is unconfirmed, and not a failed try.
    assert_eq!((bad.state.name(), bad.attempts, bad.unconfirmed), ("waiting", 0, 1));
    assert_eq!(stage.message(&ids[1]).state.name(), "delivered");
}

#[test]
fn a_long_carrying_goes_on_for_as_long_as_the_store_hears_of_its_instance() {
    let patient = Route { send_timeout: seconds(30), lease: seconds(120), ..route() };
    let mut stage = Stage::new(patient, |_| (seconds(29), delivered()));
    let ids = stage.accept(vec![to("a")]);
    stage.pass(seconds(31));
    let message = stage.message(&ids[0]);
    assert_eq!((message.state.name(), message.attempts), ("delivered", 1));
    assert_eq!(stage.log().carryings.len(), 1);
}

#[test]
fn a_send_outlasts_its_lease_by_renewals() {
    let patient = Route { send_timeout: seconds(700), lease: seconds(60), ..route() };
    let mut stage = Stage::new(patient, |_| (seconds(600), delivered()));
    let ids = stage.accept(vec![to("a")]);
    stage.pass(seconds(602));
    let message = stage.message(&ids[0]);
    assert_eq!((message.state.name(), message.attempts, message.losses), ("delivered", 1, 0));
    assert_eq!(stage.log().carryings.len(), 1);
}

#[test]
fn a_receiver_that_always_answers_too_late_gets_no_more_copies_than_the_budget_allows() {
    let mut stage = Stage::new(route(), |_| (seconds(12), delivered()));
    let ids = stage.accept(vec![to("a")]);
    stage.pass(seconds(24 * 3_600));
    let message = stage.message(&ids[0]);
    assert_eq!((message.state.name(), message.attempts, message.unconfirmed), ("dead", 0, 3));
    assert_eq!(stage.log().carryings.len(), 3);
}

#[test]
fn a_transport_that_never_answers_is_given_up_and_its_try_repeated_under_the_same_id() {
    let mut stage = Stage::new(route(), |carrying| match carrying.message.unconfirmed {
        0 => (seconds(1_000), delivered()),
        _ => (AT_ONCE, delivered()),
    });
    let ids = stage.accept(vec![to("a")]);
    stage.pass(seconds(60));
    let log = stage.log();
    let attempts: Vec<AttemptId> = log.carryings.iter().map(|c| AttemptId::of(&c.message)).collect();
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0], attempts[1]);
    drop(log);
    let message = stage.message(&ids[0]);
    assert_eq!((message.state.name(), message.possible_duplicates), ("delivered", 1));
}

struct Opinion(fn(Timestamp) -> Verdict);

#[async_trait]
impl Gate for Opinion {
    fn name(&self) -> &str {
        "opinion"
    }

    async fn check(&self, _: &Message, _: &Content, now: Timestamp) -> Verdict {
        (self.0)(now)
    }
}

/// Takes a hundred seconds to say yes, on the stage's own clock.
struct Slow(Arc<OnceLock<Arc<dyn Clock>>>);

#[async_trait]
impl Gate for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    async fn check(&self, _: &Message, _: &Content, _: Timestamp) -> Verdict {
        if let Some(clock) = self.0.get() {
            clock.sleep(seconds(100)).await;
        }
        Verdict::Pass
    }
}

fn state_behind(verdict: fn(Timestamp) -> Verdict) -> (Message, usize) {
    let mut stage = Stage::with_gates(route(), vec![Arc::new(Opinion(verdict))], takes_all);
    let ids = stage.accept(vec![to("a")]);
    stage.pass(seconds(5));
    let carryings = stage.log().carryings.len();
    (stage.message(&ids[0]), carryings)
}

#[test]
fn a_gate_is_asked_before_every_attempt_and_its_word_is_taken() {
    let (passed, carried) = state_behind(|_| Verdict::Pass);
    assert_eq!((passed.state.name(), carried), ("delivered", 1));
    let (skipped, carried) = state_behind(|_| Verdict::Skip { reason: "ineligible".into() });
    assert_eq!((skipped.state.name(), carried), ("cancelled", 0));
    let (refused, carried) = state_behind(|_| Verdict::Refuse(Failure::new("suppressed")));
    assert_eq!((refused.state.name(), carried), ("dead", 0));
    let (deferred, carried) = state_behind(|now| Verdict::Defer {
        until: Until::At(now.plus(Duration::from_secs(3_600))),
        reason: "outside the window".into(),
    });
    assert_eq!((deferred.state.name(), deferred.attempts, carried), ("waiting", 0, 0));
}

#[test]
fn a_lease_is_renewed_while_a_slow_gate_makes_up_its_mind() {
    // The lease is 30 s, the gate takes 100 s: without renewal the message would be lost and claimed again.
    let clock = Arc::new(OnceLock::new());
    let mut stage = Stage::with_gates(route(), vec![Arc::new(Slow(Arc::clone(&clock)))], takes_all);
    assert!(clock.set(stage.engine.clock().clone()).is_ok());
    let ids = stage.accept(vec![to("a")]);
    stage.pass(seconds(110));
    let message = stage.message(&ids[0]);
    assert_eq!((message.state.name(), message.losses, stage.log().carryings.len()), ("delivered", 0, 1));
}

#[test]
fn what_expires_while_it_waits_dies_without_being_carried() {
    let mut stage = Stage::new(route(), takes_all);
    let now = stage.time();
    let (due_at, expires_at) = (Some(now.plus(seconds(50))), Some(now.plus(seconds(60))));
    let ids = stage.accept(vec![NewMessage { due_at, expires_at, ..to("a") }]);
    let engine = Arc::clone(&stage.engine);
    assert_eq!(stage.now(async move { engine.pause(Scope::Destination, "a", &"ada".into()).await }), Ok(()));
    stage.pass(seconds(70));
    let message = stage.message(&ids[0]);
    assert!(matches!(message.state, State::Dead { reason: redeliver_core::DeadReason::Expired, .. }));
    assert!(stage.log().carryings.is_empty());
}

#[test]
fn an_operator_retries_cancels_and_dismisses_and_every_deed_is_on_record() {
    let mut stage = Stage::new(route(), |_| (AT_ONCE, Outcome::Refused(Failure::new("550"))));
    let ids = stage.accept(vec![to("a"), NewMessage { due_at: Some(Timestamp::MAX), ..to("b") }]);
    stage.pass(seconds(1));
    let deeds = [(0, Action::Retry), (1, Action::Cancel)];
    for (index, action) in deeds {
        let (engine, id) = (Arc::clone(&stage.engine), ids[index].clone());
        assert!(stage.now(async move { engine.operate(&id, action, &"ada".into()).await }).is_ok());
    }
    stage.pass(seconds(1));
    let (engine, id) = (Arc::clone(&stage.engine), ids[0].clone());
    assert!(stage.now(async move { engine.operate(&id, Action::Dismiss, &"ada".into()).await }).is_ok());
    let message = stage.message(&ids[0]);
    assert_eq!(message.generation, 1);
    assert_eq!(stage.log().carryings.len(), 2, "the retry was a try");
    assert_eq!(stage.message(&ids[1]).state.name(), "cancelled");
    let audit: Vec<&str> = stage.store.snapshot().audit.iter().map(|deed| deed.action).collect();
    assert_eq!(audit.len(), 3);
    assert!(["retry", "cancel", "dismiss"].iter().all(|action| audit.contains(action)));
}

#[test]
fn a_refused_login_that_refuses_costs_one_message_and_the_others_go_once_it_is_good() {
    let route = Route { on_auth_error: OnAuthError::RefuseAndHold, concurrency_max: 16, ..route() };
    let good_from = Arc::new(OnceLock::new());
    let good = Arc::clone(&good_from);
    let mut stage = Stage::new(route, move |carrying| match good.get() {
        Some(from) if carrying.at >= *from => (AT_ONCE, delivered()),
        _ => (seconds(1), Outcome::Failed(Failure::new("535 no").blaming(Blame::Credential))),
    });
    good_from.set(stage.time().plus(seconds(900))).unwrap();
    let ids = stage.accept(vec![to("relay"), to("relay"), to("relay")]);
    stage.pass(seconds(2_000));
    let states: Vec<&str> = ids.iter().map(|id| stage.message(id).state.name()).collect();
    assert_eq!(states.iter().filter(|state| **state == "dead").count(), 1, "{states:?}");
    assert_eq!(states.iter().filter(|state| **state == "delivered").count(), 2, "{states:?}");
}

#[test]
fn how_a_message_ended_is_seen_for_a_moment_on_a_route_that_keeps_nothing() {
    let mut stage = Stage::new(Route { retention: Duration::ZERO, ..route() }, takes_all);
    let later = NewMessage { due_at: Some(stage.time().plus(seconds(60))), ..to("a") };
    let ids = stage.accept(vec![to("a"), later]);
    let engine = Arc::clone(&stage.engine);
    let cancelled = ids[1].clone();
    stage.now(async move { engine.operate(&cancelled, Action::Cancel, &"ada".into()).await }).unwrap();
    // Old messages are looked for once a second.
    stage.pass(Duration::from_millis(1_900));
    assert_eq!(stage.message(&ids[0]).state.name(), "delivered");
    assert_eq!(stage.message(&ids[1]).state.name(), "cancelled");
    stage.pass(seconds(3));
    assert_eq!(stage.store.snapshot().messages.len(), 0);
}
