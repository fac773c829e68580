//! `redeliver serve` as a real process: what it carries, how it ends, and what a crash leaves behind.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use process::{BODY, Place, Signal, until};
use redeliver_core::State;
use redeliver_core::attempt::Verdict;
use redeliver_engine::store::Store;

/// A config with one route over a script. Nothing but a wake-up can be in time: it polls once an hour.
fn config(script: &str, more: &str) -> String {
    format!(
        r#"
[engine]
poll_interval = "1h"
{more}

[transports.script]
kind = "scripted"
{script}

[policies.quick]
backoff = ["50ms"]
max_attempts = 3

[routes.email]
transport = "script"
policy = "quick"
"#
    )
}

#[test]
fn what_is_there_and_what_comes_while_it_runs_is_carried() {
    let place = Place::new(&config(r#"script = ["fail 451 try later", "deliver"]"#, ""));
    place.accept("email", 1..4);
    let engine = place.serve();
    until("what was there is delivered", || place.count("delivered") == 3);
    place.accept("email", 4..6);
    until("what came is delivered", || place.count("delivered") == 5);
    for number in 1..6 {
        let message = place.message(number);
        assert_eq!(message.attempts, 2, "{number}");
        let history = process::run(place.client().attempts(message.id)).unwrap();
        assert_eq!(history.iter().map(|record| record.verdict).collect::<Vec<_>>(), [Verdict::Failed]);
    }
    engine.signal(Signal::TERM);
    let (status, log) = engine.end();
    assert_eq!(status.code(), Some(0), "{log}");
    for words in [
        "serving 1 route from sqlite:store.db",
        "route email: by script, policy quick",
        "attempt failed",
        "stopped",
    ] {
        assert!(log.contains(words), "{words} in:\n{log}");
    }
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}

#[test]
fn a_signal_lets_what_is_in_the_air_finish_and_takes_nothing_new() {
    let place = Place::new(&config(r#"latency = "3s""#, ""))
        .with_variable("REDELIVER_ROUTES__EMAIL__ON_LOST", "hold");
    place.accept("email", 1..2);
    let engine = place.serve();
    until("it is in the air", || place.is_started(1));
    engine.signal(Signal::INT);
    engine.logs("stopping");
    place.accept("email", 2..3);
    let (status, log) = engine.end();
    assert_eq!(status.code(), Some(0), "{log}");
    assert_eq!(place.message(1).state.name(), "delivered");
    assert_eq!((place.message(2).state.name(), place.message(2).attempts), ("waiting", 0));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let place = Place::new(&config(r#"script = ["hang"]"#, ""));
    place.accept("email", 1..2);
    let engine = place.serve();
    until("it is in the air", || place.count("claimed") == 1);
    engine.signal(Signal::TERM);
    engine.logs("stopping");
    engine.signal(Signal::TERM);
    let (status, log) = engine.end();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("ended at once by a second signal (SIGTERM)"), "{log}");
    assert_eq!(place.message(1).state.name(), "claimed");
}

#[test]
fn a_drain_that_takes_too_long_is_no_clean_end() {
    let place = Place::new(&config(r#"script = ["hang"]"#, r#"drain_timeout = "100ms""#))
        .with_variable("REDELIVER_ROUTES__EMAIL__ON_LOST", "hold");
    place.accept("email", 1..2);
    let engine = place.serve();
    until("it is in the air", || place.is_started(1));
    engine.signal(Signal::TERM);
    let (status, log) = engine.end();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("1 message still in the air when drain_timeout was over"), "{log}");
}

#[test]
fn after_a_kill_nothing_is_lost_and_nobody_waits_for_the_leases() {
    // Only what was lost once gets past the first step.
    let place = Place::new(&config(r#"script = ["hang", "deliver"]"#, ""));
    place.accept("email", 1..6);
    let engine = place.serve();
    until("they are in the air", || place.count("claimed") == 5);
    engine.signal(Signal::KILL);
    let (status, _) = engine.end();
    assert_eq!(status.code(), None);
    assert_eq!(place.count("claimed"), 5, "with a worker that is gone");
    let killed_at = process::now();
    let engine = place.serve();
    until("all are delivered", || place.count("delivered") == 5);
    for number in 1..6 {
        let message = place.message(number);
        assert_eq!((message.attempts, message.losses, message.possible_duplicates), (1, 1, 1), "{number}");
        let State::Delivered { at, .. } = message.state else { panic!("{:?}", message.state) };
        assert!(at.since(killed_at).as_secs() < 60, "nobody waited for the end of a lease");
    }
    engine.signal(Signal::TERM);
    assert_eq!(engine.end().0.code(), Some(0));
}

#[test]
fn a_second_engine_is_refused_and_told_what_to_do() {
    let place = Place::new(&config("", ""));
    let engine = place.serve();
    let said = place.run("serve");
    assert_eq!(said.code, Some(1));
    for words in
        ["cannot open store sqlite:store.db", "another redeliver is running on it", "stop that one first"]
    {
        assert!(said.err.contains(words), "{}", said.err);
    }
    engine.signal(Signal::TERM);
    assert_eq!(engine.end().0.code(), Some(0));
}

#[test]
fn json_logs_are_one_object_a_line_and_show_no_content() {
    let place = Place::new(&config(r#"script = ["panic", "fail 451 later", "deliver"]"#, ""))
        .with_variable("REDELIVER_LOG__FORMAT", "json")
        .with_variable("REDELIVER_LOG__FILTER", "trace")
        .with_variable("REDELIVER_STORE__DURABILITY", "relaxed");
    place.accept("email", 1..2);
    let engine = place.serve();
    until("it is delivered", || place.count("delivered") == 1);
    engine.signal(Signal::TERM);
    let (status, log) = engine.end();
    assert_eq!(status.code(), Some(0), "{log}");
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let level =
        |event: &str| lines.iter().find(|line| line["event"] == event).map(|line| line["level"].clone());
    for (event, expected) in [
        ("engine.started", "INFO"),
        ("store.doubted", "WARN"),
        ("process.panicked", "ERROR"),
        ("attempt.failed", "INFO"),
        ("message.delivered", "DEBUG"),
        ("engine.stopped", "INFO"),
    ] {
        assert_eq!(level(event), Some(expected.into()), "{event} in:\n{log}");
    }
    assert!(!log.contains(BODY), "{log}");
}

#[test]
fn what_is_no_store_is_refused_without_its_password() {
    let place = Place::new(&config("", "")).with_variable("DATABASE_URL", "mysql://ada:secret@db");
    let said = place.run("serve");
    assert_eq!(said.code, Some(2));
    assert!(
        said.err.contains("stores are sqlite:PATH, postgres://… and memory:, not mysql:"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("secret"), "{}", said.err);
}

#[test]
fn messages_in_memory_are_warned_of() {
    let place = Place::new(&config("", "")).with_variable("DATABASE_URL", "memory:");
    let engine = place.serve();
    engine.logs("THE STORE IS IN MEMORY");
    engine.signal(Signal::TERM);
    assert_eq!(engine.end().0.code(), Some(0));
}

#[test]
fn without_a_command_there_is_help() {
    let said = Place::new("").run("");
    assert_eq!(said.code, Some(2));
    for verb in ["serve", "demo", "check", "policy", "doctor"] {
        assert!(said.err.contains(&format!("  {verb} ")), "{}", said.err);
    }
}
