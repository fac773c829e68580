//! A change is written whole, by whoever holds the fence, or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redeliver_core::gate::{GateKey, Scope};
use redeliver_core::operate::{Action, operate};
use redeliver_core::outcome::Until;
use redeliver_core::settle::lapse;
use redeliver_core::{Change, Content, Message, Outcome, State};
use redeliver_engine::store::{Applied, ClaimKind, ClaimRequest, Filter, Inserted, PruneRequest, Store};

use super::at_once;
use crate::make::*;

/// The message stands as the change says, and the try is in its history.
pub async fn a_result_is_written_whole(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    let mut change = result(&claimed, &try_later(), 4);
    let record = change.attempt.as_mut().expect("a failed try is recorded");
    (record.claimed_at, record.sent_at) = (Some(at(2)), Some(at(3)));
    assert_eq!(apply_one(store, change.clone()).await, Applied::Applied);
    assert_eq!(now_of(store, &id(1)).await, change.message);
    assert_eq!(store.attempts(id(1)).await.unwrap(), [change.attempt.expect("it was there")]);
}

/// A message that waits again is due at its new time and not before.
pub async fn a_retry_is_claimed_at_its_new_time(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    apply_one(store, result(&claimed, &try_later(), 0)).await;
    let claims = store.claim(ClaimRequest { now: at(59), ..request() }).await.unwrap();
    assert_eq!((claims.claimed.len(), claims.next_due_at), (0, Some(at(60))));
    let again = claim_the_one(store, ClaimRequest { now: at(60), ..request() }).await;
    assert_eq!((again.fence, again.attempts), (claimed.fence + 2, 1));
}

/// A worker that meets a closed gate parks the message under it.
pub async fn a_parking_takes_a_message_out_of_the_due(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    let gate = GateKey::pause(Scope::Route, "mail");
    let parks = Outcome::Deferred { until: Until::Opens(gate.clone()), reason: "paused".into() };
    apply_one(store, result(&claimed, &parks, 0)).await;
    assert_eq!(claim(store, ClaimRequest { now: at(1_000), ..request() }).await, []);
    assert_eq!(store.parked().await.unwrap(), [gate]);
}

/// The lease ran out, somebody else has the message: the first worker's result changes nothing.
pub async fn a_late_worker_cannot_settle_a_lost_lease(store: &dyn Store) {
    let first = keep_claimed(store, 1).await;
    let lapsed = lapse(&first, &route(), at(61)).expect("it was claimed");
    assert_eq!(apply_one(store, lapsed).await, Applied::Applied);
    let late = result(&first, &took_it(), 62);
    assert!(matches!(apply_one(store, late.clone()).await, Applied::Superseded(Some(_))));
    let kind = ClaimKind::Suspect;
    let second = claim_the_one(store, ClaimRequest { instance: BOB, kind, now: at(63), ..request() }).await;
    assert!(matches!(apply_one(store, late).await, Applied::Superseded(Some(_))));
    assert_eq!(now_of(store, &id(1)).await, second);
    assert_eq!(apply_one(store, result(&second, &took_it(), 64)).await, Applied::Applied);
}

/// The answer to a result was lost: saying it again finds it written, once.
pub async fn a_result_said_twice_is_written_once(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    let change = result(&claimed, &never(), 1);
    assert_eq!(apply_one(store, change.clone()).await, Applied::Applied);
    assert_eq!(apply_one(store, change.clone()).await, Applied::AlreadyMine);
    assert_eq!(now_of(store, &id(1)).await, change.message);
    assert_eq!(store.attempts(id(1)).await.unwrap().len(), 1);
    assert_eq!(on_route(store, "dead-letters").await.len(), 1);
}

/// Even when somebody has claimed the message since.
pub async fn a_result_said_again_after_the_next_claim_is_still_ones_own(store: &dyn Store) {
    let first = keep_claimed(store, 1).await;
    let change = result(&first, &try_later(), 0);
    apply_one(store, change.clone()).await;
    let second = claim_the_one(store, ClaimRequest { now: at(60), instance: BOB, ..request() }).await;
    assert_eq!(apply_one(store, change).await, Applied::AlreadyMine);
    assert_eq!(now_of(store, &id(1)).await, second);
}

