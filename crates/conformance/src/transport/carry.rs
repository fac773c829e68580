//! One message out, once, and an honest word about what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redeliver_core::outcome::Blame;
use redeliver_core::{Content, Lease, Message, Outcome, State};
use redeliver_engine::transport::Envelope;

use super::{Manner, TransportRig};
use crate::make::*;

/// Long enough for any answer that will come.
const WITHIN: Duration = Duration::from_secs(10);
/// Short enough to wait for one that won't.
pub(super) const BRIEFLY: Duration = Duration::from_millis(700);

/// The peer has it, and it is said to have it.
pub async fn what_the_peer_takes_is_delivered(rig: &dyn TransportRig) {
    rig.behave(Manner::Takes).await;
    let outcome = carry(rig, &claimed(1)).await;
    assert!(matches!(outcome, Outcome::Delivered { .. } | Outcome::HandedOff), "{outcome:?}");
    assert_eq!(rig.seen().await.len(), 1);
}

/// A passing failure is a failed try, with words for whoever looks.
pub async fn what_the_peer_cannot_take_now_is_worth_another_try(rig: &dyn TransportRig) {
    rig.behave(Manner::Fails).await;
    let outcome = carry(rig, &claimed(1)).await;
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert!(!failure.text.is_empty() || failure.code.is_some(), "it says what went wrong");
    assert_ne!(failure.blame, Blame::Connection, "the connection was fine");
}

/// A lasting failure is a refusal: trying again would only annoy.
pub async fn what_the_peer_refuses_is_refused(rig: &dyn TransportRig) {
    rig.behave(Manner::Refuses).await;
    let outcome = carry(rig, &claimed(1)).await;
    let Outcome::Refused(failure) = outcome else { panic!("{outcome:?}") };
    assert!(!failure.text.is_empty() || failure.code.is_some(), "it says why");
}

/// A refused connection is the destination's trouble: a failed try that blames it, or, where that must cost no
/// try, a deferral.
pub async fn a_peer_that_is_away_says_nothing_against_the_message(rig: &dyn TransportRig) {
    rig.behave(Manner::Away).await;
    match carry(rig, &claimed(1)).await {
        Outcome::Failed(failure) => assert_eq!(failure.blame, Blame::Connection, "{failure:?}"),
        Outcome::Deferred { .. } => {}
        other => panic!("nobody was reached, but: {other:?}"),
    }
    assert_eq!(rig.seen().await, []);
}

/// Without an answer, nobody knows: the carrying is lost, has failed on its connection, or takes until it is given up.
pub async fn silence_is_never_taken_for_an_answer(rig: &dyn TransportRig) {
    rig.behave(Manner::Silent).await;
    match carry_within(rig, &claimed(1), BRIEFLY).await {
        None | Some(Outcome::Lost { .. }) => {}
        Some(Outcome::Failed(failure)) => assert_eq!(failure.blame, Blame::Connection, "{failure:?}"),
        Some(other) => panic!("the peer said nothing, but: {other:?}"),
    }
}

/// Whoever gives up drops the carrying in the middle; the next one goes through.
pub async fn a_carrying_that_was_given_up_does_not_spoil_the_next(rig: &dyn TransportRig) {
    rig.behave(Manner::Silent).await;
    carry_within(rig, &claimed(1), BRIEFLY).await;
    rig.behave(Manner::Takes).await;
    let outcome = carry(rig, &claimed(2)).await;
    assert!(matches!(outcome, Outcome::Delivered { .. } | Outcome::HandedOff), "{outcome:?}");
}

/// Whatever the peer says, it hears it once: retrying is decided elsewhere.
pub async fn a_transport_never_retries_by_itself(rig: &dyn TransportRig) {
    for (n, manner) in (1..).zip([Manner::Fails, Manner::Refuses, Manner::Takes, Manner::Fails]) {
        rig.behave(manner).await;
        carry(rig, &claimed(n)).await;
        assert_eq!(rig.seen().await.len(), n as usize, "carryings after one more by {manner:?}");
    }
}

