//! Three instances on one PostgreSQL share a rate and a concurrency limit for 80 seconds. One is killed and started again,
//! another is stopped for longer than its lease. No window of a second or a minute has more starts than the rate, there
//! are never more sends at once than the limit, and at least 0.8 of both is used, faults included.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "limits/mod.rs"]
mod limits;
#[path = "story/mod.rs"]
mod story;

use std::time::Duration;

use limits::fleet::{Fleet, Outage};
use limits::judge::{judge_concurrency, judge_rate};
use limits::receiver::{Receiver, now};

/// After the first send.
const KILL_AT: Duration = Duration::from_secs(12);
const STOP_AT: Duration = Duration::from_secs(32);
const END_AT: Duration = Duration::from_secs(80);
/// Longer than the lease, and than the 12 seconds after which a silent instance counts as dead.
const STOPPED_FOR: Duration = Duration::from_secs(16);
/// The least that must be used of a limit.
const SHARE_MIN: f64 = 0.8;

#[test]
fn limits_hold_for_three_processes_of_which_one_is_killed_and_one_is_stopped() {
    // Each mail is deferred, because the store keeps the start of every try that did not succeed.
    let limited = Receiver::start("defer 451 4.3.0 try again later");
    let slow = Receiver::start(&format!("after dot slow {}s", limits::SLOW_FOR.as_secs()));
    let mut fleet = Fleet::start(&limited, &slow);
    fleet.accept();
    let begun = limited.first_arrival().max(slow.first_arrival());

    limits::wait_until(begun + KILL_AT);
    let victim = fleet.largest_holder(None);
    let held = fleet.kill(victim);
    println!("killed instance {victim}, which held {held} permits");
    fleet.restart(victim);

    limits::wait_until(begun + STOP_AT);
    let victim = fleet.largest_holder(Some(victim));
    let (stopped_at, held) = fleet.stop(victim);
    limits::wait_until(stopped_at + STOPPED_FOR);
    fleet.resume(victim);
    let outage = Outage { from: stopped_at, until: now() };
    println!("stopped instance {victim}, which held {held} permits, for {:?}", outage.until - outage.from);

    limits::wait_until(begun + END_AT);
    let end = now();
    assert!(outage.until < end, "the fleet had no time after the last fault");
    fleet.assert_backlog();
    fleet.end();

    let rate = judge_rate(&limited.arrivals(), &fleet.records(limits::LIMITED), end);
    println!("{rate}");
    let concurrency = judge_concurrency(&slow.arrivals(), &fleet.records(limits::SLOW), outage, end);
    println!("{concurrency}");
    rate.assert_limit_holds();
    concurrency.assert_limit_holds();
    assert!(rate.share >= SHARE_MIN, "too little of the rate was used: {rate}");
    assert!(concurrency.share >= SHARE_MIN, "too little of the limit was used: {concurrency}");
}