/// A claim that others have ended, and a later one settled, is not taken for settled itself.
pub async fn a_claim_that_somebody_else_settled_is_superseded(store: &dyn Store) {
    let first = keep_claimed(store, 1).await;
    apply_one(store, lapse(&first, &route(), at(61)).expect("it was claimed")).await;
    let kind = ClaimKind::Suspect;
    let second = claim_the_one(store, ClaimRequest { instance: BOB, kind, now: at(61), ..request() }).await;
    let settled = result(&second, &took_it(), 62);
    apply_one(store, settled.clone()).await;
    let late = apply_one(store, result(&first, &try_later(), 63)).await;
    assert_eq!(late, Applied::Superseded(Some(Box::new(settled.message))));
}

/// Only a claim's own settling is recognised; anybody else's change said twice finds itself overtaken.
pub async fn a_change_of_no_claim_said_twice_is_superseded(store: &dyn Store) {
    keep(store, row(message(1))).await;
    let change = deed(&message(1), Action::Cancel);
    assert_eq!(apply_one(store, change.clone()).await, Applied::Applied);
    assert!(matches!(apply_one(store, change).await, Applied::Superseded(Some(_))));
    assert_eq!(store.audit(10).await.unwrap().len(), 1);
}

/// A message that was deleted, or never was, supersedes with nothing to show, and does not come back.
pub async fn a_change_to_a_message_that_is_gone_finds_nothing(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    let change = result(&claimed, &took_it(), 1);
    apply_one(store, change.clone()).await;
    let (route, now) = ("mail".into(), at(100));
    let request = PruneRequest { route, before: at(50), key_retention: None, now, limit: 10 };
    assert_eq!(store.prune(request).await.unwrap().messages, 1);
    assert_eq!(apply_one(store, change).await, Applied::Superseded(None));
    let never_was = result(&Message { id: id(2), ..claimed }, &never(), 1);
    assert_eq!(apply_one(store, never_was).await, Applied::Superseded(None));
    assert_eq!(store.get(id(1)).await.unwrap(), None);
    assert_eq!(store.get(id(2)).await.unwrap(), None);
    assert_eq!(on_route(store, "dead-letters").await, []);
}

/// Whoever comes too late is told how the message stands.
pub async fn a_superseded_change_shows_the_message_as_it_stands(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    let stale = moved(&message(1), cancelled(1));
    assert_eq!(apply_one(store, stale).await, Applied::Superseded(Some(Box::new(claimed))));
}

/// No state, no history, no content, no dead letter, no deed.
pub async fn a_superseded_change_writes_nothing(store: &dyn Store) {
    keep(store, row_with(message(1), content(1))).await;
    let claimed = claim_the_one(store, request()).await;
    let mut change = result(&claimed, &never(), 1);
    assert!(change.spawn.is_some() && change.attempt.is_some());
    change.content = Some(Arc::new(content(2)));
    change.audit = deed(&message(1), Action::Cancel).audit;
    for expected_fence in [claimed.fence - 1, claimed.fence + 1] {
        let change = Change { expected_fence, ..change.clone() };
        assert!(matches!(apply_one(store, change).await, Applied::Superseded(Some(_))));
    }
    assert_eq!(now_of(store, &id(1)).await, claimed);
    assert_eq!(store.attempts(id(1)).await.unwrap(), []);
    assert_eq!(store.content(id(1)).await.unwrap(), Some(content(1)));
    assert_eq!(on_route(store, "dead-letters").await, []);
    assert_eq!(store.audit(10).await.unwrap(), []);
}

/// A person asks for a claimed message to be cancelled: the worker's result must be worked out anew.
pub async fn an_operators_cancel_comes_between_a_worker_and_its_result(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    apply_one(store, deed(&claimed, Action::Cancel)).await;
    let stale = apply_one(store, result(&claimed, &try_later(), 1)).await;
    let Applied::Superseded(Some(current)) = stale else { panic!("{stale:?}") };
    let State::Claimed(lease) = &current.state else { panic!("{current:?}") };
    assert!(lease.cancel_requested, "the cancel is kept");
    assert_eq!(apply_one(store, result(&current, &try_later(), 1)).await, Applied::Applied);
    assert!(matches!(now_of(store, &id(1)).await.state, State::Cancelled { .. }));
}

