//! The protocol of claim, renew, reap and apply, checked in every order of its steps.
//!
//! Up to three workers, a reaper and an operator share a store whose calls may be applied and not answered, be lost,
//! or arrive long after nobody waits for them; workers crash, or are paused for any length of time at any step.

mod agreement;
mod bug;
mod model;
mod properties;
mod rename;
mod row;
mod store;
mod world;

use stateright::{Checker, HasDiscoveries, Model};

use crate::bug::Bug;
use crate::model::Rules;

fn check(name: &str, rules: Rules) {
    let checker = rules.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!("{name}: {} states, {} deep", checker.unique_state_count(), checker.max_depth());
    for p in checker.model().properties() {
        if !checker.discoveries().contains_key(p.name) && p.expectation == stateright::Expectation::Sometimes
        {
            println!("   never {}", p.name)
        } else if p.expectation == stateright::Expectation::Always
            && checker.discoveries().contains_key(p.name)
        {
            println!("   BROKEN {} {:?}", p.name, checker.discovery(p.name).unwrap().into_actions())
        }
    }
}

#[test]
fn the_protocol_holds_on_a_route_that_retries() {
    check("retry", Rules::default());
}

#[test]
fn probe() {
    let base = Rules { operator: false, strays_max: 0, ..Rules::default() };
    for (name, rules) in [
        ("1w beats stray", Rules { beats: true, workers: 1, strays_max: 1, ..base.clone() }),
        ("1w beats stray hold", Rules { beats: true, workers: 1, strays_max: 1, hold: true, ..base.clone() }),
        ("1w m2 stray", Rules { messages: 2, workers: 1, strays_max: 1, ..base.clone() }),
        ("hold stray", Rules { hold: true, strays_max: 1, ..base.clone() }),
        ("hold op", Rules { hold: true, operator: true, ..base.clone() }),
        ("heals", Rules { heals: true, ..base.clone() }),
        ("heals hold", Rules { heals: true, hold: true, ..base.clone() }),
        (
            "heals 1w beats stray",
            Rules { heals: true, beats: true, workers: 1, strays_max: 1, ..base.clone() },
        ),
        ("1w m2 stray op", Rules { messages: 2, workers: 1, strays_max: 1, operator: true, ..base.clone() }),
        ("beats", Rules { beats: true, ..base.clone() }),
        ("m2", Rules { messages: 2, ..base.clone() }),
    ] {
        check(name, rules)
    }
}

#[test]
fn each_mistake_is_caught() {
    for bug in Bug::ALL {
        let checker =
            bug.rules().checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let caught: Vec<_> = checker
            .discoveries()
            .into_iter()
            .filter(|(name, _)| {
                matches!(
                    checker.discovery_classification(name),
                    stateright::DiscoveryClassification::Counterexample
                )
            })
            .map(|(name, path)| (name, path.into_actions()))
            .collect();
        println!("{bug:?}: {} states; {caught:?}", checker.unique_state_count());
    }
}
