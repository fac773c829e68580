//! What is accepted is kept, whole.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use redeliver_core::accept::{NewMessage, Taker, admit};
use redeliver_core::gate::{GateKey, Scope};
use redeliver_core::message::{Fate, RecipientVerdict};
use redeliver_core::outcome::Blame;
use redeliver_core::{Content, DeadReason, Failure, Lane, Lease, Message, State};
use redeliver_engine::store::{Applied, Inserted, Store};

use crate::make::*;

/// Every field of a message comes back, whether it is at its least or at its fullest.
pub async fn a_message_comes_back_as_it_was_given(store: &dyn Store) {
    let least = Message { due_at: at(1), scheduled_for: at(2), created_at: at(3), ..message(1) };
    let fullest = Message {
        id: id(2),
        workspace: "acme".into(),
        route: "letters".into(),
        lane: Lane::Low,
        key: Some("order-7".into()),
        state: State::Waiting { parked_for: Some(GateKey::pause(Scope::Route, "letters")) },
        due_at: at(10),
        scheduled_for: at(20),
        created_at: at(30),
        first_sent_at: Some(at(35)),
        expires_at: Some(at(40)),
        generation: 5,
        attempts: 6,
        attempts_before: 7,
        max_attempts: Some(8),
        losses: 9,
        unconfirmed: 10,
        possible_duplicates: 11,
        fence: 1 << 40,
        settled_claim: Some((1 << 40) - 1),
        last_error: Some(Failure::new("try later").with_code("451")),
        recipients: vec![RecipientVerdict { index: 3, fate: Fate::Delivered }],
        is_dead_letter: true,
    };
    let zeroes = Message { max_attempts: Some(0), settled_claim: Some(0), ..message(3) };
    for message in [least, fullest, zeroes] {
        come_back(store, message).await;
    }
}

/// A state comes back with all that it holds, and nothing of another state.
pub async fn every_state_comes_back_as_it_was_given(store: &dyn Store) {
    let lease =
        Lease { instance: ANN, claim: 7, until_at: at(60), started_at: Some(at(1)), cancel_requested: true };
    let states = [
        waiting(),
        State::Waiting { parked_for: Some(GateKey::breaker("mx.example.org")) },
        State::Claimed(lease.clone()),
        State::Claimed(Lease { started_at: None, cancel_requested: false, instance: BOB, ..lease }),
        State::HandedOff { since: at(3), report_by: Some(at(90)) },
        State::HandedOff { since: at(3), report_by: None },
        State::Delivered { at: at(4), receipt: Some("250 2.0.0 ok".into()) },
        State::Delivered { at: at(4), receipt: None },
        State::Delivered { at: at(4), receipt: Some("".into()) },
        dead(5, None),
        dead(5, Some(6)),
        State::Cancelled { at: at(7), reason: "ineligible".into() },
    ];
    for (n, state) in (1..).zip(states) {
        come_back(store, Message { fence: 7, ..standing(n, state) }).await;
    }
}

/// A dead message remembers why.
pub async fn every_reason_of_death_comes_back(store: &dyn Store) {
    for (n, reason) in (1..).zip(DeadReason::ALL) {
        come_back(store, standing(n, State::Dead { at: at(1), reason, dismissed_at: None })).await;
    }
}

/// A message remembers its priority.
pub async fn every_lane_comes_back(store: &dyn Store) {
    for (n, lane) in (1..).zip(Lane::ALL) {
        come_back(store, Message { lane, ..message(n) }).await;
    }
}

/// An error keeps its code, its words, its blame and the wait that was asked for.
pub async fn a_failure_comes_back_whole(store: &dyn Store) {
    let plain = Failure::new("it failed");
    let failures = [
        plain.clone(),
        plain.clone().with_code(""),
        plain.clone().with_code("ECONNRESET").blaming(Blame::Connection),
        plain.clone().blaming(Blame::Throttle).with_retry_after(Duration::from_millis(1_500)),
        plain.clone().blaming(Blame::Credential).with_retry_after(Duration::ZERO),
        Failure::new(odd_text()),
        Failure::new(""),
    ];
    for (n, failure) in (1..).zip(failures) {
        come_back(store, Message { last_error: Some(failure), ..message(n) }).await;
    }
}

