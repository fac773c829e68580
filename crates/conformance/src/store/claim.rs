//! What is due is leased, to one worker, in order.

use std::time::Duration;

use redeliver_core::gate::{GateKey, Scope};
use redeliver_core::outcome::Until;
use redeliver_core::settle::lapse;
use redeliver_core::{Lane, Lease, Message, Outcome, State};
use redeliver_engine::store::{Applied, ClaimKind, ClaimRequest, Claims, Store};

use super::at_once;
use crate::make::*;

/// By due time, whatever order they came in.
pub async fn the_oldest_due_is_claimed_first(store: &dyn Store) {
    let due = |n, s| Message { due_at: at(s), ..message(n) };
    keep_all(store, [due(1, -10), due(2, -30), due(3, 0), due(4, -20)]).await;
    let claimed = claim(store, ClaimRequest { limit: 3, ..request() }).await;
    assert_eq!(ids(&claimed), numbered([2, 4, 1]));
}

/// No priority's claim takes another's message.
pub async fn lanes_are_claimed_apart(store: &dyn Store) {
    keep_all(store, (1..).zip(Lane::ALL).map(|(n, lane)| Message { lane, ..message(n) })).await;
    for (n, lane) in (1..).zip(Lane::ALL) {
        let claimed = claim(store, ClaimRequest { lane, ..request() }).await;
        assert_eq!(ids(&claimed), numbered([n]), "{}", lane.name());
    }
}

/// No route's claim takes another's message.
pub async fn routes_are_claimed_apart(store: &dyn Store) {
    let on = |n, route: &str| Message { route: route.into(), ..message(n) };
    keep_all(store, [on(1, "mail"), on(2, "mai"), on(3, "Mail"), on(4, "mail2")]).await;
    assert_eq!(ids(&claim(store, request()).await), numbered([1]));
    let claimed = claim(store, ClaimRequest { route: "mail2".into(), ..request() }).await;
    assert_eq!(ids(&claimed), numbered([4]));
}

/// A lane belongs to a route, not to a workspace.
pub async fn workspaces_share_a_lane(store: &dyn Store) {
    keep_all(store, [message(1), Message { workspace: "acme".into(), ..message(2) }]).await;
    assert_eq!(claim(store, request()).await.len(), 2);
}

/// At most as many as asked for; the rest is still there.
pub async fn no_more_than_the_limit_is_claimed(store: &dyn Store) {
    keep_all(store, (1..=10).map(message)).await;
    assert_eq!(claim(store, ClaimRequest { limit: 4, ..request() }).await.len(), 4);
    assert_eq!(claim(store, request()).await.len(), 6);
}

/// Asking for none only asks when the next is due.
pub async fn a_limit_of_zero_claims_nothing(store: &dyn Store) {
    keep(store, row(message(1))).await;
    let claims = store.claim(ClaimRequest { limit: 0, ..request() }).await.unwrap();
    assert_eq!(claims, Claims { claimed: Vec::new(), next_due_at: Some(at(0)) });
    assert_eq!(now_of(store, &id(1)).await, message(1));
}

/// Not a millisecond.
pub async fn nothing_is_claimed_before_it_is_due(store: &dyn Store) {
    keep(store, row(Message { due_at: at(10), ..message(1) })).await;
    let early = at(10).minus(Duration::from_millis(1));
    assert_eq!(claim(store, ClaimRequest { now: early, ..request() }).await, []);
    assert_eq!(claim(store, ClaimRequest { now: at(10), ..request() }).await.len(), 1);
}

/// A closed gate without a known end keeps its messages from every claim.
pub async fn a_parked_message_is_not_claimed(store: &dyn Store) {
    let gate = GateKey::pause(Scope::Route, "mail");
    keep_all(store, [standing(1, State::Waiting { parked_for: Some(gate) }), message(2)]).await;
    let claims = store.claim(request()).await.unwrap();
    assert_eq!(ids(claims.claimed.iter().map(|(message, _)| message)), numbered([2]));
    assert_eq!(claims.next_due_at, None);
}

