//! What nobody will finish any more is found.

use std::time::Duration;

use redeliver_core::gate::{GateKey, Scope};
use redeliver_core::{Lease, Message, State};
use redeliver_engine::store::{ClaimRequest, Store};

use crate::make::*;

const LONG: Duration = Duration::from_secs(100_000);
const SILENT_MAX: Duration = Duration::from_secs(20);

/// When its end has come, and not before.
pub async fn a_lease_that_is_over_has_lapsed(store: &dyn Store) {
    store.beat(ANN, at(0), LONG).await.unwrap();
    let claimed = keep_claimed(store, 1).await;
    assert_eq!(store.lapsed(at(59), 10).await.unwrap(), []);
    assert_eq!(store.lapsed(at(60), 10).await.unwrap(), [claimed]);
}

/// The renewed end counts.
pub async fn a_renewed_lease_has_not_lapsed(store: &dyn Store) {
    store.beat(ANN, at(0), LONG).await.unwrap();
    let claimed = keep_claimed(store, 1).await;
    store.renew(vec![claim_of(&claimed)], at(500)).await.unwrap();
    assert_eq!(store.lapsed(at(499), 10).await.unwrap(), []);
    assert_eq!(store.lapsed(at(500), 10).await.unwrap().len(), 1);
}

/// Long before the lease is over, its holder's silence ends it.
pub async fn a_silent_instance_loses_its_messages(store: &dyn Store) {
    store.beat(ANN, at(0), SILENT_MAX).await.unwrap();
    let claimed = keep_claimed(store, 1).await;
    assert_eq!(store.lapsed(at(19), 10).await.unwrap(), []);
    assert_eq!(store.lapsed(at(20), 10).await.unwrap(), [claimed]);
}

/// Silence is counted from the last beat, by what that beat said.
pub async fn an_instance_that_beats_keeps_its_messages(store: &dyn Store) {
    store.beat(ANN, at(0), SILENT_MAX).await.unwrap();
    keep_claimed(store, 1).await;
    store.beat(ANN, at(15), SILENT_MAX).await.unwrap();
    assert_eq!(store.lapsed(at(34), 10).await.unwrap(), []);
    store.beat(ANN, at(30), Duration::from_secs(5)).await.unwrap();
    assert_eq!(store.lapsed(at(35), 10).await.unwrap().len(), 1);
}

/// A word that was said first and came last is old news.
pub async fn a_late_heartbeat_takes_nothing_back(store: &dyn Store) {
    store.beat(ANN, at(15), SILENT_MAX).await.unwrap();
    keep_claimed(store, 1).await;
    store.beat(ANN, at(0), SILENT_MAX).await.unwrap();
    assert_eq!(store.lapsed(at(34), 10).await.unwrap(), []);
}

/// Whoever never said that it lives can't be trusted to.
pub async fn an_unknown_instance_holds_nothing(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    assert_eq!(store.lapsed(at(1), 10).await.unwrap(), [claimed]);
}

/// Whoever said good-bye holds nothing.
pub async fn an_instance_that_left_holds_nothing(store: &dyn Store) {
    store.beat(ANN, at(0), LONG).await.unwrap();
    let claimed = keep_claimed(store, 1).await;
    assert_eq!(store.lapsed(at(1), 10).await.unwrap(), []);
    store.leave(ANN).await.unwrap();
    assert_eq!(store.lapsed(at(1), 10).await.unwrap(), [claimed]);
    store.leave(ANN).await.unwrap();
}

/// One's silence costs the other nothing.
pub async fn one_silent_instance_is_not_another(store: &dyn Store) {
    store.beat(ANN, at(0), SILENT_MAX).await.unwrap();
    store.beat(BOB, at(15), SILENT_MAX).await.unwrap();
    let anns = keep_claimed(store, 1).await;
    keep(store, row(message(2))).await;
    claim_the_one(store, ClaimRequest { instance: BOB, ..request() }).await;
    assert_eq!(store.lapsed(at(25), 10).await.unwrap(), [anns]);
    store.leave(ANN).await.unwrap();
    assert_eq!(store.lapsed(at(25), 10).await.unwrap().len(), 1);
}

/// What is in nobody's hands can't be dropped.
pub async fn only_claimed_messages_lapse(store: &dyn Store) {
    let states = [waiting(), State::HandedOff { since: at(0), report_by: Some(at(1)) }, delivered(0)];
    let settled = keep_claimed(store, 9).await;
    store.apply(vec![result(&settled, &try_later(), 1)]).await.unwrap();
    keep_all(store, (1..).zip(states).map(|(n, state)| standing(n, state))).await;
    assert_eq!(store.lapsed(at(10_000), 10).await.unwrap(), []);
}

