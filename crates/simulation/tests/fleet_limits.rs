//! Three instances share the limits of a destination, while some of them are killed or stand still.
#![allow(clippy::unwrap_used, reason = "that's how a test fails")]

mod fleet;

use std::time::Duration;

use fleet::Fleet;
use redeliver_core::Route;
use redeliver_core::limit::Rate;
use redeliver_core::planted::{Bug, plant};
use redeliver_simulation::stage::route;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_rate_holds_for_the_fleet_and_is_used() {
    for (per_s, fixed) in
        [(10.0, false), (10.0, true), (50.0, true), (50.0, false), (0.5, false), (1.5, true)]
    {
        let limited = Route { rate: Some(Rate { per_s }), ..route() };
        let mut fleet = Fleet::new(limited, Duration::from_millis(30), fixed);
        fleet.accept((per_s * 120.0) as usize);
        fleet.live_through_faults();
        let (second, minute) = (fleet.most_in(Duration::from_secs(1)), fleet.most_in(MINUTE));
        let all = fleet.seen.lock().unwrap().starts.len();
        println!("{per_s}/s, fixed {fixed}: {second} in a second, {minute} in a minute, {all} in 90 s");
        assert!(second <= per_s.ceil() as usize, "{second} in a second at {per_s}/s, fixed: {fixed}");
        assert!(
            minute <= (per_s * 60.0).ceil() as usize,
            "{minute} in a minute at {per_s}/s, fixed: {fixed}"
        );
        let share = all as f64 / (per_s * 90.0);
        assert!(share >= 0.8, "{share:.2} of {per_s}/s was used, fixed: {fixed}");
    }
}

#[test]
fn a_concurrency_limit_holds_for_the_fleet_and_is_used() {
    for fixed in [true, false] {
        let limited = Route { destination_concurrency_max: Some(3), ..route() };
        let mut fleet = Fleet::new(limited, Duration::from_secs(2), fixed);
        fleet.accept(200);
        fleet.live_through_faults();
        let (at_once_max, all) = {
            let seen = fleet.seen.lock().unwrap();
            (seen.at_once_max, seen.starts.len())
        };
        println!("fixed {fixed}: {at_once_max} at once, {all} in 90 s");
        // A process that stands still can't end what it has sent; its permits go to others meanwhile.
        assert!(at_once_max <= 3 + 3, "{at_once_max} at once, fixed: {fixed}");
        assert!(all >= 108, "{all} of 135 sends of two seconds, fixed: {fixed}");
    }
}

#[test]
fn permits_are_split_among_the_instances_that_want_them() {
    for fixed in [true, false] {
        let limited = Route { destination_concurrency_max: Some(6), ..route() };
        let mut fleet = Fleet::new(limited, Duration::from_secs(2), fixed);
        fleet.accept(400);
        fleet.pass(60);
        let seen = fleet.seen.lock().unwrap();
        let of = |instance| seen.starters.iter().filter(|starter| **starter == instance).count();
        let (parts, all) = ([1, 2, 3].map(of), seen.starters.len());
        println!("fixed {fixed}: {parts:?} of {all} in 60 s");
        assert!(all >= 162, "{all} of 180 sends of two seconds, fixed: {fixed}");
        assert!(parts.into_iter().all(|part| part >= all / 6), "{parts:?} are no fair parts, fixed: {fixed}");
    }
}

#[test]
fn limits_that_hold_per_instance_are_caught() {
    plant(Some(Bug::LimitsHoldPerInstance));
    let limited = Route { rate: Some(Rate { per_s: 10.0 }), ..route() };
    let mut fleet = Fleet::new(limited, Duration::from_millis(30), false);
    fleet.accept(600);
    fleet.pass(20);
    plant(None);
    assert!(fleet.most_in(Duration::from_secs(1)) > 10, "the planted bug shows");
}