/// What is in other hands, or has ended, is nobody's to claim.
pub async fn only_waiting_messages_are_claimed(store: &dyn Store) {
    let lease =
        Lease { instance: BOB, claim: 1, until_at: at(-5), started_at: None, cancel_requested: false };
    let states = [
        State::Claimed(lease),
        State::HandedOff { since: at(-9), report_by: Some(at(-5)) },
        delivered(-5),
        dead(-5, None),
        dead(-5, Some(-4)),
        cancelled(-5),
    ];
    keep_all(store, (1..).zip(states).map(|(n, state)| Message { fence: 1, ..standing(n, state) })).await;
    for kind in [ClaimKind::Trusted, ClaimKind::Suspect] {
        assert_eq!(store.claim(ClaimRequest { kind, ..request() }).await.unwrap(), Claims::default());
    }
}

/// A message that lost a lease is found only by a claim for such messages.
pub async fn suspects_are_claimed_apart(store: &dyn Store) {
    let lost = |n, losses| Message { losses, ..message(n) };
    keep_all(store, [lost(1, 0), lost(2, 1), lost(3, 0), lost(4, 3)]).await;
    assert_eq!(sorted_ids(&claim(store, request()).await), numbered([1, 3]));
    let suspects = claim(store, ClaimRequest { kind: ClaimKind::Suspect, ..request() }).await;
    assert_eq!(sorted_ids(&suspects), numbered([2, 4]));
}

/// A claim that finds nothing says when to come again, or that there is no when.
pub async fn the_next_due_time_is_told(store: &dyn Store) {
    assert_eq!(store.claim(request()).await.unwrap().next_due_at, None);
    keep_all(store, [20, 10, 30].map(|s| Message { due_at: at(s), ..message(s as u32) })).await;
    assert_eq!(store.claim(request()).await.unwrap().next_due_at, Some(at(10)));
    let claims = store.claim(ClaimRequest { now: at(25), ..request() }).await.unwrap();
    assert_eq!((claims.claimed.len(), claims.next_due_at), (2, Some(at(30))));
    let claims = store.claim(ClaimRequest { now: at(35), ..request() }).await.unwrap();
    assert_eq!((claims.claimed.len(), claims.next_due_at), (1, None));
}

/// A claim that could not take all says that there is more.
pub async fn what_is_left_over_is_looked_for_in_time(store: &dyn Store) {
    keep_all(store, [-30, -20, -10].map(|s| Message { due_at: at(s), ..message((100 + s) as u32) })).await;
    let claims = store.claim(ClaimRequest { limit: 2, ..request() }).await.unwrap();
    assert_eq!(claims.claimed.len(), 2);
    assert!(
        claims.next_due_at.is_some_and(|at_the_latest| at_the_latest <= at(-10)),
        "{:?}",
        claims.next_due_at
    );
}

/// Neither another lane, nor another route, nor the other kind decides when to come again.
pub async fn the_next_due_time_knows_only_its_own_lane_and_kind(store: &dyn Store) {
    let due = |n, s| Message { due_at: at(s), ..message(n) };
    let others = [
        Message { lane: Lane::High, ..due(1, 10) },
        Message { route: "letters".into(), ..due(2, 20) },
        Message { losses: 1, ..due(3, 30) },
        due(4, 40),
    ];
    keep_all(store, others).await;
    assert_eq!(store.claim(request()).await.unwrap().next_due_at, Some(at(40)));
    let suspect = ClaimRequest { kind: ClaimKind::Suspect, ..request() };
    assert_eq!(store.claim(suspect).await.unwrap().next_due_at, Some(at(30)));
}

/// Each message comes with its own content.
pub async fn a_claim_brings_the_content(store: &dyn Store) {
    for n in 1..=3 {
        keep(store, row_with(message(n), content(n))).await;
    }
    for (message, carried) in store.claim(request()).await.unwrap().claimed {
        let n = (1..=3).find(|n| id(*n) == message.id).expect("one of the three");
        assert_eq!(carried, content(n));
    }
}

/// The lease says whose it is and until when; its fence is new and names it.
pub async fn a_claim_is_a_lease_with_a_fence_of_its_own(store: &dyn Store) {
    keep(store, row(Message { fence: 6, ..message(1) })).await;
    let claimed = claim_the_one(store, ClaimRequest { now: at(5), ..request() }).await;
    assert_eq!(claimed.fence, 7, "a claim raises the fence");
    let lease =
        Lease { instance: ANN, claim: 7, until_at: at(65), started_at: None, cancel_requested: false };
    assert_eq!(claimed.state, State::Claimed(lease));
    assert_eq!(now_of(store, &id(1)).await, claimed, "what is answered is what is kept");
}

