//! Three instances on one PostgreSQL with a synchronous standby. Instances are killed and stopped, the database is
//! restarted and fails over, each fault proved; mails come in all the while. Everything that was answered for arrives, and
//! what arrives twice is known to have been in doubt.
//!
//! The short form is part of `make test`; `make chaos` goes on for as long and with as many mails as it is told.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "chaos/mod.rs"]
mod chaos;
#[path = "story/mod.rs"]
mod story;

use std::sync::Arc;
use std::time::Instant;

use chaos::Plan;
use chaos::fleet::Fleet;
use chaos::generate::Generators;
use chaos::judge::judge;
use chaos::ledger::Ledger;
use chaos::nemesis;
use story::peer::{Peer, Sink};

#[test]
#[allow(clippy::disallowed_methods, reason = "a run lasts for real time")]
fn faults_lose_nothing_and_double_only_what_is_known_to_be_in_doubt() {
    let plan = Plan::read();
    let begun = Instant::now();
    let sink = Sink::new();
    let mut fleet = Fleet::start(&plan, &sink.url());
    let ledger = Arc::new(Ledger::new());
    let generators = Generators::start(&ledger, fleet.addresses(), sink.arrivals());
    let mut proofs = Vec::new();
    loop {
        for fault in nemesis::ALL {
            let proof = fault(&mut fleet, &plan);
            println!("{:>6.1}s  {proof}", begun.elapsed().as_secs_f64());
            proofs.push(proof);
            generators.get_on();
        }
        if begun.elapsed() >= plan.span && ledger.answered() >= plan.messages {
            break;
        }
        fleet.rebuild_standby();
    }
    generators.stop();
    let settled = fleet.wait_until_settled();
    let verdict = judge(&fleet, &ledger, &sink.mails());
    println!(
        "{:>6.1}s  settled {:.1}s after the last fault\n{verdict}\n{} faults, each proved",
        begun.elapsed().as_secs_f64(),
        settled.as_secs_f64(),
        proofs.len()
    );
    assert!(verdict.is_clean(), "{verdict}");
    fleet.end();
}
