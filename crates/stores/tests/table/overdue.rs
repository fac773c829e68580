//! Rows that are with their sender for longer than it has to report.

use std::time::Duration;

use redeliver_conformance::make::at;
use redeliver_core::settle::{overdue, settle};
use redeliver_core::{AttemptId, Outcome, Route};
use redeliver_engine::store::Applied;
use redeliver_stores::mapping::Mapping;
use redeliver_stores::sqlite::table::SqliteTable;

use crate::alone::{self, claim_one, write};
use crate::rig::{Place, Put, Rig, mapping};

const ONE: &str = "00000000-0000-0000-0000-000000000001";

fn reporting() -> Mapping {
    Mapping { report_within: Some(Duration::from_secs(100)), ..mapping() }
}

#[test]
fn a_pending_row_without_a_report_is_published_again_under_the_same_attempt_id() {
    redeliver_conformance::judge(async {
        published_again(&Rig::sqlite_with(reporting())).await;
        published_again(&Rig::postgres_with(reporting(), |ddl| ddl).await).await;
    });
}

async fn published_again(rig: &Rig) {
    let route = Route { report_within: Some(Duration::from_secs(100)), ..alone::route() };
    rig.put(&Put::failed(ONE, at(0)));
    let first = claim_one(rig.store(), 0).await;
    let attempt = AttemptId::of(&first);
    assert_eq!(
        write(rig.store(), settle(&first, &Outcome::HandedOff, &route, at(1))).await,
        Applied::Applied
    );
    assert_eq!(rig.store().overdue(at(100), 10).await.unwrap(), []);
    let [late] = rig.store().overdue(at(101), 10).await.unwrap().try_into().unwrap();
    assert_eq!(write(rig.store(), overdue(&late, &route, at(101)).unwrap()).await, Applied::Applied);
    assert_eq!(rig.store().overdue(at(999), 10).await.unwrap(), []);
    let second = claim_one(rig.store(), 999).await;
    assert_eq!(AttemptId::of(&second), attempt);
    assert_eq!((second.unconfirmed, second.possible_duplicates), (1, 1));
}

#[test]
fn rows_that_are_with_their_sender_for_long_are_counted_by_age() {
    redeliver_conformance::judge(async {
        counted_by_age(&Rig::sqlite()).await;
        counted_by_age(&Rig::postgres().await).await;
    });
}

async fn counted_by_age(rig: &Rig) {
    let hour = 3_600;
    rig.put(&Put::failed(ONE, at(0)));
    let claimed = claim_one(rig.store(), 0).await;
    let handed_off = settle(&claimed, &Outcome::HandedOff, &alone::route(), at(0));
    assert_eq!(write(rig.store(), handed_off).await, Applied::Applied);
    for (time, old) in
        [(hour / 2, [0, 0, 0]), (hour, [1, 0, 0]), (24 * hour, [1, 1, 0]), (7 * 24 * hour, [1; 3])]
    {
        let counts = rig.store().counts(at(time)).await.unwrap();
        let [count] = counts.try_into().unwrap();
        assert_eq!((count.state, count.old), ("handed_off", old), "after {time} s");
    }
    let examined = rig.rows(mapping()).await.examine(at(7 * 24 * hour)).await.unwrap();
    assert_eq!((examined.old().than, examined.old().since_unknown), ([1; 3], 0));
    rig.place.say("UPDATE \"EmailLog\" SET \"LastQueuedAt\" = NULL");
    let examined = rig.rows(mapping()).await.examine(at(7 * 24 * hour)).await.unwrap();
    assert_eq!((examined.old().than, examined.old().since_unknown), ([0; 3], 1));
}

#[test]
fn a_row_that_a_sender_has_locked_is_not_overdue_and_without_report_within_none_is() {
    redeliver_conformance::judge(async {
        let rig = Rig::sqlite_with(reporting());
        let route = alone::route();
        rig.put(&Put::failed(ONE, at(0)));
        let claimed = claim_one(rig.store(), 0).await;
        assert_eq!(
            write(rig.store(), settle(&claimed, &Outcome::HandedOff, &route, at(1))).await,
            Applied::Applied
        );
        rig.place.say(&format!("UPDATE \"EmailLog\" SET \"LockedUntil\" = {}", at(500).as_ms()));
        assert_eq!(rig.store().overdue(at(300), 10).await.unwrap(), []);
        assert_eq!(rig.store().overdue(at(500), 10).await.unwrap().len(), 1);
        let rig = Rig::sqlite();
        rig.put(&Put::failed(ONE, at(0)));
        let claimed = claim_one(rig.store(), 0).await;
        assert_eq!(
            write(rig.store(), settle(&claimed, &Outcome::HandedOff, &route, at(1))).await,
            Applied::Applied
        );
        assert_eq!(rig.store().overdue(at(9_999_999), 10).await.unwrap(), []);
        let Place::Sqlite { path, .. } = &rig.place else { panic!("it is SQLite") };
        let refused = SqliteTable::open(path, reporting()).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|why| why.contains("LastQueuedAt")), "it says which index to make");
    });
}