/// The word of a death is there as soon as the death is.
pub async fn a_death_and_its_dead_letter_are_written_together(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    let change = result(&claimed, &never(), 1);
    let letter = change.spawn.as_ref().expect("a death has a dead letter").message.clone();
    assert_eq!(apply_one(store, change).await, Applied::Applied);
    assert!(matches!(now_of(store, &id(1)).await.state, State::Dead { .. }));
    assert_eq!(now_of(store, &letter.id).await, letter);
    let due = claim_the_one(store, ClaimRequest { route: "dead-letters".into(), now: at(1), ..request() });
    assert_eq!(due.await.id, letter.id);
}

/// A copy of everything but the target; what the dead letter adds wins over what was there.
pub async fn a_dead_letter_carries_what_the_dead_one_carried(store: &dyn Store) {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let original = Content {
        target: Some("orders".into()),
        attributes: BTreeMap::from([pair("device", "d-1"), pair("dead_reason", "made up")]),
        headers: vec![("x-trace".to_owned(), Bytes::from_static(&[0, 255]))],
        content_type: Some("text/plain".into()),
        bytes: Bytes::from_static(b"body \0 \xff"),
    };
    keep(store, row_with(message(1), original.clone())).await;
    let claimed = claim_the_one(store, request()).await;
    let change = result(&claimed, &never(), 1);
    let letter = change.spawn.as_ref().expect("a death has a dead letter").message.id.clone();
    apply_one(store, change).await;
    let carried = store.content(letter).await.unwrap().expect("the dead letter has content");
    assert_eq!((&carried.bytes, &carried.headers), (&original.bytes, &original.headers));
    assert_eq!((carried.content_type, carried.target), (original.content_type, None));
    assert_eq!(carried.attributes["device"], "d-1");
    assert_eq!(carried.attributes["dead_reason"], "refused");
    assert_eq!(carried.attributes["dead_message"], id(1).to_string());
    assert_eq!(store.content(id(1)).await.unwrap().unwrap().target, Some("orders".into()));
}

/// However often a death is written, its key and its id make the word of it one.
pub async fn a_death_written_by_two_has_one_dead_letter(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    let death = result(&claimed, &never(), 1);
    apply_one(store, death.clone()).await;
    let again = Change {
        expected_fence: death.message.fence,
        message: Message { fence: death.message.fence + 1, ..death.message.clone() },
        ..death
    };
    assert_eq!(apply_one(store, again.clone()).await, Applied::Applied);
    let mut another_id = Change { expected_fence: again.message.fence, ..again };
    another_id.message.fence += 1;
    another_id.spawn.as_mut().expect("it is the same death").message.id = id(77);
    assert_eq!(apply_one(store, another_id).await, Applied::Applied);
    assert_eq!(on_route(store, "dead-letters").await.len(), 1);
    assert_eq!(store.get(id(77)).await.unwrap(), None);
}

/// The death is what matters; a dead letter that is there already is left as it is.
pub async fn a_dead_letter_that_is_known_does_not_stop_the_death(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    let death = result(&claimed, &never(), 1);
    let letter = death.spawn.as_ref().expect("a death has a dead letter").message.clone();
    let there = Message { state: delivered(0), ..letter.clone() };
    assert_eq!(store.insert(vec![row(there.clone())]).await.unwrap(), [Inserted::New]);
    assert_eq!(apply_one(store, death.clone()).await, Applied::Applied);
    assert_eq!(now_of(store, &id(1)).await, death.message);
    assert_eq!(now_of(store, &letter.id).await, there);
}

/// A change with content replaces it; one without leaves it alone.
pub async fn new_content_replaces_the_old(store: &dyn Store) {
    keep(store, row_with(message(1), content(1))).await;
    let change = deed(&message(1), Action::Retry);
    apply_one(store, change.clone()).await;
    assert_eq!(store.content(id(1)).await.unwrap(), Some(content(1)));
    let new = Content { target: Some("elsewhere".into()), ..content(2) };
    let change = Change { content: Some(Arc::new(new.clone())), ..deed(&change.message, Action::Retry) };
    apply_one(store, change).await;
    assert_eq!(store.content(id(1)).await.unwrap(), Some(new));
}

/// What a person did is kept with what it did.
pub async fn a_deed_is_written_with_its_change(store: &dyn Store) {
    keep(store, row(message(1))).await;
    let change = deed(&message(1), Action::Cancel);
    apply_one(store, change.clone()).await;
    assert_eq!(store.audit(10).await.unwrap(), [change.audit.expect("a deed is kept")]);
}

