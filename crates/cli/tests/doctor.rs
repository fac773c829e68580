//! `redeliver doctor` on stores that are well and on those that are not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use std::ops::Range;
use std::time::Duration;

use process::{BODY, Place, Said, Signal, now, until};
use redeliver_core::gate::{Closed, GateKey, GateRecord, Scope};
use redeliver_engine::store::{GateChange, Store};

const CONFIG: &str = r#"
[transports.script]
kind = "scripted"
latency = "10s"

[policies.quick]
backoff = ["1s"]
max_attempts = 2

[routes.email]
transport = "script"
policy = "quick"
send_timeout = "15s"
"#;

const HOUR: Duration = Duration::from_secs(3_600);

/// The lines that begin like this.
fn lines<'a>(said: &'a Said, level: &str, what: &str) -> Vec<&'a str> {
    let words = |line: &&str| line.split_whitespace().take(2).eq([level, what]);
    said.out.lines().filter(words).collect()
}

#[test]
fn a_good_store_is_well() {
    let place = Place::new(CONFIG);
    place.accept_due("email", 1..4, HOUR);
    let said = place.run("doctor");
    assert_eq!((said.err.as_str(), said.code), ("", Some(0)), "{}", said.out);
    assert!(said.out.starts_with("sqlite:store.db\n"), "{}", said.out);
    assert!(said.out.ends_with("all is well\n"), "{}", said.out);
    assert!(lines(&said, "ok", "route")[0].contains("email: 3 waiting (0 due, 0 parked)"), "{}", said.out);
    assert!(lines(&said, "ok", "engine")[0].contains("none is running, and nothing is due"), "{}", said.out);
    for what in ["config", "store", "disk", "integrity", "due"] {
        assert_eq!(lines(&said, "ok", what).len(), 1, "{what} in {}", said.out);
    }
}

#[test]
fn due_messages_that_nobody_carries_are_a_problem() {
    let place = Place::new(CONFIG);
    place.accept("email", 1..2);
    let said = place.run("doctor");
    assert_eq!(said.code, Some(1));
    assert!(
        lines(&said, "problem", "engine")[0].contains("none is running, and 1 message due"),
        "{}",
        said.out
    );
    assert!(said.out.contains("-> start `redeliver serve`"), "{}", said.out);
}

#[test]
fn it_works_beside_an_engine_and_after_a_crash() {
    let place = Place::new(CONFIG);
    place.accept("email", 1..2);
    let engine = place.serve();
    until("it is in the air", || place.count("claimed") == 1);
    let said = place.run("doctor");
    assert_eq!(said.code, Some(0), "{}", said.out);
    assert!(lines(&said, "ok", "engine")[0].contains("1 instance alive"), "{}", said.out);
    assert!(lines(&said, "ok", "route")[0].contains("1 claimed"), "{}", said.out);
    engine.signal(Signal::KILL);
    engine.end();
    // Its next boot forgets it; until then it is silent soon enough.
    let said = place.run("doctor");
    assert_eq!(said.code, Some(0), "{}", said.out);
}

#[test]
fn messages_of_a_route_that_the_config_has_lost_are_a_problem() {
    let place = Place::new(CONFIG);
    place.accept_due("email", 1..3, HOUR);
    let other = place.path("other.toml");
    std::fs::write(&other, CONFIG.replace("routes.email", "routes.mail")).unwrap();
    let place = place.with_variable("DATABASE_URL", "sqlite:store.db");
    let said = place.run("doctor --config other.toml");
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(lines(&said, "problem", "route")[0].contains("email: 2 waiting"), "{}", said.out);
    assert!(said.out.contains("add [routes.email]"), "{}", said.out);
    assert!(lines(&said, "ok", "route")[0].contains("mail: 0 waiting"), "{}", said.out);
}

#[test]
fn a_closed_gate_is_a_warning_and_programs_get_json() {
    let place = Place::new(CONFIG);
    let key = GateKey::pause(Scope::Route, "email");
    let record = GateRecord {
        key: key.clone(),
        version: 0,
        since: now(),
        reason: "paused by ada".into(),
        closed: Closed::Paused,
    };
    let change = GateChange { key, expected_version: 0, record: Some(record), audit: None };
    assert!(process::run(place.client().put_gate(change)).unwrap());
    place.accept_due("email", 1..2, HOUR);
    let said = place.run("doctor --json");
    assert_eq!(said.code, Some(0), "{}", said.out);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&report["level"], &report["store"]), (&"warning".into(), &"sqlite:store.db".into()));
    let findings = report["findings"].as_array().unwrap();
    let gate = findings.iter().find(|finding| finding["what"] == "gate").unwrap();
    assert_eq!(gate["level"], "warning");
    let text = gate["text"].as_str().unwrap();
    assert!(text.contains("pause:route:email") && text.contains("paused by ada"), "{text}");
    assert_eq!(
        report["counts"],
        serde_json::json!([{
            "route": "email", "lane": "medium", "state": "waiting", "reason": null,
            "count": 1, "due": 0, "parked": 0
        }])
    );
}

#[test]
fn a_missing_file_is_a_problem_and_stays_missing() {
    let place = Place::new(CONFIG);
    let said = place.run("doctor");
    assert_eq!(said.code, Some(1));
    assert!(lines(&said, "problem", "store")[0].contains("there is no file store.db"), "{}", said.out);
    assert!(!place.path("store.db").exists());
}

#[test]
fn a_file_without_a_store_is_left_as_it_is() {
    let place = Place::new(CONFIG);
    std::fs::write(place.path("store.db"), "").unwrap();
    let said = place.run("doctor");
    assert_eq!(said.code, Some(1));
    assert!(lines(&said, "problem", "store")[0].contains("there is no store in it yet"), "{}", said.out);
    assert_eq!(std::fs::read(place.path("store.db")).unwrap(), b"");
}

#[test]
fn a_damaged_file_is_a_problem_with_advice() {
    let damage = |which: fn(&[u8]) -> Range<usize>| {
        let place = Place::new(CONFIG);
        place.accept_due("email", 1..400, HOUR);
        let mut bytes = std::fs::read(place.path("store.db")).unwrap();
        let range = which(&bytes);
        bytes[range].fill(0xa5);
        std::fs::write(place.path("store.db"), bytes).unwrap();
        let said = place.run("doctor");
        assert_eq!(said.code, Some(1), "{}", said.out);
        assert!(said.out.contains("restore a backup"), "{}", said.out);
        said
    };
    let header = damage(|_| 0..100);
    assert!(lines(&header, "problem", "store")[0].contains("not a database"), "{}", header.out);
    // A page with what messages carry.
    let pages = damage(|bytes| {
        let body = bytes.windows(BODY.len()).position(|bytes| bytes == BODY.as_bytes()).unwrap();
        let page = body / 4_096 * 4_096;
        page..page + 4_096
    });
    assert_eq!(lines(&pages, "problem", "integrity").len(), 1, "{}", pages.out);
}
