//! The faults. Each gives its proof, or ends the run: a fault that can't be shown to have happened proves nothing.

use std::fmt;
use std::time::{Duration, Instant};

use redeliver_servers::postgres::PostgresServer;
use rustix::process::Signal;

use super::Plan;
use super::fleet::Fleet;
use crate::story::{breathe, until};

/// How often a kill or a stop is tried until it finds an instance with mails in its hands.
const TRIED_MAX: usize = 20;

/// That a fault has happened, and what was seen of it.
pub struct Proof {
    fault: &'static str,
    seen: String,
}

/// What does one fault.
pub type Fault = fn(&mut Fleet, &Plan) -> Proof;

/// Every fault once.
pub const ALL: [Fault; 4] = [kill, stop, restart, fail_over];

/// Kills an instance that holds mails.
fn kill(fleet: &mut Fleet, plan: &Plan) -> Proof {
    for tried in 0..TRIED_MAX {
        let victim = tried % fleet.instances();
        let id = fleet.id(victim);
        until("the victim holds mails", || fleet.claims(id) > 0);
        assert!(fleet.instance(victim).kill_now(), "the victim had ended by itself");
        fleet.bury(victim);
        let killed_at = Instant::now();
        let held = fleet.claims(id);
        if held > 0 {
            let free = wait_until_free(fleet, id, killed_at, plan);
            fleet.start_instance(victim);
            let seen = format!(
                "ended by signal 9 with {held} mails in its hands, taken by others within {:.1}s",
                free.as_secs_f64()
            );
            return Proof { fault: "instance killed", seen };
        }
        fleet.start_instance(victim);
    }
    panic!("no kill found an instance with mails in its hands: the run proves nothing");
}

/// Stops an instance that holds mails for longer than it may hold them, and lets it go on.
fn stop(fleet: &mut Fleet, plan: &Plan) -> Proof {
    for tried in 0..TRIED_MAX {
        let victim = (tried + 1) % fleet.instances();
        let id = fleet.id(victim);
        until("the victim holds mails", || fleet.claims(id) > 0);
        fleet.instance(victim).signal(Signal::STOP);
        until("the victim stands still", || fleet.instance(victim).is_stopped());
        let stopped_at = Instant::now();
        let held = fleet.claims(id);
        let proof = (held > 0).then(|| {
            let free = wait_until_free(fleet, id, stopped_at, plan);
            assert!(fleet.instance(victim).is_stopped(), "the victim went on too early");
            let seen = format!(
                "stood still with {held} mails in its hands, taken by others within {:.1}s, then went on",
                free.as_secs_f64()
            );
            Proof { fault: "instance stopped", seen }
        });
        fleet.instance(victim).signal(Signal::CONT);
        until("the victim lives again", || !fleet.instance(victim).is_stopped() && fleet.is_alive(id));
        if let Some(proof) = proof {
            return proof;
        }
    }
    panic!("no stop found an instance with mails in its hands: the run proves nothing");
}

/// Waits until others have taken an instance's mails.
fn wait_until_free(fleet: &Fleet, id: i64, since: Instant, plan: &Plan) -> Duration {
    while fleet.claims(id) > 0 {
        let waited = since.elapsed();
        assert!(
            waited <= plan.reaped_within,
            "after {waited:?}, {} mails are still its own",
            fleet.claims(id)
        );
        breathe();
    }
    since.elapsed()
}

/// Restarts the database.
fn restart(fleet: &mut Fleet, _plan: &Plan) -> Proof {
    let started = |fleet: &Fleet| {
        let sql = "SELECT floor(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint";
        fleet.primary.say("postgres", sql)
    };
    let (before, pid) = (started(fleet), fleet.primary.pid());
    fleet.primary.stop();
    assert!(!fleet.primary.answers(), "the database was stopped and still answers");
    fleet.primary.resume();
    let after = started(fleet);
    assert!(before != after && pid != fleet.primary.pid(), "the database was not restarted");
    fleet.wait_for_standby();
    wait_for_connections(fleet);
    Proof {
        fault: "database restarted",
        seen: format!("process {} became {}", shown(pid), shown(fleet.primary.pid())),
    }
}

/// Kills the primary, and makes the standby the next one.
fn fail_over(fleet: &mut Fleet, _plan: &Plan) -> Proof {
    fleet.wait_for_standby();
    let before = timeline(&fleet.primary);
    let standby = fleet.standby.take().expect("there is a standby");
    assert_eq!(standby.say("postgres", "SELECT pg_is_in_recovery()"), "t");
    fleet.primary.kill();
    assert!(!fleet.primary.answers(), "the primary was killed and still answers");
    standby.promote();
    assert_eq!(standby.say("postgres", "SELECT pg_is_in_recovery()"), "f");
    let after = timeline(&standby);
    assert!(after > before, "the standby goes on in timeline {before}");
    let dead = std::mem::replace(&mut fleet.primary, standby);
    let (from, to) = (dead.port(), fleet.primary.port());
    fleet.standby = Some(dead);
    wait_for_connections(fleet);
    Proof {
        fault: "failover",
        seen: format!("the primary at {from} was killed, the standby at {to} is it now, in timeline {after}"),
    }
}

/// How often the history of a database has branched off.
fn timeline(server: &PostgresServer) -> u32 {
    let file = server.say("postgres", "SELECT pg_walfile_name(pg_current_wal_lsn())");
    u32::from_str_radix(&file[..8], 16).expect("a log's name begins with its timeline")
}

/// Waits until every instance has found its database again.
fn wait_for_connections(fleet: &Fleet) {
    for n in 0..fleet.instances() {
        let id = fleet.id(n);
        until("the instance is ready", || fleet.instance(n).get("/readyz").status == 200);
        until("the instance says that it lives", || fleet.is_alive(id));
    }
}

fn shown(pid: Option<u32>) -> String {
    pid.map_or_else(|| "none".to_owned(), |pid| pid.to_string())
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fault, self.seen)
    }
}