/// As many as asked for; the rest another time.
pub async fn no_more_lapse_than_the_limit(store: &dyn Store) {
    keep_all(store, (1..=10).map(message)).await;
    claim(store, request()).await;
    assert_eq!(store.lapsed(at(100), 4).await.unwrap().len(), 4);
    assert_eq!(store.lapsed(at(100), 100).await.unwrap().len(), 10);
}

/// When the time for the report has come and it hasn't.
pub async fn a_report_that_did_not_come_is_overdue(store: &dyn Store) {
    let handed = standing(1, State::HandedOff { since: at(0), report_by: Some(at(30)) });
    keep_all(store, [handed.clone(), standing(2, delivered(0)), message(3)]).await;
    assert_eq!(store.overdue(at(29), 10).await.unwrap(), []);
    assert_eq!(store.overdue(at(30), 10).await.unwrap(), std::slice::from_ref(&handed));
    store.apply(vec![moved(&handed, delivered(31))]).await.unwrap();
    assert_eq!(store.overdue(at(40), 10).await.unwrap(), []);
}

/// Where no report has to come, none is missed.
pub async fn a_message_without_a_report_time_is_never_overdue(store: &dyn Store) {
    keep(store, row(standing(1, State::HandedOff { since: at(0), report_by: None }))).await;
    assert_eq!(store.overdue(at(1_000_000), 10).await.unwrap(), []);
}

/// As many as asked for; the rest another time.
pub async fn no_more_are_overdue_than_the_limit(store: &dyn Store) {
    let handed = |n| standing(n, State::HandedOff { since: at(0), report_by: Some(at(30)) });
    keep_all(store, (1..=10).map(handed)).await;
    assert_eq!(store.overdue(at(100), 4).await.unwrap().len(), 4);
}

/// When its time has come, whether it was due or not.
pub async fn a_waiting_message_expires(store: &dyn Store) {
    let expiring = |n| Message { expires_at: Some(at(50)), ..message(n) };
    let not_due = Message { due_at: at(1_000), ..expiring(2) };
    keep_all(store, [expiring(1), not_due, message(3)]).await;
    assert_eq!(store.expired(at(49), 10).await.unwrap(), []);
    assert_eq!(sorted_ids(&store.expired(at(50), 10).await.unwrap()), numbered([1, 2]));
}

/// A closed gate doesn't stop the time.
pub async fn a_parked_message_expires(store: &dyn Store) {
    let state = State::Waiting { parked_for: Some(GateKey::pause(Scope::Route, "mail")) };
    let parked = Message { expires_at: Some(at(50)), ..standing(1, state) };
    keep(store, row(parked.clone())).await;
    assert_eq!(store.expired(at(50), 10).await.unwrap(), [parked]);
}

/// Nor does an outside worker.
pub async fn a_handed_off_message_expires(store: &dyn Store) {
    let state = State::HandedOff { since: at(0), report_by: None };
    let handed = Message { expires_at: Some(at(50)), ..standing(1, state) };
    keep(store, row(handed.clone())).await;
    assert_eq!(store.expired(at(50), 10).await.unwrap(), [handed]);
}

/// A worker that has the message settles it, expired or not.
pub async fn nobody_takes_an_expired_message_from_its_worker(store: &dyn Store) {
    let lease =
        Lease { instance: ANN, claim: 1, until_at: at(60), started_at: None, cancel_requested: false };
    let claimed = Message { expires_at: Some(at(50)), fence: 1, ..standing(1, State::Claimed(lease)) };
    keep(store, row(claimed)).await;
    assert_eq!(store.expired(at(55), 10).await.unwrap(), []);
}

/// An end is an end.
pub async fn what_has_ended_does_not_expire(store: &dyn Store) {
    let ends = [delivered(0), dead(0, None), dead(0, Some(1)), cancelled(0)];
    let ended = |(n, state)| Message { expires_at: Some(at(50)), ..standing(n, state) };
    keep_all(store, (1..).zip(ends).map(ended)).await;
    assert_eq!(store.expired(at(1_000), 10).await.unwrap(), []);
}

/// As many as asked for; the rest another time.
pub async fn no_more_expire_than_the_limit(store: &dyn Store) {
    keep_all(store, (1..=10).map(|n| Message { expires_at: Some(at(50)), ..message(n) })).await;
    assert_eq!(store.expired(at(100), 4).await.unwrap().len(), 4);
}
