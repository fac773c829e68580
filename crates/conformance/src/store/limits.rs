//! The limits of destinations hold for all instances together.

use std::time::Duration;

use redeliver_core::InstanceId;
use redeliver_core::limit::{Ask, Grant, Limits, RESERVE_AHEAD, Rate};
use redeliver_engine::store::{LimitRequest, Store};

use super::at_once;
use crate::make::*;

const SILENT_MAX: Duration = Duration::from_secs(30);

fn rate() -> Limits {
    Limits { gap_us: Some(Rate { per_s: 10.0 }.gap_us()), at_once_max: None }
}

fn permits(max: usize) -> Limits {
    Limits { gap_us: None, at_once_max: Some(max) }
}

fn asks(instance: InstanceId, turn: u64, ask: Ask) -> LimitRequest {
    LimitRequest { destination: odd_text(), instance, turn, until_at: at(0), ask }
}

async fn slots(store: &dyn Store, instance: InstanceId, s: i64, sends: usize) -> Grant {
    let ask = Ask { limits: rate(), now: at(s), in_use: 0, sends, has_backlog: false };
    store.draw_limit(asks(instance, 1, ask)).await.unwrap()
}

async fn held(
    store: &dyn Store,
    instance: InstanceId,
    turn: u64,
    s: i64,
    (in_use, sends): (usize, usize),
) -> usize {
    let ask = Ask { limits: permits(5), now: at(s), in_use, sends, has_backlog: false };
    store.draw_limit(asks(instance, turn, ask)).await.unwrap().held
}

/// The slots of one begin where those of the other end.
pub async fn two_instances_never_get_the_same_slots(store: &dyn Store) {
    let ann = slots(store, ANN, 0, 3).await;
    assert_eq!((ann.first_us, ann.slots), (at(0).as_ms() * 1_000, 3));
    let bob = slots(store, BOB, 0, 2).await;
    assert_eq!((bob.first_us, bob.slots), (ann.free_at_us, 2));
    assert!(bob.free_at_us > bob.first_us);
}

/// Neither do eight who ask at the same time.
pub async fn of_many_who_ask_at_once_none_gets_the_slots_of_another(store: &dyn Store) {
    let all = at_once(|n| async move {
        let mut mine = Vec::new();
        for _ in 0..5 {
            let grant = slots(store, InstanceId(100 + u64::from(n)), 0, 1).await;
            mine.extend((0..grant.slots).map(|_| grant.first_us));
        }
        mine
    });
    let mut all: Vec<i64> = all.into_iter().flatten().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "a slot was given twice");
    let gap_us = Rate { per_s: 10.0 }.gap_us();
    assert_eq!(
        count as i64,
        (RESERVE_AHEAD.as_micros() as i64).div_euclid(gap_us) + 1,
        "as many as are near"
    );
}

/// What one destination has used up, another has not.
pub async fn destinations_have_slots_of_their_own(store: &dyn Store) {
    slots(store, ANN, 0, 100).await;
    assert_eq!(slots(store, BOB, 0, 1).await.slots, 0);
    let ask = Ask { limits: rate(), now: at(0), in_use: 0, sends: 1, has_backlog: false };
    let other = LimitRequest { destination: "other".into(), ..asks(BOB, 1, ask) };
    assert_eq!(store.draw_limit(other).await.unwrap().slots, 1);
    assert_eq!(slots(store, BOB, 10, 1).await.first_us, at(10).as_ms() * 1_000, "time makes room");
}

/// All instances together have no more than there are.
pub async fn permits_are_shared_by_all_who_live(store: &dyn Store) {
    store.beat(ANN, at(0), SILENT_MAX).await.unwrap();
    store.beat(BOB, at(0), SILENT_MAX).await.unwrap();
    assert_eq!(held(store, ANN, 1, 1, (0, 3)).await, 3);
    assert_eq!(held(store, BOB, 1, 1, (0, 3)).await, 2);
    assert_eq!(held(store, ANN, 2, 2, (1, 0)).await, 1, "two are given back");
    assert_eq!(held(store, BOB, 2, 2, (2, 3)).await, 4);
    assert_eq!(held(store, ANN, 3, 3, (1, 5)).await, 1);
}