/// What became of each recipient comes back, in order.
pub async fn the_verdicts_on_recipients_come_back(store: &dyn Store) {
    let failure = Failure::new("mailbox full").with_code("452").blaming(Blame::Throttle);
    let recipients = vec![
        RecipientVerdict { index: 0, fate: Fate::Delivered },
        RecipientVerdict { index: 2, fate: Fate::Failed(failure) },
        RecipientVerdict { index: 70_000, fate: Fate::Refused(Failure::new("no such user")) },
    ];
    come_back(store, Message { recipients, ..message(1) }).await;
}

/// All 256 bytes, in bodies and in headers; a target that is empty is not a target that isn't there.
pub async fn content_comes_back_byte_for_byte(store: &dyn Store) {
    let all_bytes: Bytes = (0..=255).collect::<Vec<u8>>().into();
    let full = Content {
        target: Some("orders".into()),
        attributes: BTreeMap::from([("b".to_owned(), "2".to_owned()), ("a".to_owned(), String::new())]),
        headers: vec![("x-trace".to_owned(), all_bytes.clone())],
        content_type: Some("application/json".into()),
        bytes: all_bytes,
    };
    let empty_words = Content { target: Some("".into()), content_type: Some("".into()), ..full.clone() };
    let bare = Content { target: None, content_type: None, ..full.clone() };
    for (n, content) in (1..).zip([full, empty_words, bare]) {
        carry_back(store, n, content).await;
    }
}

/// Headers are a list, not a map.
pub async fn headers_keep_their_order_and_their_repeats(store: &dyn Store) {
    let header = |name: &str, value: &'static str| (name.to_owned(), Bytes::from(value));
    let headers = vec![
        header("received", "second hop"),
        header("Subject", "hello"),
        header("received", "first hop"),
        header("a", ""),
        header("received", "first hop"),
    ];
    carry_back(store, 1, Content { headers, ..content(1) }).await;
}

/// Quotes, wildcards, line ends and characters of four bytes survive wherever text goes.
pub async fn odd_characters_survive(store: &dyn Store) {
    let odd = odd_text();
    let message = Message {
        workspace: odd.clone(),
        route: odd.clone(),
        key: Some(odd.clone()),
        state: State::Cancelled { at: at(0), reason: odd.clone() },
        ..message(1)
    };
    come_back(store, message).await;
    let content = Content {
        target: Some(odd.clone()),
        attributes: BTreeMap::from([(odd.to_string(), odd.to_string())]),
        headers: vec![(odd.to_string(), Bytes::from(odd.to_string()))],
        content_type: Some(odd.clone()),
        bytes: Bytes::from(odd.to_string()),
    };
    carry_back(store, 2, content).await;
}

/// Nothing is something that can be carried.
pub async fn an_empty_content_stays_empty(store: &dyn Store) {
    carry_back(store, 1, Content::default()).await;
}

