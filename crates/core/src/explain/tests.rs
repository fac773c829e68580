//! What people are told about where a message stands.

use super::*;
use crate::accept::{NewMessage, admit};
use crate::gate::Scope;
use crate::message::MessageId;
use crate::outcome::Failure;
use crate::policy::{Backoff, Jitter, Policy};

fn route() -> Route {
    let policy = Policy {
        backoff: Backoff::Table(vec![Duration::from_secs(30)]),
        jitter: Jitter::None,
        max_attempts: 6,
        expires_after: None,
    };
    Route::new("email", "smtp", policy)
}

fn message(attempts: u32, due_s: i64) -> Message {
    let new = NewMessage {
        attempts,
        due_at: Some(Timestamp::from_ms(due_s * 1_000)),
        error: (attempts > 0).then(|| Failure::new("try later").with_code("451")),
        ..NewMessage::new("email", Content::default())
    };
    admit(new, &route(), MessageId::own(1), None, Timestamp::default()).message
}

fn record(key: GateKey, closed: Closed) -> GateRecord {
    GateRecord { key, version: 1, since: Timestamp::default(), reason: "because".into(), closed }
}

fn told(message: &Message, closed: &[GateRecord]) -> Explanation {
    let route = route();
    let way = Way { route: &route, destination: "mx", lacks: None, own: Vec::new() };
    explain(message, &Content::default(), Some(&way), closed, Timestamp::default())
}

#[test]
fn a_message_that_waits_for_its_next_try_says_when_and_why() {
    let said = told(&message(2, 30), &[]);
    assert_eq!(said.earliest_at, Some(Timestamp::from_ms(30_000)));
    assert_eq!(
        said.sentence,
        "It failed and is retried in 30 s, at 1970-01-01T00:00:30.000Z; 2 of 6 attempts made, last error: 451 try later."
    );
    assert_eq!(said.gates[0].reason.as_deref(), Some("it waits for its next attempt"));
}

#[test]
fn a_due_message_behind_a_pause_has_no_earliest_time() {
    let pause = GateRecord {
        reason: "paused by ann".into(),
        ..record(GateKey::pause(Scope::Route, "email"), Closed::Paused)
    };
    let said = told(&message(0, 0), &[pause]);
    assert_eq!(said.earliest_at, None);
    assert_eq!(
        said.sentence,
        "It waits: route email is paused by ann since 1970-01-01T00:00:00.000Z until an operator resumes it; 0 of 6 attempts made."
    );
    assert!(said.gates.iter().any(|view| &*view.gate == "pause:route:email" && !view.open));
}

#[test]
fn every_gate_says_in_plain_words_why_it_is_closed_and_who_opens_it() {
    let at = Timestamp::from_ms(9_000);
    let hold = || GateKey::hold(Scope::Destination, "mx");
    let breaker = |state| record(GateKey::breaker("mx"), Closed::Breaker(state));
    for (record, words) in [
        (
            record(hold(), Closed::Held { probe_at: Some(at) }),
            "destination mx is held since 1970-01-01T00:00:00.000Z, because because; one message is tried at 1970-01-01T00:00:09.000Z",
        ),
        (record(hold(), Closed::Held { probe_at: None }), "until an operator resumes it, because because"),
        (
            record(GateKey::throttle("mx"), Closed::Throttled(at)),
            "destination mx is throttled until 1970-01-01T00:00:09.000Z, because because",
        ),
        (
            breaker(BreakerState::Open { probe_at: at, trips: 1 }),
            "destination mx has been unreachable since 1970-01-01T00:00:00.000Z; one message is tried at 1970-01-01T00:00:09.000Z",
        ),
        (breaker(BreakerState::Probing { until: at, trips: 1 }), "one message is being tried"),
        (
            record(GateKey::suppression("default"), Closed::Suppressed),
            "recipient is suppressed; it is sent once an operator removes the address",
        ),
    ] {
        let key = record.key.clone();
        let parked = Message { state: State::Waiting { parked_for: Some(key.clone()) }, ..message(0, 0) };
        let said = told(&parked, &[record]).sentence;
        assert!(said.contains(words), "{said}");
        assert!(!said.contains(key.as_str()), "no key is for people: {said}");
    }
    let limit = GateKey::limit("mx");
    let parked = Message { state: State::Waiting { parked_for: Some(limit) }, ..message(0, 0) };
    let said = told(&parked, &[]).sentence;
    assert!(said.contains("destination mx is at its limit"), "{said}");
}

