//! What was put away long enough ago goes; nothing else ever does.

use redeliver_core::gate::{GateKey, Scope};
use redeliver_core::{Lease, Message, State};
use redeliver_engine::store::{Applied, Filter, PruneRequest, Store};

use crate::make::*;

/// Delivered, cancelled and dismissed ones.
pub async fn what_was_put_away_long_ago_is_deleted(store: &dyn Store) {
    let away = [delivered(1), cancelled(2), dead(1, Some(3))];
    keep_all(store, (1..).zip(away).map(|(n, state)| standing(n, state))).await;
    assert_eq!(store.prune(before(10)).await.unwrap().messages, 3);
    for n in 1..=3 {
        assert_eq!(store.get(id(n)).await.unwrap(), None, "message {n}");
    }
}

/// However old it is, what hasn't ended stays.
pub async fn what_is_under_way_is_never_deleted(store: &dyn Store) {
    let lease = Lease { instance: ANN, claim: 1, until_at: at(2), started_at: None, cancel_requested: false };
    let states = [
        waiting(),
        State::Waiting { parked_for: Some(GateKey::pause(Scope::Route, "mail")) },
        State::Claimed(lease),
        State::HandedOff { since: at(0), report_by: Some(at(1)) },
    ];
    let old = |(n, state)| Message { fence: 1, expires_at: Some(at(1)), ..standing(n, state) };
    let messages: Vec<Message> = (1..).zip(states).map(old).collect();
    keep_all(store, messages.clone()).await;
    assert_eq!(store.prune(before(1_000_000)).await.unwrap().messages, 0);
    for message in messages {
        assert_eq!(now_of(store, &message.id).await, message);
    }
}

/// Dead is never silent.
pub async fn a_dead_message_stays_until_a_person_puts_it_away(store: &dyn Store) {
    keep(store, row(standing(1, dead(1, None)))).await;
    assert_eq!(store.prune(before(1_000_000)).await.unwrap().messages, 0);
    let message = now_of(store, &id(1)).await;
    let dismissed = store.apply(vec![moved(&message, dead(1, Some(5)))]).await.unwrap();
    assert_eq!(dismissed, [Applied::Applied]);
    assert_eq!(store.prune(before(10)).await.unwrap().messages, 1);
}

/// Not from its death: whoever dismissed it may want it back.
pub async fn a_dismissed_one_counts_from_its_dismissal(store: &dyn Store) {
    keep(store, row(standing(1, dead(1, Some(20))))).await;
    assert_eq!(store.prune(before(10)).await.unwrap().messages, 0);
    assert_eq!(store.prune(before(21)).await.unwrap().messages, 1);
}

/// Its end counts, not its beginning; at the very moment is not before it.
pub async fn what_was_put_away_lately_stays(store: &dyn Store) {
    let away = [delivered(10), cancelled(10), dead(1, Some(10))];
    let long_known = |(n, state)| Message { created_at: at(-1_000_000), ..standing(n, state) };
    keep_all(store, (1..).zip(away).map(long_known)).await;
    assert_eq!(store.prune(before(9)).await.unwrap().messages, 0);
    assert_eq!(store.prune(before(10)).await.unwrap().messages, 0);
    assert_eq!(store.prune(before(11)).await.unwrap().messages, 3);
}

/// Each route has a retention of its own.
pub async fn other_routes_are_left_alone(store: &dyn Store) {
    let elsewhere = Message { route: "letters".into(), ..standing(2, delivered(1)) };
    keep_all(store, [standing(1, delivered(1)), elsewhere.clone()]).await;
    assert_eq!(store.prune(before(10)).await.unwrap().messages, 1);
    assert_eq!(now_of(store, &id(2)).await, elsewhere);
}

/// As many as asked for; the rest another time.
pub async fn no_more_than_the_limit_is_deleted(store: &dyn Store) {
    keep_all(store, (1..=10).map(|n| standing(n, delivered(1)))).await;
    assert_eq!(store.prune(PruneRequest { limit: 4, ..before(10) }).await.unwrap().messages, 4);
    assert_eq!(all(store).await.len(), 6);
    assert_eq!(store.prune(before(10)).await.unwrap().messages, 6);
    assert_eq!(store.prune(before(10)).await.unwrap().messages, 0);
}

/// Nothing of a deleted message is left behind, and nothing of its neighbour goes.
pub async fn content_and_history_go_with_their_message(store: &dyn Store) {
    keep_all(store, [standing(1, delivered(1)), message(2)]).await;
    for n in [1, 2] {
        store.note(id(n), failed_record(1, 0)).await.unwrap();
    }
    store.prune(before(10)).await.unwrap();
    assert_eq!(store.content(id(1)).await.unwrap(), None);
    assert_eq!(store.attempts(id(1)).await.unwrap(), []);
    assert!(store.content(id(2)).await.unwrap().is_some());
    assert_eq!(store.attempts(id(2)).await.unwrap().len(), 1);
}

/// Not in lists, not in counts.
pub async fn a_deleted_message_is_found_nowhere(store: &dyn Store) {
    keep_all(store, [standing(1, delivered(1)), standing(2, dead(1, Some(2)))]).await;
    store.prune(before(10)).await.unwrap();
    assert_eq!(all(store).await, []);
    assert_eq!(store.counts(at(10)).await.unwrap(), []);
}

fn before(s: i64) -> PruneRequest {
    PruneRequest { route: "mail".into(), before: at(s), key_retention: None, now: at(s), limit: 1_000 }
}

async fn all(store: &dyn Store) -> Vec<Message> {
    store.list(Filter { with_dismissed: true, limit: 1_000, ..Filter::default() }).await.unwrap()
}
