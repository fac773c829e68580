//! Rows of an application's own table are another store's: they are answered, not choked on.

use redeliver_core::{Message, MessageId};
use redeliver_engine::store::{Applied, ClaimRef, Filter, Store, StoreError};

use crate::make::*;

/// There is nothing here by that name.
pub async fn a_row_of_another_table_is_not_found(store: &dyn Store) {
    keep(store, row(message(1))).await;
    assert!(is_nothing(store.get(foreign()).await, |found| found.is_none()));
    assert!(is_nothing(store.content(foreign()).await, |found| found.is_none()));
    assert!(is_nothing(store.attempts(foreign()).await, |found| found.is_empty()));
}

/// Nor can anything be done to it, and its neighbours in a batch don't suffer unless the whole call is refused.
pub async fn a_row_of_another_table_cannot_be_changed(store: &dyn Store) {
    let claimed = keep_claimed(store, 1).await;
    let claim = ClaimRef { id: foreign(), claim: claimed.fence };
    assert!(is_nothing(store.start(claim.clone(), at(1)).await, |started| !started));
    assert!(is_nothing(store.renew(vec![claim], at(500)).await, |renewed| *renewed == [false]));
    assert!(is_nothing(store.note(foreign(), failed_record(1, 1)).await, |()| true));
    let change = result(&Message { id: foreign(), ..claimed.clone() }, &took_it(), 1);
    assert!(is_nothing(store.apply(vec![change.clone()]).await, |answers| {
        *answers == [Applied::Superseded(None)]
    }));
    let own = result(&claimed, &took_it(), 1);
    let expected = match store.apply(vec![change, own.clone()]).await {
        Ok(answers) => {
            assert_eq!(answers, [Applied::Superseded(None), Applied::Applied]);
            own.message
        }
        Err(error) => {
            assert!(matches!(error, StoreError::Unfit(_)), "{error}");
            claimed
        }
    };
    assert_eq!(now_of(store, &id(1)).await, expected);
}

/// It stays where it is: the call makes no sense, and nothing of it is written.
pub async fn a_row_of_another_table_is_not_taken_in(store: &dyn Store) {
    let batch = vec![row(message(1)), row(Message { id: foreign(), ..message(2) })];
    let answer = store.insert(batch).await;
    assert!(matches!(answer, Err(StoreError::Unfit(_))), "{answer:?}");
    assert_eq!(store.get(id(1)).await.unwrap(), None);
    let after = Filter { after: Some(foreign()), limit: 10, ..Filter::default() };
    assert!(is_nothing(store.list(after).await, |found| found.is_empty()));
}

fn foreign() -> MessageId {
    MessageId::Row("email-log:17".into())
}

/// Whether the answer is nothing, or that the call makes no sense here.
fn is_nothing<T>(answer: Result<T, StoreError>, fits: impl FnOnce(&T) -> bool) -> bool {
    match answer {
        Ok(found) => fits(&found),
        Err(error) => matches!(error, StoreError::Unfit(_)),
    }
}