/// Byte for byte, where the bytes are carried at all.
pub async fn the_bytes_arrive_as_they_were_sent(rig: &dyn TransportRig) {
    rig.behave(Manner::Takes).await;
    for n in 1..=3 {
        carry(rig, &claimed(n)).await;
    }
    for (n, seen) in (1..).zip(rig.seen().await) {
        assert!(seen.bytes.is_none_or(|bytes| bytes == rig.content(n).bytes), "body {n} arrived otherwise");
    }
}

/// The receiver can tell one try from another.
pub async fn the_attempt_id_travels(rig: &dyn TransportRig) {
    rig.behave(Manner::Takes).await;
    let message = Message { generation: 2, attempts: 3, ..claimed(1) };
    carry(rig, &message).await;
    assert_eq!(seen_ids(rig).await, [Some(rig.name_of(&message))]);
}

/// The same try, carried again because nobody knows about the first: the receiver recognises it.
pub async fn a_carrying_after_a_loss_has_the_same_attempt_id(rig: &dyn TransportRig) {
    rig.behave(Manner::Takes).await;
    carry(rig, &claimed(1)).await;
    carry(rig, &Message { losses: 1, unconfirmed: 1, fence: 3, ..claimed(1) }).await;
    let [first, second] = seen_ids(rig).await.try_into().expect("two carryings");
    assert_eq!(first, second);
}

/// Another try is another thing to the receiver, or the same message again where only messages have names.
pub async fn a_retry_has_an_attempt_id_of_its_own(rig: &dyn TransportRig) {
    rig.behave(Manner::Takes).await;
    let tries = [claimed(1), Message { attempts: 1, ..claimed(1) }, Message { generation: 1, ..claimed(1) }];
    for message in &tries {
        carry(rig, message).await;
    }
    let names = tries.each_ref().map(|message| Some(rig.name_of(message)));
    assert_eq!(seen_ids(rig).await, names);
}

/// A failure leaves the transport as good as new.
pub async fn what_failed_can_be_carried_again(rig: &dyn TransportRig) {
    rig.behave(Manner::Fails).await;
    carry(rig, &claimed(1)).await;
    rig.behave(Manner::Takes).await;
    let outcome = carry(rig, &Message { attempts: 1, ..claimed(1) }).await;
    assert!(matches!(outcome, Outcome::Delivered { .. } | Outcome::HandedOff), "{outcome:?}");
    assert_eq!(rig.seen().await.len(), 2);
}

/// A peer that was away, and comes back, is found without anybody's help.
pub async fn a_peer_that_comes_back_is_reached_again(rig: &dyn TransportRig) {
    rig.behave(Manner::Takes).await;
    carry(rig, &claimed(1)).await;
    rig.behave(Manner::Away).await;
    carry(rig, &claimed(2)).await;
    rig.behave(Manner::Takes).await;
    // The first carrying after the return may still find the old connection broken.
    let first = carry(rig, &claimed(3)).await;
    let second = carry(rig, &claimed(4)).await;
    let arrived = |outcome: &Outcome| matches!(outcome, Outcome::Delivered { .. } | Outcome::HandedOff);
    assert!(arrived(&second), "{first:?}, then {second:?}");
}

/// Eight at once: each arrives once, each under its own name.
pub async fn carryings_at_once_do_not_mix(rig: &dyn TransportRig) {
    rig.behave(Manner::Takes).await;
    let messages: [Message; 8] = std::array::from_fn(|n| claimed(n as u32 + 1));
    let [a, b, c, d, e, f, g, h] = &messages;
    let outcomes: [Outcome; 8] = tokio::join!(
        carry(rig, a),
        carry(rig, b),
        carry(rig, c),
        carry(rig, d),
        carry(rig, e),
        carry(rig, f),
        carry(rig, g),
        carry(rig, h),
    )
    .into();
    for outcome in outcomes {
        assert!(matches!(outcome, Outcome::Delivered { .. } | Outcome::HandedOff), "{outcome:?}");
    }
    let mut seen: Vec<(Option<String>, Option<Bytes>)> =
        rig.seen().await.into_iter().map(|seen| (seen.attempt_id, seen.bytes)).collect();
    seen.sort();
    let expected = |(n, message): (u32, &Message)| (rig.name_of(message), rig.content(n).bytes);
    let mut sent: Vec<(String, Bytes)> = (1..).zip(&messages).map(expected).collect();
    sent.sort();
    assert_eq!(seen.len(), 8);
    for ((attempt_id, bytes), (sent_id, sent_bytes)) in seen.into_iter().zip(sent) {
        assert_eq!(attempt_id, Some(sent_id));
        assert!(bytes.is_none_or(|bytes| bytes == sent_bytes), "each with its own body");
    }
}

