//! A destination that comes back gets the slow start of its breaker once, however many instances send to it.
#![allow(clippy::unwrap_used, reason = "that's how a test fails")]

mod fleet;

use std::time::Duration;

use fleet::Fleet;
use redeliver_core::Route;
use redeliver_core::breaker::BreakerConfig;
use redeliver_engine::clock::Clock;
use redeliver_simulation::clock::SimHandle;
use redeliver_simulation::stage::route;

#[test]
fn the_slow_start_of_a_breaker_holds_for_the_fleet() {
    for fixed in [true, false] {
        let config = BreakerConfig { open_for: Duration::from_secs(5), ..BreakerConfig::default() };
        let slow_start = usize::try_from(config.recover_per_s).unwrap();
        let guarded = Route { breaker: Some(config), ..route() };
        let mut fleet = Fleet::new(guarded, Duration::from_millis(30), fixed);
        let now = SimHandle(fleet.clock.clone()).now();
        fleet.seen.lock().unwrap().down_until = Some(now.plus(Duration::from_secs(30)));
        fleet.accept(3_000);
        fleet.pass(120);
        let starts = fleet.seen.lock().unwrap().starts.clone();
        let within = |s| starts.iter().filter(|at| at.since(starts[0]) < Duration::from_secs(s)).count();
        let counts = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(within);
        println!("fixed {fixed}: {counts:?} in the first seconds, {} in all", starts.len());
        for (s, count) in counts.into_iter().enumerate() {
            // The first one is the probe.
            let most = (slow_start << s) + 1;
            assert!(count <= most, "{count} sends in {} s of recovery, which may have {most}", s + 1);
        }
        assert!(counts[7] >= slow_start << 4, "{} sends in 8 s: the slow start is not used", counts[7]);
        assert_eq!(starts.len(), 3_000, "all go out in the end");
    }
}
