//! `redeliver serve` between the streams of a Redis server: what comes to one goes to others and is reported on by a third,
//! whatever happens in between.
#![cfg(feature = "redis")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use std::collections::BTreeSet;

use process::{Place, Signal, until};
use redeliver_servers::redis::RedisServer;

const FAILED: &str = "notifications.failed";
const REPORTS: &str = "notifications.reports";
const PRIORITIES: [&str; 4] = ["critical", "high", "medium", "low"];

/// From one stream to four, all that fails to be tried again at once.
fn place(server: &RedisServer, on_confirm: &str) -> Place {
    let url = server.url();
    Place::new(&format!(
        r#"
[engine]
poll_interval = "100ms"

[transports.redis]
kind = "redis"
url = "{url}"
on_confirm = "{on_confirm}"

[transports.script]
kind = "scripted"

[policies.quick]
backoff = ["50ms"]
max_attempts = 5

[routes.notification]
transport = "redis"
target = "notifications.retry.{{priority}}"
policy = "quick"

[routes.unreadable]
transport = "script"
policy = "quick"

[intakes.redis]
kind = "redis"
url = "{url}"
stream = "{FAILED}"
rejects = "unreadable"
claim_after = "1s"

[intakes.redis-reports]
kind = "redis"
url = "{url}"
takes = "reports"
stream = "{REPORTS}"
rejects = "unreadable"
claim_after = "1s"
"#
    ))
}

/// The n-th failed notification, as whoever failed to send it tells.
fn failed(n: usize) -> String {
    let priority = PRIORITIES[n % 4];
    format!(
        r#"{{"route":"notification","key":"n-{n}","priority":"{priority}","attempts":1,"error":"503",
            "attributes":{{"device_id":"d-{n}"}},"payload":{{"n":{n}}}}}"#
    )
}

fn put(server: &RedisServer, bodies: &[String]) {
    for body in bodies {
        server.say(&["XADD", FAILED, "*", "message", body]);
    }
}

/// The fields of everything in the four streams.
fn arrived(server: &RedisServer) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for priority in PRIORITIES {
        let entries = server.say(&["XRANGE", &format!("notifications.retry.{priority}"), "-", "+"]);
        let lines: Vec<&str> = entries.lines().collect();
        let value = |at: usize, name: &str| {
            let field = lines[at..].iter().position(|line| *line == name).unwrap();
            lines[at + field + 1].to_owned()
        };
        let ends = lines.iter().enumerate().filter(|(_, line)| **line == "attempt_id");
        all.extend(ends.map(|(at, _)| (value(at, "attempt_id"), value(at, "payload"))));
    }
    all
}

fn pending(server: &RedisServer) -> String {
    let words = server.say(&["XPENDING", FAILED, "redeliver"]);
    words.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn what_comes_to_a_stream_goes_to_that_of_its_priority_and_what_nobody_can_read_is_dead() {
    let server = RedisServer::start();
    let place = place(&server, "delivered");
    let engine = place.serve();
    let mut bodies: Vec<String> = (0..8).map(failed).collect();
    bodies.push("no JSON".to_owned());
    bodies.push(r#"{"route":"nowhere","payload":1}"#.to_owned());
    bodies.push(r#"{"route":"notification","payload":1,"atempts":2}"#.to_owned());
    // Said twice is one message.
    bodies.push(failed(3));
    put(&server, &bodies);
    let fields =
        ["route", "notification", "key", "n-8", "priority", "low", "attempts", "1", "payload", "{\"n\":8}"];
    server.say(&[&["XADD", FAILED, "*"], &fields[..]].concat());
    until("all are settled", || place.count("delivered") == 9 && place.count("dead") == 3);
    until("all are acknowledged", || pending(&server) == "0");
    let payloads: BTreeSet<String> = arrived(&server).into_iter().map(|(_, payload)| payload).collect();
    assert_eq!(payloads, (0..9).map(|n| format!("{{\"n\":{n}}}")).collect());
    engine.signal(Signal::TERM);
    let (status, log) = engine.end();
    assert_eq!(status.code(), Some(0), "{log}");
    let dead = place.run("list --status dead");
    for words in ["not JSON", "no route nowhere", "atempts"] {
        assert!(dead.out.contains(words), "{words} in {}{}", dead.out, dead.err);
    }
}

#[test]
fn reports_that_come_to_a_stream_end_what_was_handed_off() {
    let server = RedisServer::start();
    let place = place(&server, "handed_off");
    let _engine = place.serve();
    put(&server, &(0..4).map(failed).collect::<Vec<_>>());
    until("all are handed off", || place.count("handed_off") == 4);
    let first = arrived(&server);
    let report = |attempt: &str, outcome: &str| {
        server.say(&["XADD", REPORTS, "*", "attempt_id", attempt, "outcome", outcome, "error", "as it goes"]);
    };
    for ((attempt, _), outcome) in first.iter().zip(["delivered", "delivered", "failed", "refused"]) {
        report(attempt, outcome);
    }
    until("two are delivered", || place.count("delivered") == 2);
    until("one is dead", || place.count("dead") == 1);
    // The one that failed goes out again, as another try. Reports on the first change nothing.
    until("one goes out again", || arrived(&server).len() == 5);
    let known: BTreeSet<&String> = first.iter().map(|(attempt, _)| attempt).collect();
    let second = arrived(&server).into_iter().find(|(attempt, _)| !known.contains(attempt)).unwrap().0;
    report(&first[2].0, "refused");
    server.say(&["XADD", REPORTS, "*", "message", "no report"]);
    report(&second, "delivered");
    until("three are delivered", || place.count("delivered") == 3);
    until("what is no report is kept", || place.count("dead") == 2);
}

#[test]
fn a_server_that_is_killed_and_an_engine_that_is_killed_lose_nothing() {
    let mut server = RedisServer::start();
    let place = place(&server, "delivered");
    let engine = place.serve();
    put(&server, &(0..100).map(failed).collect::<Vec<_>>());
    until("some have gone out", || place.count("delivered") > 0);
    server.kill();
    drop(engine);
    let engine = place.serve();
    engine.logs("cannot be read");
    server.resume();
    put(&server, &(100..200).map(failed).collect::<Vec<_>>());
    until("all are delivered", || place.count("delivered") == 200);
    let payloads: BTreeSet<String> = arrived(&server).into_iter().map(|(_, payload)| payload).collect();
    assert_eq!(payloads.len(), 200);
    // What is taken and delivered stays so when Redis loses everything, and what comes next is taken too.
    server.flush();
    put(&server, &(200..210).map(failed).collect::<Vec<_>>());
    until("the next are delivered", || place.count("delivered") == 210);
    assert_eq!(place.count("dead"), 0);
}
