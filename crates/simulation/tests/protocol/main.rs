//! The protocol of claim, renew, reap and apply, checked in every order of its steps.
//!
//! Workers, a reaper and an operator share a store whose calls may be applied and not answered, be lost, or arrive long
//! after anybody waits for them. Workers crash, or are paused for any length of time between any two steps.

mod agreement;
mod bug;
mod model;
mod properties;
mod rename;
mod row;
mod store;
mod worker;
mod world;

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model};

use crate::bug::Bug;
use crate::model::Rules;

const THREADS: usize = 2;

/// Looks at every state that these rules allow.
fn check(name: &str, rules: Rules) {
    let checker =
        rules.checker().threads(THREADS).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!("{name}: {} unique states", checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn it_holds_where_a_loss_is_retried() {
    let rules = Rules::default();
    check("two workers and an operator", Rules { operator: true, ..rules.clone() });
    check("two workers and stray requests", Rules { strays_max: 1, ..rules.clone() });
    check(
        "a worker, an operator and stray requests",
        Rules { workers: 1, operator: true, strays_max: 1, heals: true, ..rules },
    );
}

#[test]
fn it_holds_where_a_loss_is_held() {
    let rules = Rules { hold: true, ..Rules::default() };
    check("two workers and stray requests, held", Rules { strays_max: 1, ..rules.clone() });
    check(
        "a worker, an operator and stray requests, held",
        Rules { workers: 1, operator: true, strays_max: 1, heals: true, ..rules },
    );
}

#[test]
fn it_holds_with_heartbeats() {
    let rules = Rules { workers: 1, beats: true, strays_max: 1, heals: true, ..Rules::default() };
    check("heartbeats", rules.clone());
    check("heartbeats, held", Rules { hold: true, ..rules });
}

#[test]
fn it_holds_for_three_workers() {
    check("three workers", Rules { workers: 3, ..Rules::default() });
}

#[test]
fn it_holds_for_two_messages() {
    check(
        "two messages and stray requests",
        Rules { workers: 1, messages: 2, strays_max: 1, ..Rules::default() },
    );
}

/// The model is worth something only if it can fail.
#[test]
fn every_mistake_in_it_is_found() {
    for bug in Bug::ALL {
        let broken = bug.breaks();
        let found = HasDiscoveries::AllOf(BTreeSet::from([broken]));
        let checker = bug.rules().checker().finish_when(found).spawn_bfs().join();
        let path = checker.assert_any_discovery(broken).into_actions();
        println!("{bug:?} breaks {broken:?} in {} steps: {path:?}", path.len());
    }
    println!("{} of {} mistakes found", Bug::ALL.len(), Bug::ALL.len());
}
