//! Who lives is told, with what they say of themselves.

use std::time::Duration;

use redeliver_engine::store::{About, Living, Store};

use crate::make::*;

const SILENT_MAX: Duration = Duration::from_secs(30);

fn about(s: i64) -> About {
    About { name: odd_text(), version: "0.1.0".into(), started_at: at(s) }
}

/// Name, version, since when, when last heard of, and how many messages it holds.
pub async fn who_lives_is_told_with_what_they_say_of_themselves(store: &dyn Store) {
    assert_eq!(store.living(at(0)).await.unwrap(), []);
    store.beat(BOB, at(0), SILENT_MAX).await.unwrap();
    store.beat(ANN, at(1), SILENT_MAX).await.unwrap();
    store.introduce(BOB, about(-5)).await.unwrap();
    store.introduce(ANN, about(-10)).await.unwrap();
    store.beat(ANN, at(3), SILENT_MAX).await.unwrap();
    keep_all(store, (1..=3).map(message)).await;
    assert_eq!(claim(store, redeliver_engine::store::ClaimRequest { limit: 2, ..request() }).await.len(), 2);
    let ann = Living { id: ANN, about: Some(about(-10)), beat_at: Some(at(3)), leases: 2 };
    let bob = Living { id: BOB, about: Some(about(-5)), beat_at: Some(at(0)), leases: 0 };
    assert_eq!(store.living(at(4)).await.unwrap(), [ann, bob], "whoever started first comes first");
}

/// Neither is whoever said goodbye.
pub async fn whoever_is_silent_or_gone_is_not_among_the_living(store: &dyn Store) {
    store.beat(ANN, at(0), SILENT_MAX).await.unwrap();
    store.beat(BOB, at(10), SILENT_MAX).await.unwrap();
    let ids = async |s| -> Vec<_> { store.living(at(s)).await.unwrap().iter().map(|one| one.id).collect() };
    assert_eq!(ids(35).await, [BOB]);
    store.leave(BOB).await.unwrap();
    assert_eq!(ids(20).await, [ANN]);
    store.introduce(BOB, about(0)).await.unwrap();
    assert_eq!(ids(20).await, [ANN], "what the gone say of themselves brings nobody back");
}
