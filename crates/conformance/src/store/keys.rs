//! Saying it twice sends it once, even after the message is gone.

use std::time::Duration;

use redeliver_core::Message;
use redeliver_core::accept::{Ended, Known};
use redeliver_core::change::NewRow;
use redeliver_engine::store::{Inserted, PruneRequest, Store};

use super::at_once;
use crate::make::*;

const DAY: Duration = Duration::from_secs(86_400);
const DAY_S: i64 = 86_400;

/// Without a key, the same thing said twice is two messages.
pub async fn a_message_without_a_key_is_never_a_repeat(store: &dyn Store) {
    keep(store, row_with(message(1), content(1))).await;
    keep(store, row_with(message(2), content(1))).await;
    assert_eq!(claim(store, request()).await.len(), 2);
}

/// A key that is known keeps the first message, tells all that is known of it, and writes nothing.
pub async fn the_same_key_answers_with_the_first_message(store: &dyn Store) {
    let first = row(keyed(1, "k"));
    keep(store, first.clone()).await;
    let known = known(store, row(keyed(2, "k"))).await;
    assert!(first.hash.is_some());
    let expected = Known { id: id(1), hash: first.hash, message: Some(first.message), ended: None };
    assert_eq!(known, expected);
    assert_eq!(store.get(id(2)).await.unwrap(), None);
    assert_eq!(store.content(id(2)).await.unwrap(), None);
    assert_eq!(claim(store, request()).await.len(), 1);
}

/// What is told of a known message is how it stands, not how it came.
pub async fn a_known_key_shows_the_message_as_it_stands_now(store: &dyn Store) {
    keep(store, row(keyed(1, "k"))).await;
    let claimed = claim_the_one(store, request()).await;
    assert_eq!(known(store, row(keyed(2, "k"))).await.message, Some(claimed));
}

/// Two keys, two messages, whatever they carry.
pub async fn another_key_is_another_message(store: &dyn Store) {
    keep(store, row_with(keyed(1, "k"), content(1))).await;
    keep(store, row_with(keyed(2, "l"), content(1))).await;
}

/// Neither case nor space nor composition makes two keys one.
pub async fn keys_are_told_apart_byte_by_byte(store: &dyn Store) {
    let keys = ["key", "Key", "key ", " key", "", "k\u{e9}y", "ke\u{301}y", "k%y", "k_y", "key\n"];
    for (n, key) in (1..).zip(keys) {
        keep(store, row(keyed(n, key))).await;
    }
    for (n, key) in (1..).zip(keys) {
        assert_eq!(known(store, row(keyed(100 + n, key))).await.id, id(n), "{key:?}");
    }
}

/// A workspace never hears of another one's keys.
pub async fn the_same_key_of_another_workspace_is_another_message(store: &dyn Store) {
    let of = |n, workspace: &str| Message { workspace: workspace.into(), ..keyed(n, "k") };
    keep(store, row(of(1, "a"))).await;
    keep(store, row(of(2, "b"))).await;
    assert_eq!(known(store, row(of(3, "a"))).await.id, id(1));
    assert_eq!(known(store, row(of(4, "b"))).await.id, id(2));
}

/// A key belongs to its workspace, not to a route of it.
pub async fn the_same_key_on_another_route_is_the_same_message(store: &dyn Store) {
    keep(store, row(keyed(1, "k"))).await;
    let elsewhere = Message { route: "letters".into(), ..keyed(2, "k") };
    assert_eq!(known(store, row(elsewhere)).await.id, id(1));
}

/// Within one call too, the first one is the message.
pub async fn a_key_repeated_within_a_batch_is_known(store: &dyn Store) {
    let first = row(keyed(1, "k"));
    let answers = store.insert(vec![first.clone(), row(keyed(2, "k")), row(message(3))]).await.unwrap();
    let known = Known { id: id(1), hash: first.hash, message: Some(first.message), ended: None };
    assert_eq!(answers, [Inserted::New, Inserted::Known(Box::new(known)), Inserted::New]);
    assert_eq!(sorted_ids(&claim(store, request()).await), numbered([1, 3]));
}

/// An answer that was lost is asked for again under the same id: it is the message, not a repeat of it.
pub async fn a_row_said_again_is_new_though_its_key_is_known(store: &dyn Store) {
    keep(store, row(keyed(1, "k"))).await;
    keep(store, row(keyed(1, "k"))).await;
    assert_eq!(claim(store, request()).await.len(), 1);
}

/// Eight say the same key at the same time.
pub async fn of_many_who_say_one_key_at_once_one_is_new(store: &dyn Store) {
    for round in 0..20 {
        let key = format!("key {round}");
        let answers = at_once(|n| store.insert(vec![row(keyed(100 * round + n, &key))]));
        let answers: Vec<Inserted> = answers.into_iter().flat_map(Result::unwrap).collect();
        assert_eq!(answers.iter().filter(|answer| **answer == Inserted::New).count(), 1);
    }
    assert_eq!(claim(store, request()).await.len(), 20);
}

