//! What people corrected in a message is kept with it, whole, and only if it was corrected.

use std::sync::Arc;

use redeliver_core::edit::{Difference, EditRecord, Wanted, edit};
use redeliver_core::{Change, Content, Message};
use redeliver_engine::store::{Applied, PruneRequest, Store};
use serde_json::{Value, json};

use crate::make::*;

fn record(n: u32) -> EditRecord {
    let different =
        |field: &str, before: Value, after: Value| Difference { field: field.to_owned(), before, after };
    EditRecord {
        actor: "ann".into(),
        at: at(i64::from(n)),
        generation: n,
        differences: vec![
            different("email.subject", odd_text().as_ref().into(), "\u{0}".into()),
            different(
                "email.to",
                json!(["ada@example.org", { "address": "b@example.org", "name": "B" }]),
                Value::Null,
            ),
        ],
    }
}

fn corrected(message: &Message, n: u32) -> Change {
    Change { edit: Some(record(n)), ..moved(message, waiting()) }
}

/// In order, and byte for byte.
pub async fn what_was_corrected_comes_back_oldest_first(store: &dyn Store) {
    keep_all(store, [standing(1, dead(0, None)), message(2)]).await;
    assert_eq!(store.edits(id(1)).await.unwrap(), []);
    for n in [1, 2] {
        let change = corrected(&now_of(store, &id(1)).await, n);
        assert_eq!(store.apply(vec![change]).await.unwrap(), [Applied::Applied]);
    }
    assert_eq!(store.edits(id(1)).await.unwrap(), [record(1), record(2)]);
    assert_eq!(store.edits(id(2)).await.unwrap(), [], "another's");
    assert_eq!(store.edits(id(3)).await.unwrap(), [], "nobody's");
}

/// The new content, the new route, what was there before, and the deed, all in one.
pub async fn a_correction_is_written_whole(store: &dyn Store) {
    keep(store, row_with(standing(1, dead(0, None)), content(1))).await;
    let before = now_of(store, &id(1)).await;
    let wanted = Wanted { version: before.fence, route: "sms".into(), content: content(2) };
    let change = edit(&before, &content(1), &[], wanted, &"ann".into(), &route(), at(5)).unwrap();
    let (after, record, deed) =
        (change.message.clone(), change.edit.clone().unwrap(), change.audit.clone().unwrap());
    assert_eq!(store.apply(vec![change]).await.unwrap(), [Applied::Applied]);
    assert_eq!(now_of(store, &id(1)).await, after);
    assert_eq!(store.content(id(1)).await.unwrap(), Some(content(2)));
    assert_eq!(store.edits(id(1)).await.unwrap(), [record]);
    assert_eq!(store.audit(10).await.unwrap(), [deed]);
    let counts = store.counts(at(10)).await.unwrap();
    assert_eq!((counts.len(), &*counts[0].route, counts[0].state, counts[0].due), (1, "sms", "waiting", 1));
    let due =
        claim(store, redeliver_engine::store::ClaimRequest { route: "sms".into(), now: at(10), ..request() })
            .await;
    assert_eq!(ids(&due), [id(1)]);
}

/// Of two people who have seen the same, one corrects it; the other's words are nowhere.
pub async fn a_correction_of_what_has_changed_since_writes_nothing(store: &dyn Store) {
    keep(store, row_with(standing(1, dead(0, None)), content(1))).await;
    let seen = now_of(store, &id(1)).await;
    let other = Content::of_bytes("too late");
    let late = Change { content: Some(Arc::new(other)), ..corrected(&seen, 2) };
    let first = Change { content: Some(Arc::new(content(2))), ..corrected(&seen, 1) };
    assert_eq!(store.apply(vec![first]).await.unwrap(), [Applied::Applied]);
    assert!(matches!(store.apply(vec![late]).await.unwrap()[..], [Applied::Superseded(Some(_))]));
    assert_eq!(store.edits(id(1)).await.unwrap(), [record(1)]);
    assert_eq!(store.content(id(1)).await.unwrap(), Some(content(2)));
}

/// Nobody keeps what somebody wrote for longer than the message itself.
pub async fn corrections_go_with_their_message(store: &dyn Store) {
    keep_all(store, [standing(1, dead(0, None))]).await;
    let change = corrected(&now_of(store, &id(1)).await, 1);
    assert_eq!(store.apply(vec![change]).await.unwrap(), [Applied::Applied]);
    let waits = now_of(store, &id(1)).await;
    assert_eq!(store.apply(vec![moved(&waits, delivered(5))]).await.unwrap(), [Applied::Applied]);
    let request =
        PruneRequest { route: "mail".into(), before: at(10), key_retention: None, now: at(10), limit: 10 };
    assert_eq!(store.prune(request).await.unwrap().messages, 1);
    assert_eq!(store.edits(id(1)).await.unwrap(), []);
}
