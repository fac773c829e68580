//! A gate is one record that the whole fleet sees; what waits for it comes out in order.

use redeliver_core::breaker::BreakerState;
use redeliver_core::change::Audit;
use redeliver_core::gate::{Closed, GateKey, GateRecord, Scope};
use redeliver_core::{Message, State, Timestamp};
use redeliver_engine::store::{Applied, ClaimRequest, GateChange, Store};

use super::at_once;
use crate::make::*;

const HELD: Closed = Closed::Held { probe_at: Some(Timestamp::from_ms(7)) };

/// Each gate once, however many wait; none that nobody waits for.
pub async fn the_gates_with_parked_messages_are_told_once_each(store: &dyn Store) {
    assert_eq!(store.parked().await.unwrap(), []);
    keep_all(store, [parked(1, "a", 0), parked(2, "b", 0), parked(3, "a", 5), message(4)]).await;
    let mut gates = store.parked().await.unwrap();
    gates.sort();
    assert_eq!(gates, [gate("a"), gate("b")]);
    store.release(gate("a"), 10).await.unwrap();
    assert_eq!(store.parked().await.unwrap(), [gate("b")]);
}

/// Whoever was due first goes first, as many as the limit says.
pub async fn a_release_lets_the_oldest_due_go_first(store: &dyn Store) {
    keep_all(store, [parked(1, "a", -10), parked(2, "a", -30), parked(3, "a", -20)]).await;
    assert_eq!(store.release(gate("a"), 2).await.unwrap(), 2);
    assert_eq!(ids(&claim(store, request()).await), numbered([2, 3]));
    assert_eq!(store.release(gate("a"), 2).await.unwrap(), 1);
    assert_eq!(ids(&claim(store, request()).await), numbered([1]));
    assert_eq!(store.release(gate("a"), 2).await.unwrap(), 0);
}

/// Another gate's messages stay where they are, on whatever route they travel.
pub async fn a_release_is_of_one_gate(store: &dyn Store) {
    let elsewhere = Message { route: "letters".into(), ..parked(3, "a", 0) };
    keep_all(store, [parked(1, "a", 0), parked(2, "ab", 0), elsewhere]).await;
    assert_eq!(store.release(gate("a"), 10).await.unwrap(), 2);
    assert_eq!(now_of(store, &id(2)).await, parked(2, "ab", 0));
}

/// A release is a write like any other: whoever read the message before it is too late.
pub async fn a_release_raises_the_fence(store: &dyn Store) {
    let before = Message { fence: 4, ..parked(1, "a", 0) };
    keep(store, row(before.clone())).await;
    store.release(gate("a"), 10).await.unwrap();
    assert_eq!(now_of(store, &id(1)).await, Message { state: waiting(), fence: 5, ..before.clone() });
    let late = store.apply(vec![moved(&before, cancelled(1))]).await.unwrap();
    assert!(matches!(late[..], [Applied::Superseded(Some(_))]), "{late:?}");
}

/// What was not due yet when its gate opened waits for its time.
pub async fn a_released_message_keeps_its_due_time(store: &dyn Store) {
    keep(store, row(parked(1, "a", 30))).await;
    store.release(gate("a"), 10).await.unwrap();
    let claims = store.claim(request()).await.unwrap();
    assert_eq!((claims.claimed.len(), claims.next_due_at), (0, Some(at(30))));
    assert_eq!(claim(store, ClaimRequest { now: at(30), ..request() }).await.len(), 1);
}

/// A release has no business with others.
pub async fn what_is_not_parked_is_not_released(store: &dyn Store) {
    keep(store, row(message(1))).await;
    let cancelled = standing(2, cancelled(0));
    keep(store, row(cancelled.clone())).await;
    assert_eq!(store.release(gate("a"), 10).await.unwrap(), 0);
    assert_eq!(now_of(store, &id(1)).await, message(1));
    assert_eq!(now_of(store, &id(2)).await, cancelled);
}

/// A gate that was closed is there for everybody, with why and since when.
pub async fn a_closed_gate_is_told_to_all(store: &dyn Store) {
    assert_eq!(store.gates().await.unwrap(), []);
    assert!(put(store, "a", 0, Some(Closed::Paused)).await);
    let [told] = store.gates().await.unwrap().try_into().expect("one gate is closed");
    assert_eq!(told, GateRecord { version: told.version, ..record("a", Closed::Paused) });
}

/// Pauses, holds, throttles, and breakers in each of their states.
pub async fn every_way_of_being_closed_comes_back(store: &dyn Store) {
    let ways = [
        Closed::Paused,
        HELD,
        Closed::Throttled(at(30)),
        Closed::Breaker(BreakerState::Open { probe_at: at(9), trips: 3 }),
        Closed::Breaker(BreakerState::Probing { until: at(8), trips: 2 }),
        Closed::Breaker(BreakerState::Recovering { since: at(7), trips: 1 }),
    ];
    for (n, closed) in ways.into_iter().enumerate() {
        let name = format!("gate {n} {}", odd_text());
        assert!(put(store, &name, 0, Some(closed.clone())).await);
        let gates = store.gates().await.unwrap();
        let told = gates.iter().find(|record| record.key == gate(&name)).expect("it is closed");
        assert_eq!(told.closed, closed);
    }
}