/// Breakers and limits know a destination by its name, which depends on the target alone.
pub async fn the_same_target_is_the_same_destination(rig: &dyn TransportRig) {
    let destination = |message: &Message, content: &Content| {
        rig.transport().destination(&Envelope { message, content, target: content.target.as_deref() })
    };
    let first = destination(&claimed(1), &rig.content(1));
    assert!(!first.is_empty());
    let other_bytes = Content { bytes: Bytes::from_static(b"other"), ..rig.content(1) };
    let later = Message { attempts: 2, losses: 1, fence: 9, ..claimed(2) };
    assert_eq!(destination(&later, &other_bytes), first);
    rig.behave(Manner::Away).await;
    carry(rig, &claimed(1)).await;
    assert_eq!(destination(&claimed(3), &rig.content(1)), first);
}

/// Whatever a message holds, its carrying comes to an outcome, and the next one is carried.
pub async fn odd_content_brings_nobody_down(rig: &dyn TransportRig) {
    rig.behave(Manner::Takes).await;
    let odd = odd_text();
    let odd_headers = ["", "\r\nbcc: all@example.org", "x\0y", &odd, "x-redeliver-attempt-id"];
    let contents = [
        Content::default(),
        Content { target: Some("".into()), ..rig.content(1) },
        Content { target: Some(odd.clone()), content_type: Some(odd.clone()), ..rig.content(1) },
        Content { bytes: (0..=255).collect::<Vec<u8>>().into(), ..rig.content(1) },
        Content {
            attributes: BTreeMap::from([(odd.to_string(), odd.to_string()), (String::new(), String::new())]),
            headers: odd_headers.map(|name| (name.to_owned(), Bytes::from_static(b"\r\n.\r\n\0\xff"))).into(),
            ..rig.content(1)
        },
    ];
    for (n, content) in (2..).zip(contents) {
        let message = claimed(n);
        let target = content.target.clone();
        let envelope = Envelope { message: &message, content: &content, target: target.as_deref() };
        rig.transport().destination(&envelope);
        // Any outcome will do, and none at all within the time is a loss like any other.
        let _ = tokio::time::timeout(BRIEFLY, rig.transport().carry(&envelope, BRIEFLY)).await;
    }
    let outcome = carry(rig, &claimed(1)).await;
    assert!(matches!(outcome, Outcome::Delivered { .. } | Outcome::HandedOff), "{outcome:?}");
}

/// The n-th message, in a worker's hands.
pub(super) fn claimed(n: u32) -> Message {
    let lease =
        Lease { instance: ANN, claim: 1, until_at: at(60), started_at: None, cancel_requested: false };
    Message { fence: 1, ..standing(n, State::Claimed(lease)) }
}

/// Carries a message as the engine would, and gives up in time.
pub(super) async fn carry_within(
    rig: &dyn TransportRig,
    message: &Message,
    within: Duration,
) -> Option<Outcome> {
    let n = (1..=100).find(|n| id(*n) == message.id).expect("a numbered message");
    let content = rig.content(n);
    let target: Option<Arc<str>> = content.target.clone();
    let envelope = Envelope { message, content: &content, target: target.as_deref() };
    tokio::time::timeout(within, rig.transport().carry(&envelope, within)).await.ok()
}

pub(super) async fn carry(rig: &dyn TransportRig, message: &Message) -> Outcome {
    carry_within(rig, message, WITHIN).await.unwrap_or_else(|| panic!("no outcome within {WITHIN:?}"))
}

async fn seen_ids(rig: &dyn TransportRig) -> Vec<Option<String>> {
    rig.seen().await.into_iter().map(|seen| seen.attempt_id).collect()
}