#[test]
fn what_is_closed_now_and_open_in_time_is_nothing_that_a_message_waits_for() {
    let route = route();
    let closed = GateView::closed("window", Some(Timestamp::from_ms(20_000)), "outside of its window");
    let said = |message: &Message| {
        let way = Way { route: &route, destination: "mx", lacks: None, own: vec![closed.clone()] };
        explain(message, &Content::default(), Some(&way), &[], Timestamp::default()).sentence
    };
    let planned = message(0, 30);
    assert!(said(&planned).starts_with("It is sent in 30 s"), "{}", said(&planned));
    let moved = Message { scheduled_for: Timestamp::from_ms(10_000), ..planned };
    assert!(said(&moved).contains("outside of its window: not before"), "{}", said(&moved));
}

#[test]
fn a_message_that_has_just_failed_does_not_wait_for_its_own_sender() {
    let route = route();
    let said = |message: &Message, until_ms: i64| {
        let busy = "its sender is keeping its spacing";
        let own = vec![GateView::closed("spacing", Some(Timestamp::from_ms(until_ms)), busy)];
        let way = Way { route: &route, destination: "mx", lacks: None, own };
        explain(message, &Content::default(), Some(&way), &[], Timestamp::default()).sentence
    };
    let failed = Message { scheduled_for: Timestamp::default(), ..message(1, 30) };
    assert!(said(&failed, 20_000).starts_with("It failed and is retried in 30 s"));
    assert!(said(&failed, 40_000).contains("its sender is keeping its spacing: not before"));
}

#[test]
fn a_throttle_moves_the_earliest_time_and_one_that_is_over_does_not() {
    let until = |s: i64| record(GateKey::throttle("mx"), Closed::Throttled(Timestamp::from_ms(s * 1_000)));
    assert_eq!(told(&message(0, 0), &[until(9)]).earliest_at, Some(Timestamp::from_ms(9_000)));
    assert_eq!(told(&message(0, 0), &[until(0)]).earliest_at, Some(Timestamp::default()));
}

#[test]
fn a_parked_message_whose_gate_has_opened_is_about_to_be_let_go() {
    let gate = GateKey::hold(Scope::Destination, "mx");
    let parked = Message { state: State::Waiting { parked_for: Some(gate) }, ..message(0, 0) };
    let said = told(&parked, &[]);
    assert!(said.sentence.contains("released with others"), "{}", said.sentence);
}

#[test]
fn a_message_without_a_route_says_so() {
    let said = explain(&message(0, 0), &Content::default(), None, &[], Timestamp::default());
    assert!(said.sentence.starts_with("The config has no route email"), "{}", said.sentence);
    assert_eq!(said.earliest_at, None);
}

#[test]
fn a_message_whose_transport_has_nowhere_to_go_says_what_is_missing() {
    let (route, message) = (route(), message(0, 0));
    let lacks = Some("no SMTP server is configured: set SMTP_URL".into());
    let way = Way { route: &route, destination: "smtp", lacks, own: Vec::new() };
    let said = explain(&message, &Content::default(), Some(&way), &[], Timestamp::default());
    assert_eq!(said.sentence, "It waits: no SMTP server is configured: set SMTP_URL; 0 of 6 attempts made.");
    assert_eq!(said.earliest_at, None);
}

#[test]
fn a_gate_of_the_route_that_cannot_be_asked_moves_the_earliest_time() {
    let (route, message) = (route(), message(1, 0));
    let at = Timestamp::from_ms(7_000);
    let told = |verdict, now| {
        let own = vec![GateView::of("eligibility", verdict, now)];
        let way = Way { route: &route, destination: "mx", lacks: None, own };
        explain(&message, &Content::default(), Some(&way), &[], now)
    };
    let down = || Verdict::Defer { until: Until::At(at), reason: "devices does not answer".into() };
    let said = told(Some(down()), Timestamp::default());
    assert_eq!(said.earliest_at, Some(at));
    assert!(
        said.sentence.contains("devices does not answer: not before 1970-01-01T00:00:07.000Z"),
        "{}",
        said.sentence
    );
    assert!(told(Some(down()), at).gates.iter().all(|view| view.open), "that is over");
    assert!(told(None, at).gates.iter().any(|view| &*view.gate == "eligibility" && view.open));
}

#[test]
fn every_end_has_its_words() {
    let at = Timestamp::default();
    let dead = |reason| State::Dead { at, reason, dismissed_at: None };
    let ends = DeadReason::ALL.map(dead).into_iter().chain([
        State::Delivered { at, receipt: Some("250 OK".into()) },
        State::Cancelled { at, reason: "operator".into() },
        State::Cancelled { at, reason: "ineligible".into() },
    ]);
    let sentences: std::collections::BTreeSet<String> =
        ends.map(|state| told(&Message { state, ..message(1, 0) }, &[]).sentence).collect();
    assert_eq!(sentences.len(), 8, "{sentences:?}");
}