/// Nor do eight who ask at the same time.
pub async fn of_many_who_ask_at_once_none_gets_the_permit_of_another(store: &dyn Store) {
    for n in 0..8 {
        store.beat(InstanceId(100 + n), at(0), SILENT_MAX).await.unwrap();
    }
    let all = at_once(|n| held(store, InstanceId(100 + u64::from(n)), 1, 1, (0, 2)));
    assert_eq!(all.into_iter().sum::<usize>(), 5);
}

/// One that holds all of them gives some up as its sends end.
pub async fn permits_are_split_fairly_while_others_want_some(store: &dyn Store) {
    store.beat(ANN, at(0), SILENT_MAX).await.unwrap();
    store.beat(BOB, at(0), SILENT_MAX).await.unwrap();
    assert_eq!(held(store, ANN, 1, 1, (0, 5)).await, 5);
    assert_eq!(held(store, BOB, 1, 10, (0, 2)).await, 0);
    let ask = Ask { limits: permits(5), now: at(10), in_use: 4, sends: 1, has_backlog: false };
    let grant = store.draw_limit(asks(ANN, 2, ask)).await.unwrap();
    assert_eq!((grant.held, grant.free, grant.fair), (4, 0, Some(3)), "its part, or what is in use");
    assert_eq!(held(store, BOB, 2, 10, (0, 1)).await, 1, "it has what it wants");
    assert_eq!(held(store, ANN, 3, 10, (2, 9)).await, 4, "bob no longer wants any");
}

/// Its sends are over by then.
pub async fn the_permits_of_a_dead_instance_come_back(store: &dyn Store) {
    store.beat(ANN, at(0), SILENT_MAX).await.unwrap();
    assert_eq!(held(store, ANN, 1, 1, (0, 5)).await, 5);
    assert_eq!(held(store, BOB, 1, 29, (0, 5)).await, 0, "it may live");
    assert_eq!(held(store, BOB, 2, 30, (0, 5)).await, 5);
    store.leave(BOB).await.unwrap();
    assert_eq!(held(store, InstanceId(77), 1, 31, (0, 5)).await, 5, "an instance that left holds nothing");
}

/// Without a heartbeat it holds them until the time that it named.
pub async fn permits_count_until_the_time_that_their_holder_named(store: &dyn Store) {
    let ask = Ask { limits: permits(5), now: at(0), in_use: 0, sends: 4, has_backlog: false };
    let named = LimitRequest { until_at: at(20), ..asks(ANN, 1, ask) };
    assert_eq!(store.draw_limit(named).await.unwrap().held, 4);
    assert_eq!(held(store, BOB, 1, 19, (0, 5)).await, 1);
    assert_eq!(held(store, BOB, 2, 20, (1, 5)).await, 5);
}

/// A call that was under way for long can't take back what a later one said.
pub async fn a_call_that_comes_late_changes_no_permits(store: &dyn Store) {
    store.beat(ANN, at(0), SILENT_MAX).await.unwrap();
    assert_eq!(held(store, ANN, 2, 1, (0, 4)).await, 4);
    assert_eq!(held(store, ANN, 1, 1, (0, 0)).await, 0);
    assert_eq!(held(store, BOB, 1, 1, (0, 5)).await, 1, "four are still ann's");
}

/// What still matters is kept.
pub async fn limits_that_no_longer_matter_are_forgotten(store: &dyn Store) {
    store.beat(ANN, at(0), Duration::from_secs(3_600)).await.unwrap();
    let taken = slots(store, ANN, 0, 5).await;
    assert_eq!(store.forget_limits(at(0)).await.unwrap(), 0);
    assert_eq!(slots(store, BOB, 0, 1).await.first_us, taken.free_at_us);
    assert_eq!(store.forget_limits(at(120)).await.unwrap(), 1);
    assert_eq!(held(store, ANN, 1, 121, (0, 3)).await, 3);
    assert_eq!(store.forget_limits(at(600)).await.unwrap(), 0, "ann lives");
    assert_eq!(held(store, BOB, 1, 600, (0, 5)).await, 2);
    assert_eq!(store.forget_limits(at(10_000)).await.unwrap(), 1);
}