/// A claim touches the state and the fence alone.
pub async fn a_claim_changes_nothing_else(store: &dyn Store) {
    let before = Message { attempts: 2, unconfirmed: 1, settled_claim: Some(3), fence: 4, ..keyed(1, "k") };
    keep(store, row(before.clone())).await;
    let claimed = claim_the_one(store, request()).await;
    assert_eq!(Message { state: waiting(), fence: 4, ..claimed }, before);
}

/// The first claim's time is the time of the first send, whatever comes of that: a failure, or nobody knows.
pub async fn the_first_send_is_kept_over_retries_and_lost_leases(store: &dyn Store) {
    let request = ClaimRequest { keeps_first_send: true, ..request() };
    keep(store, row(message(1))).await;
    let first = claim_the_one(store, ClaimRequest { now: at(5), ..request.clone() }).await;
    assert_eq!(first.first_sent_at, Some(at(5)));
    assert_eq!(now_of(store, &id(1)).await, first);
    let change = result(&first, &try_later(), 6);
    assert_eq!(store.apply(vec![change]).await.unwrap(), [Applied::Applied]);
    let second = claim_the_one(store, ClaimRequest { now: at(66), ..request.clone() }).await;
    assert_eq!(second.first_sent_at, Some(at(5)), "after a failed try");
    let lost = store.lapsed(at(200), 10).await.unwrap();
    let change = lapse(&lost[0], &route(), at(200)).unwrap();
    assert_eq!(store.apply(vec![change]).await.unwrap(), [Applied::Applied]);
    let kind = ClaimKind::Suspect;
    let third = claim_the_one(store, ClaimRequest { now: at(201), kind, ..request }).await;
    assert_eq!(third.first_sent_at, Some(at(5)), "after a lost lease");
    let change = result(&third, &took_it(), 202);
    assert_eq!(store.apply(vec![change]).await.unwrap(), [Applied::Applied]);
    assert_eq!(now_of(store, &id(1)).await.first_sent_at, Some(at(5)));
}

/// Nobody else pays for it.
pub async fn a_first_send_is_kept_only_where_it_is_asked_for(store: &dyn Store) {
    keep(store, row(message(1))).await;
    keep(store, row(Message { first_sent_at: Some(at(-7)), ..message(2) })).await;
    let claimed = claim(store, request()).await;
    let kept: Vec<_> = claimed.iter().map(|message| message.first_sent_at).collect();
    assert_eq!(kept, [None, Some(at(-7))]);
}

/// A claim under which nothing was sent leaves no trace of a send.
pub async fn a_first_send_that_was_taken_back_is_kept_anew(store: &dyn Store) {
    let request = ClaimRequest { keeps_first_send: true, ..request() };
    keep(store, row(message(1))).await;
    let first = claim_the_one(store, ClaimRequest { now: at(5), ..request.clone() }).await;
    let closed = Outcome::Deferred { until: Until::At(at(60)), reason: "closed".into() };
    let mut change = result(&first, &closed, 6);
    change.message.forget_first_send(at(5));
    assert_eq!(store.apply(vec![change]).await.unwrap(), [Applied::Applied]);
    assert_eq!(now_of(store, &id(1)).await.first_sent_at, None);
    let second = claim_the_one(store, ClaimRequest { now: at(70), ..request }).await;
    assert_eq!(second.first_sent_at, Some(at(70)));
}

/// What was claimed is gone from the due, for everybody.
pub async fn a_message_is_claimed_once(store: &dyn Store) {
    keep_all(store, (1..=3).map(message)).await;
    assert_eq!(claim(store, request()).await.len(), 3);
    let bob = ClaimRequest { instance: BOB, now: at(1_000), ..request() };
    assert_eq!(store.claim(bob).await.unwrap(), Claims::default());
}

/// Eight claim at the same time, again and again, until nothing is left.
pub async fn two_claimers_never_get_the_same_message(store: &dyn Store) {
    keep_all(store, (1..=400).map(message)).await;
    let claimed = at_once(|n| async move {
        let mut mine = Vec::new();
        loop {
            let instance = redeliver_core::InstanceId(u64::from(n));
            let more = claim(store, ClaimRequest { limit: 7, instance, ..request() }).await;
            if more.is_empty() {
                return mine;
            }
            mine.extend(more);
        }
    });
    let claimed: Vec<Message> = claimed.into_iter().flatten().collect();
    assert_eq!(sorted_ids(&claimed), numbered(1..=400), "each once");
}