/// The message is gone, and its key still says what it had come to.
pub async fn a_key_outlives_its_message(store: &dyn Store) {
    let first = ended_row();
    keep(store, first.clone()).await;
    prune(store, 10, Some(DAY)).await;
    let ended = Ended { attempts_before: 1, attempts: 2, generation: 3, possible_duplicates: 2, fence: 4 };
    let expected = Known { id: id(1), hash: first.hash, message: None, ended: Some(ended) };
    assert_eq!(known(store, row(keyed(2, "k"))).await, expected);
    assert_eq!(store.get(id(2)).await.unwrap(), None);
}

/// The key answers for as long as was said when its message was deleted, and no longer.
pub async fn a_key_expires_after_its_message(store: &dyn Store) {
    keep(store, ended_row()).await;
    prune(store, 10, Some(DAY)).await;
    prune(store, DAY_S, Some(DAY)).await;
    assert_eq!(known(store, row(keyed(2, "k"))).await.id, id(1));
    prune(store, 20 + DAY_S, Some(DAY)).await;
    keep(store, row(keyed(3, "k"))).await;
}

/// Campaign keys are never forgotten.
pub async fn a_key_without_end_answers_for_ever(store: &dyn Store) {
    keep(store, ended_row()).await;
    prune(store, 10, None).await;
    prune(store, 10_000 * DAY_S, Some(Duration::ZERO)).await;
    assert_eq!(known(store, row(keyed(2, "k"))).await.id, id(1));
}

/// A key can't expire before its message is deleted.
pub async fn the_key_of_a_kept_message_does_not_expire(store: &dyn Store) {
    keep(store, row(keyed(1, "k"))).await;
    prune(store, 10_000 * DAY_S, Some(Duration::ZERO)).await;
    assert_eq!(known(store, row(keyed(2, "k"))).await.id, id(1));
}

/// A message that ended, was deleted and came back by its source is kept again, and the key knows it.
pub async fn a_message_that_comes_back_is_kept_under_its_key(store: &dyn Store) {
    keep(store, ended_row()).await;
    prune(store, 10, Some(DAY)).await;
    let back = back_row();
    keep(store, back.clone()).await;
    assert_eq!(now_of(store, &id(1)).await, back.message);
    assert_eq!(store.content(id(1)).await.unwrap(), Some(content(9)));
    let expected = Known { id: id(1), hash: back.hash, message: Some(back.message), ended: None };
    assert_eq!(known(store, row(keyed(2, "k"))).await, expected);
    assert_eq!(claim(store, request()).await.len(), 1);
}

/// Once it is back, its key has no end again until the message has one.
pub async fn a_message_that_came_back_is_no_longer_an_ended_one(store: &dyn Store) {
    keep(store, ended_row()).await;
    prune(store, 10, Some(DAY)).await;
    keep(store, back_row()).await;
    prune(store, 10_000 * DAY_S, Some(DAY)).await;
    assert_eq!(known(store, row(keyed(2, "k"))).await.id, id(1));
}

/// Two may bring it back at once; the second finds it there.
pub async fn a_message_that_is_back_already_is_known(store: &dyn Store) {
    keep(store, ended_row()).await;
    let found = known(store, back_row()).await;
    assert_eq!(found.message, Some(ended_row().message), "it was never gone");
    prune(store, 10, Some(DAY)).await;
    keep(store, back_row()).await;
    assert_eq!(known(store, back_row()).await.message, Some(back_row().message));
}

/// Whether the key was still there is not the message's fault.
pub async fn a_message_comes_back_even_when_its_key_has_expired(store: &dyn Store) {
    keep(store, ended_row()).await;
    prune(store, 10, Some(Duration::ZERO)).await;
    prune(store, 20, Some(Duration::ZERO)).await;
    keep(store, back_row()).await;
    assert_eq!(known(store, row(keyed(2, "k"))).await.id, id(1));
}

fn ended_row() -> NewRow {
    row(Message {
        state: delivered(1),
        attempts_before: 1,
        attempts: 2,
        generation: 3,
        possible_duplicates: 2,
        fence: 4,
        ..keyed(1, "k")
    })
}

fn back_row() -> NewRow {
    let message = Message { attempts: 3, attempts_before: 3, generation: 4, fence: 5, ..keyed(1, "k") };
    NewRow { revives: true, ..row_with(message, content(9)) }
}

/// Deletes what ended before second 10 and the keys that have expired.
async fn prune(store: &dyn Store, now_s: i64, key_retention: Option<Duration>) {
    let (route, before, now) = ("mail".into(), at(10), at(now_s));
    store.prune(PruneRequest { route, before, key_retention, now, limit: 1_000 }).await.unwrap();
}

async fn known(store: &dyn Store, row: NewRow) -> Known {
    let mut answers = store.insert(vec![row]).await.unwrap();
    match answers.pop() {
        Some(Inserted::Known(known)) => *known,
        other => panic!("the key is known, but the answer was {other:?}"),
    }
}