/// A megabyte of bytes comes back.
pub async fn a_megabyte_comes_back(store: &dyn Store) {
    let bytes: Vec<u8> = (0..1u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    carry_back(store, 1, Content::of_bytes(bytes)).await;
}

/// An answer that was lost is asked for again: the row is there once, as it was first said.
pub async fn the_same_id_again_is_new_and_writes_nothing(store: &dyn Store) {
    keep(store, row_with(message(1), content(1))).await;
    let claimed = claim_the_one(store, request()).await;
    keep(store, row_with(Message { due_at: at(99), ..message(1) }, content(2))).await;
    assert_eq!(now_of(store, &id(1)).await, claimed);
    assert_eq!(store.content(id(1)).await.unwrap(), Some(content(1)));
    let twice = vec![row(message(2)), row(message(2))];
    assert_eq!(store.insert(twice).await.unwrap(), [Inserted::New, Inserted::New]);
    assert_eq!(claim(store, request()).await.len(), 1);
}

/// The n-th answer is for the n-th row.
pub async fn a_batch_is_answered_in_order(store: &dyn Store) {
    keep(store, row(keyed(1, "a"))).await;
    let rows = [message(2), keyed(3, "a"), message(4), keyed(5, "b"), keyed(6, "a")].map(row);
    let answers = store.insert(rows.into()).await.unwrap();
    let is_new: Vec<bool> = answers.iter().map(|answer| *answer == Inserted::New).collect();
    assert_eq!(is_new, [true, false, true, true, false]);
    for n in [2, 4, 5] {
        now_of(store, &id(n)).await;
    }
}

/// Nothing asked, nothing answered.
pub async fn an_empty_batch_is_nothing(store: &dyn Store) {
    assert_eq!(store.insert(Vec::new()).await.unwrap(), []);
    assert_eq!(store.apply(Vec::new()).await.unwrap(), []);
    assert!(store.renew(Vec::new(), at(0)).await.unwrap().is_empty());
    assert_eq!(claim(store, request()).await, []);
}

/// Two thousand rows in one call.
pub async fn a_big_batch_is_kept(store: &dyn Store) {
    keep_all(store, (1..=2_000).map(|n| keyed(n, &format!("key {n}")))).await;
    let claimed = claim(store, request()).await;
    assert_eq!(sorted_ids(&claimed), numbered(1..=2_000));
}

/// A message whose budget is spent when it comes is dead, and its dead letter is there with it.
pub async fn a_message_dead_on_arrival_brings_its_dead_letter(store: &dyn Store) {
    let content = Content { target: Some("orders".into()), ..content(1) };
    let new = NewMessage { attempts: 3, key: Some("k".into()), ..NewMessage::new("mail", content) };
    let row = admit(new, &route(), id(1), None, at(0));
    keep(store, row.clone()).await;
    assert_eq!(now_of(store, &id(1)).await, row.message);
    let letter = row.spawn.expect("it is dead on arrival").message;
    assert_eq!(now_of(store, &letter.id).await, letter);
    let carried = store.content(letter.id).await.unwrap().unwrap();
    assert_eq!((carried.bytes, carried.target), (Bytes::from("body 1"), None));
    assert_eq!(carried.attributes["dead_message"], id(1).to_string());
}

/// A row that isn't written doesn't bring its dead letter either.
pub async fn a_message_that_is_known_brings_no_dead_letter(store: &dyn Store) {
    keep(store, row(keyed(1, "k"))).await;
    let new = NewMessage { attempts: 3, key: Some("k".into()), ..NewMessage::new("mail", content(2)) };
    let row = admit(new, &route(), id(2), None, at(0));
    let letter = row.spawn.as_ref().expect("it is dead on arrival").message.id.clone();
    assert!(matches!(store.insert(vec![row]).await.unwrap()[..], [Inserted::Known(_)]));
    assert_eq!(store.get(letter).await.unwrap(), None);
}

/// A message that is tried before its sender's eyes is nobody else's to claim, and its taker settles it.
pub async fn a_message_claimed_on_arrival_is_its_takers(store: &dyn Store) {
    let taker = Taker { instance: ANN, until_at: at(60) };
    let row = admit(NewMessage::new("mail", content(1)), &route(), id(1), Some(taker), at(0));
    let taken = row.message.clone();
    keep(store, row).await;
    assert_eq!(claim(store, request()).await, []);
    assert!(store.start(claim_of(&taken), at(0)).await.unwrap());
    let change = result(&taken, &took_it(), 1);
    assert_eq!(store.apply(vec![change.clone()]).await.unwrap(), [Applied::Applied]);
    assert_eq!(now_of(store, &id(1)).await, change.message);
}

async fn come_back(store: &dyn Store, message: Message) {
    keep(store, row(message.clone())).await;
    assert_eq!(now_of(store, &message.id).await, message);
}

async fn carry_back(store: &dyn Store, n: u32, content: Content) {
    keep(store, row_with(message(n), content.clone())).await;
    let kept = store.content(id(n)).await.unwrap().expect("its content is there");
    assert!(kept == content, "the content of message {n} came back otherwise");
}
