//! What is done to many messages is kept whole, and two who work on it never both go on.

use redeliver_core::bulk::{Bulk, Pace, Standing, Total, Which};
use redeliver_core::operate::Action;
use redeliver_core::{InstanceId, Timestamp};
use redeliver_engine::store::Store;

fn bulk(id: &str) -> Bulk {
    let which = Which { status: Some("dead".into()), error: Some("full".to_owned()), ..Which::default() };
    let pace = Pace { rate_per_s: 50, is_careful: true };
    Bulk {
        done: 3,
        skipped: 1,
        total: Some(Total { count: 9, is_least: true }),
        worked_ms: 1_500,
        after: Some("17".into()),
        stage: 1,
        trial: vec![("a".into(), 2)],
        held: Some((InstanceId(7), Timestamp::from_ms(5))),
        updated_at: Timestamp::from_ms(2),
        ..Bulk::new(id, "ada", Action::Retry, which, pace, Timestamp::from_ms(1))
    }
}

/// All of it, with the version that the store gave it; and its deed.
pub async fn a_bulk_operation_comes_back_whole(store: &dyn Store) {
    assert_eq!(store.bulk("a".into()).await.unwrap(), None);
    let audit = bulk("a").audit(&"ada".into(), "bulk_retry", Timestamp::from_ms(1));
    assert!(store.put_bulk(bulk("a"), Some(audit.clone())).await.unwrap());
    assert_eq!(store.bulk("a".into()).await.unwrap(), Some(Bulk { version: 1, ..bulk("a") }));
    assert_eq!(store.audit(10).await.unwrap(), [audit]);
}

/// Whoever read an older version changes nothing, and leaves no deed.
pub async fn a_bulk_operation_changes_only_if_it_is_as_it_was_read(store: &dyn Store) {
    assert!(store.put_bulk(bulk("a"), None).await.unwrap());
    let audit = bulk("a").audit(&"ada".into(), "bulk_stop", Timestamp::from_ms(1));
    assert!(!store.put_bulk(bulk("a"), Some(audit.clone())).await.unwrap(), "it is there already");
    let next = Bulk { version: 1, done: 4, ..bulk("a") };
    assert!(store.put_bulk(next.clone(), None).await.unwrap());
    assert!(!store.put_bulk(next.clone(), Some(audit)).await.unwrap(), "said twice");
    assert_eq!(store.bulk("a".into()).await.unwrap(), Some(Bulk { version: 2, ..next }));
    assert_eq!(store.audit(10).await.unwrap(), []);
}

/// So many of them, behind the last page.
pub async fn bulk_operations_are_told_newest_first(store: &dyn Store) {
    for id in ["a", "c", "b"] {
        assert!(store.put_bulk(bulk(id), None).await.unwrap());
    }
    assert_eq!(ids(&store.bulks(None, 2).await.unwrap()), ["c", "b"]);
    assert_eq!(ids(&store.bulks(Some("b".into()), 2).await.unwrap()), ["a"]);
    assert_eq!(ids(&store.bulks(Some("a".into()), 2).await.unwrap()), [""; 0]);
}

/// However many have begun since; and one that was resumed is among them again, one that has ended is not.
pub async fn a_bulk_operation_that_goes_on_is_found_behind_any_number_of_newer_ones(store: &dyn Store) {
    assert!(store.put_bulk(bulk("000"), None).await.unwrap());
    let ended = [Standing::Paused, Standing::Stopped, Standing::Done];
    for (n, standing) in (1..=120).zip(ended.into_iter().cycle()) {
        let named = Bulk { why: Some("\"standing\":\"running\"".into()), ..bulk(&format!("{n:03}")) };
        assert!(store.put_bulk(Bulk { standing, ..named }, None).await.unwrap());
    }
    assert_eq!(ids(&store.running_bulks(None, 10).await.unwrap()), ["000"]);
    let resumed = store.bulk("001".into()).await.unwrap().unwrap();
    assert!(store.put_bulk(Bulk { standing: Standing::Running, ..resumed }, None).await.unwrap());
    assert_eq!(ids(&store.running_bulks(None, 10).await.unwrap()), ["001", "000"]);
    assert_eq!(ids(&store.running_bulks(None, 1).await.unwrap()), ["001"]);
    assert_eq!(ids(&store.running_bulks(Some("001".into()), 10).await.unwrap()), ["000"]);
    let first = store.bulk("000".into()).await.unwrap().unwrap();
    assert!(store.put_bulk(Bulk { standing: Standing::Done, ..first }, None).await.unwrap());
    assert_eq!(ids(&store.running_bulks(None, 10).await.unwrap()), ["001"]);
}

fn ids(bulks: &[Bulk]) -> Vec<&str> {
    bulks.iter().map(|bulk| &*bulk.id).collect()
}