/// An open gate has no record.
pub async fn a_gate_that_opens_is_forgotten(store: &dyn Store) {
    put(store, "a", 0, Some(HELD)).await;
    let version = version_of(store, "a").await;
    assert!(put(store, "a", version, None).await);
    assert_eq!(store.gates().await.unwrap(), []);
    assert!(put(store, "a", 0, Some(Closed::Paused)).await, "and can be closed again");
}

/// Whoever read an older version, or none, changes nothing.
pub async fn a_gate_changes_only_if_it_is_as_it_was_read(store: &dyn Store) {
    put(store, "a", 0, Some(Closed::Paused)).await;
    let first = version_of(store, "a").await;
    assert!(put(store, "a", first, Some(HELD)).await);
    let told = store.gates().await.unwrap();
    for stale in [0, first] {
        assert!(!put(store, "a", stale, Some(Closed::Paused)).await);
        assert!(!put(store, "a", stale, None).await);
    }
    assert_eq!(store.gates().await.unwrap(), told);
}

/// A change that read a record of a gate that is open meanwhile comes too late.
pub async fn a_gate_that_is_open_has_version_zero(store: &dyn Store) {
    assert!(!put(store, "a", 1, Some(Closed::Paused)).await);
    assert!(!put(store, "a", 1, None).await);
    assert_eq!(store.gates().await.unwrap(), []);
}

/// The store sets the version, whatever the record says.
pub async fn a_gates_version_goes_up(store: &dyn Store) {
    let mut last = 0;
    for _ in 0..3 {
        assert!(put(store, "a", last, Some(Closed::Paused)).await);
        let version = version_of(store, "a").await;
        assert!(version > last, "{version} after {last}");
        last = version;
    }
}

/// One gate's version is not another's.
pub async fn gates_are_told_apart(store: &dyn Store) {
    assert!(put(store, "a", 0, Some(Closed::Paused)).await);
    assert!(put(store, "A", 0, Some(HELD)).await);
    let version = version_of(store, "a").await;
    assert!(put(store, "a", version, None).await);
    let [left] = store.gates().await.unwrap().try_into().expect("one gate is still closed");
    assert_eq!((left.key, left.closed), (gate("A"), HELD));
}

/// What a person did to a gate is kept with what it did.
pub async fn a_deed_is_written_with_its_gate(store: &dyn Store) {
    assert!(store.put_gate(change("a", 0, Some(Closed::Paused), Some(deed("pause")))).await.unwrap());
    let version = version_of(store, "a").await;
    assert!(store.put_gate(change("a", version, None, Some(deed("resume")))).await.unwrap());
    assert_eq!(store.audit(10).await.unwrap(), [deed("resume"), deed("pause")]);
}

/// What was not done is no deed.
pub async fn a_refused_gate_change_writes_no_deed(store: &dyn Store) {
    assert!(!store.put_gate(change("a", 7, Some(Closed::Paused), Some(deed("pause")))).await.unwrap());
    assert_eq!(store.audit(10).await.unwrap(), []);
}

/// Eight change a gate at the same time, each having read the same version.
pub async fn of_many_who_change_a_gate_at_once_one_does(store: &dyn Store) {
    for round in 0..20 {
        let name = format!("gate {round}");
        let first = at_once(|_| put(store, &name, 0, Some(Closed::Paused)));
        assert_eq!(first.iter().filter(|done| **done).count(), 1);
        let version = version_of(store, &name).await;
        let second = at_once(|_| put(store, &name, version, Some(HELD)));
        assert_eq!(second.iter().filter(|done| **done).count(), 1);
    }
}

fn gate(name: &str) -> GateKey {
    GateKey::pause(Scope::Route, name)
}

fn parked(n: u32, name: &str, due_s: i64) -> Message {
    Message { due_at: at(due_s), ..standing(n, State::Waiting { parked_for: Some(gate(name)) }) }
}

fn record(name: &str, closed: Closed) -> GateRecord {
    GateRecord { key: gate(name), version: 0, since: at(3), reason: odd_text(), closed }
}

fn deed(action: &'static str) -> Audit {
    Audit { actor: "ann".into(), action, subject: gate("a").as_str().into(), at: at(3), detail: None }
}

fn change(name: &str, expected_version: u64, closed: Option<Closed>, audit: Option<Audit>) -> GateChange {
    let record = closed.map(|closed| record(name, closed));
    GateChange { key: gate(name), expected_version, record, audit }
}

async fn put(store: &dyn Store, name: &str, expected_version: u64, closed: Option<Closed>) -> bool {
    store.put_gate(change(name, expected_version, closed, None)).await.unwrap()
}

async fn version_of(store: &dyn Store, name: &str) -> u64 {
    let gates = store.gates().await.unwrap();
    gates.iter().find(|record| record.key == gate(name)).expect("the gate is closed").version
}
