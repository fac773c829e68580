//! Whoever holds a claim may start and stay; nobody else.

use redeliver_core::operate::{Action, operate};
use redeliver_core::settle::lapse;
use redeliver_core::{Lease, Message, State};
use redeliver_engine::store::{ClaimKind, ClaimRef, ClaimRequest, Store};

use crate::make::*;

/// That a carrying is about to start is kept, and changes nothing else.
pub async fn a_start_is_recorded(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    assert!(store.start(claim_of(&claimed), at(3)).await.unwrap());
    let State::Claimed(lease) = claimed.state.clone() else { panic!("{claimed:?}") };
    let started = State::Claimed(Lease { started_at: Some(at(3)), ..lease });
    assert_eq!(now_of(store, &id(1)).await, Message { state: started, ..claimed });
}

/// An answer that was lost is asked for again.
pub async fn a_start_said_twice_is_still_ones_own(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    assert!(store.start(claim_of(&claimed), at(3)).await.unwrap());
    assert!(store.start(claim_of(&claimed), at(3)).await.unwrap());
}

/// A cancel that was committed first keeps the message from going out.
pub async fn a_claim_that_a_person_cancelled_does_not_start(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    cancel(store, &claimed).await;
    assert!(!store.start(claim_of(&claimed), at(3)).await.unwrap());
    let State::Claimed(lease) = now_of(store, &id(1)).await.state else { panic!("it is still claimed") };
    assert_eq!(lease.started_at, None);
}

/// Somebody else has it, and keeps it.
pub async fn a_claim_that_was_lost_does_not_start(store: &dyn Store) {
    let first = keep_claimed(store, 1).await;
    let second = lose_and_claim_again(store, &first).await;
    assert!(!store.start(claim_of(&first), at(62)).await.unwrap());
    assert_eq!(now_of(store, &id(1)).await, second);
    assert!(store.start(claim_of(&second), at(62)).await.unwrap());
}

/// A fence that fits is not enough where nobody has the message.
pub async fn only_a_claimed_message_starts(store: &dyn Store) {
    let states = [waiting(), State::HandedOff { since: at(0), report_by: None }, delivered(0), dead(0, None)];
    for (n, state) in (1..).zip(states) {
        let message = Message { fence: 1, ..standing(n, state) };
        keep(store, row(message.clone())).await;
        assert!(!store.start(ClaimRef { id: id(n), claim: 1 }, at(1)).await.unwrap());
        assert_eq!(now_of(store, &id(n)).await, message);
    }
    assert!(
        !store.start(ClaimRef { id: id(99), claim: 1 }, at(1)).await.unwrap(),
        "there is no such message"
    );
}

/// The new end is kept.
pub async fn a_renewed_lease_ends_later(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    store.start(claim_of(&claimed), at(3)).await.unwrap();
    assert_eq!(store.renew(vec![claim_of(&claimed)], at(500)).await.unwrap(), [true]);
    let State::Claimed(lease) = now_of(store, &id(1)).await.state else { panic!("it is still claimed") };
    assert_eq!((lease.until_at, lease.started_at), (at(500), Some(at(3))));
}

/// A renewal that was sent first and came last takes nothing away.
pub async fn a_renewal_never_shortens_a_lease(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    assert_eq!(store.renew(vec![claim_of(&claimed)], at(500)).await.unwrap(), [true]);
    assert_eq!(store.renew(vec![claim_of(&claimed)], at(400)).await.unwrap(), [true]);
    let State::Claimed(lease) = now_of(store, &id(1)).await.state else { panic!("it is still claimed") };
    assert_eq!(lease.until_at, at(500));
}

/// Whoever cancels has read the lease as it was; its holder has moved on since.
pub async fn a_cancel_leaves_the_lease_to_its_holder(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    store.start(claim_of(&claimed), at(3)).await.unwrap();
    store.renew(vec![claim_of(&claimed)], at(500)).await.unwrap();
    cancel(store, &claimed).await;
    let State::Claimed(lease) = now_of(store, &id(1)).await.state else { panic!("it is still claimed") };
    assert_eq!((lease.until_at, lease.started_at, lease.cancel_requested), (at(500), Some(at(3)), true));
}

/// Not after the lease was lost, nor after the message was settled, nor where there is no message.
pub async fn a_lease_that_is_gone_is_not_renewed(store: &dyn Store) {
    let first = keep_claimed(store, 1).await;
    let second = lose_and_claim_again(store, &first).await;
    let never_given = ClaimRef { id: id(1), claim: second.fence + 1 };
    assert_eq!(store.renew(vec![claim_of(&first), never_given], at(500)).await.unwrap(), [false, false]);
    assert_eq!(now_of(store, &id(1)).await, second);
    store.apply(vec![result(&second, &took_it(), 62)]).await.unwrap();
    let settled = now_of(store, &id(1)).await;
    assert_eq!(store.renew(vec![claim_of(&second)], at(500)).await.unwrap(), [false]);
    assert_eq!(now_of(store, &id(1)).await, settled);
    assert_eq!(store.renew(vec![ClaimRef { id: id(9), claim: 0 }], at(500)).await.unwrap(), [false]);
}

/// A person's cancel raises the fence, but the worker is still in the middle of it.
pub async fn a_cancel_does_not_end_the_lease(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    cancel(store, &claimed).await;
    assert_eq!(store.renew(vec![claim_of(&claimed)], at(500)).await.unwrap(), [true]);
    let State::Claimed(lease) = now_of(store, &id(1)).await.state else { panic!("it is still claimed") };
    assert!(lease.cancel_requested && lease.until_at == at(500));
}

/// The n-th answer is for the n-th claim.
pub async fn renewals_are_answered_in_order(store: &dyn Store) {
    keep_all(store, (1..=3).map(message)).await;
    let claimed = claim(store, request()).await;
    store.apply(vec![result(&claimed[1], &took_it(), 1)]).await.unwrap();
    let mut claims: Vec<ClaimRef> = claimed.iter().map(claim_of).collect();
    claims.insert(0, ClaimRef { id: id(9), claim: 1 });
    assert_eq!(store.renew(claims, at(500)).await.unwrap(), [false, true, false, true]);
}

/// The worker that renews must still be able to settle.
pub async fn a_renewal_leaves_the_fence_alone(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    store.renew(vec![claim_of(&claimed)], at(500)).await.unwrap();
    assert_eq!(now_of(store, &id(1)).await.fence, claimed.fence);
}

async fn cancel(store: &dyn Store, message: &Message) {
    let change = operate(message, Action::Cancel, &"ann".into(), &route(), at(1)).unwrap();
    store.apply(vec![change]).await.unwrap();
}

async fn lose_and_claim_again(store: &dyn Store, claimed: &Message) -> Message {
    let lapsed = lapse(claimed, &route(), at(61)).expect("it was claimed");
    store.apply(vec![lapsed]).await.unwrap();
    let kind = ClaimKind::Suspect;
    claim_the_one(store, ClaimRequest { instance: BOB, kind, now: at(61), ..request() }).await
}