/// One that came too late takes none of its neighbours with it, and the answers are in order.
pub async fn a_mixed_batch_is_judged_one_by_one(store: &dyn Store) {
    keep_all(store, (1..=5).map(message)).await;
    let claimed = claim(store, request()).await;
    let of = |n| claimed.iter().find(|message| message.id == id(n)).expect("all five are claimed");
    let settled = result(of(4), &took_it(), 1);
    apply_one(store, settled.clone()).await;
    apply_one(store, deed(of(2), Action::Cancel)).await;
    let batch = vec![
        result(of(1), &took_it(), 2),
        result(of(2), &never(), 2),
        result(&Message { id: id(99), ..of(3).clone() }, &took_it(), 2),
        settled,
        result(of(3), &try_later(), 2),
        result(of(5), &never(), 2),
    ];
    let answers = store.apply(batch.clone()).await.unwrap();
    assert_eq!(answers.len(), 6);
    assert!(matches!(answers[1], Applied::Superseded(Some(_))), "{:?}", answers[1]);
    for (place, expected) in [
        (0, Applied::Applied),
        (2, Applied::Superseded(None)),
        (3, Applied::AlreadyMine),
        (4, Applied::Applied),
        (5, Applied::Applied),
    ] {
        assert_eq!(answers[place], expected, "answer {place}");
    }
    for place in [0, 4, 5] {
        let expected = &batch[place].message;
        assert_eq!(now_of(store, &expected.id).await, *expected);
    }
    assert_eq!(store.attempts(id(2)).await.unwrap(), []);
    assert_eq!(on_route(store, "dead-letters").await.len(), 1, "of message 5 alone");
}

/// Two changes of one message in one call are written one after the other.
pub async fn changes_of_one_message_follow_each_other(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    let first = result(&claimed, &try_later(), 1);
    let second = deed(&first.message, Action::Cancel);
    let stale = deed(&first.message, Action::Retry);
    let answers = store.apply(vec![first, second.clone(), stale]).await.unwrap();
    let overtaken = Applied::Superseded(Some(Box::new(second.message.clone())));
    assert_eq!(answers, [Applied::Applied, Applied::Applied, overtaken]);
    assert_eq!(now_of(store, &id(1)).await, second.message);
}

/// Two thousand results in one call, every outcome among them.
pub async fn a_big_batch_is_applied(store: &dyn Store) {
    keep_all(store, (1..=2_000).map(message)).await;
    let claimed = claim(store, request()).await;
    let outcomes = [took_it(), try_later(), never(), Outcome::HandedOff];
    let changes = claimed.iter().zip(outcomes.iter().cycle());
    let changes: Vec<Change> = changes.map(|(message, outcome)| result(message, outcome, 1)).collect();
    assert_eq!(store.apply(changes.clone()).await.unwrap(), vec![Applied::Applied; 2_000]);
    for change in changes.iter().step_by(97) {
        assert_eq!(now_of(store, &change.message.id).await, change.message);
    }
    assert_eq!(on_route(store, "dead-letters").await.len(), 500);
    assert_eq!(store.apply(changes).await.unwrap(), vec![Applied::AlreadyMine; 2_000]);
}

/// Eight write about one message at the same time, each having read the same fence.
pub async fn of_many_who_settle_at_once_one_is_applied(store: &dyn Store) {
    for round in 1..=20 {
        keep(store, row(message(round))).await;
        let lease = Duration::from_secs(600);
        let claimed = claim_the_one(store, ClaimRequest { lease, ..request() }).await;
        let answers = at_once(|n| store.apply(vec![moved(&claimed, cancelled(i64::from(n)))]));
        let answers: Vec<Applied> = answers.into_iter().flat_map(Result::unwrap).collect();
        let applied = answers.iter().filter(|answer| **answer == Applied::Applied).count();
        assert_eq!(applied, 1, "{answers:?}");
        assert_eq!(now_of(store, &id(round)).await.fence, claimed.fence + 1);
    }
}

async fn apply_one(store: &dyn Store, change: Change) -> Applied {
    let [answer] = store.apply(vec![change]).await.unwrap().try_into().expect("one change, one answer");
    answer
}

fn deed(message: &Message, action: Action) -> Change {
    operate(message, action, &"ann".into(), &route(), at(1)).expect("the deed fits the message")
}

async fn on_route(store: &dyn Store, route: &str) -> Vec<Message> {
    let filter = Filter { route: Some(route.into()), limit: 10_000, ..Filter::default() };
    store.list(filter).await.unwrap()
}
