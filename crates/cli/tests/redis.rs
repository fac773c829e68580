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

/// Two servers whose streams have the same name, and two intakes: one for each.
fn two_regions(east: &RedisServer, west: &RedisServer) -> Place {
    let intake = |name: &str, url: &str| {
        format!(
            "[intakes.{name}]\nkind = \"redis\"\nurl = \"{url}\"\nstream = \"{FAILED}\"\nrejects = \"unreadable\"\n"
        )
    };
    Place::new(&format!(
        r#"
[engine]
poll_interval = "100ms"

[transports.redis]
kind = "redis"
url = "{}"

[policies.quick]
backoff = ["50ms"]
max_attempts = 5

[routes.notification]
transport = "redis"
target = "notifications.retry.medium"
policy = "quick"

[routes.unreadable]
transport = "redis"
target = "notifications.retry.low"
policy = "quick"

{}{}"#,
        east.url(),
        intake("east", &east.url()),
        intake("west", &west.url())
    ))
}

#[test]
fn entries_of_two_servers_with_the_same_id_are_two_messages_each() {
    let (east, west) = (RedisServer::start(), RedisServer::start());
    let place = two_regions(&east, &west);
    let engine = place.serve();
    let body = |n: &str| format!(r#"{{"route":"notification","payload":"{n}"}}"#);
    // Ids are milliseconds: two servers give the same one to entries that have nothing to do with each other.
    east.say(&["XADD", FAILED, "1700000000001-0", "message", &body("from the east")]);
    until("the first is delivered", || place.count("delivered") == 1);
    west.say(&["XADD", FAILED, "1700000000001-0", "message", &body("from the west")]);
    // The same words, said by two people.
    for server in [&east, &west] {
        server.say(&["XADD", FAILED, "1700000000002-0", "message", &body("the same")]);
    }
    // And what nobody can read.
    for server in [&east, &west] {
        server.say(&["XADD", FAILED, "1700000000003-0", "message", "no JSON"]);
    }
    until("all are acknowledged", || pending(&east) == "0" && pending(&west) == "0");
    until("all are settled", || place.count("delivered") == 4 && place.count("dead") == 2);
    let mut payloads: Vec<String> = arrived(&east).into_iter().map(|(_, payload)| payload).collect();
    payloads.sort();
    let expected = ["\"from the east\"", "\"from the west\"", "\"the same\"", "\"the same\""];
    assert_eq!(payloads, expected);
    let (_, log) = (engine.signal(Signal::TERM), engine.end().1);
    assert!(!log.contains("intake.dropped"), "{log}");
}

#[test]
fn an_entry_with_the_id_of_another_is_kept_as_dead() {
    let mut server = RedisServer::start();
    let place = place(&server, "delivered");
    let engine = place.serve();
    let body = |n: usize| format!(r#"{{"route":"notification","payload":{n}}}"#);
    server.say(&["XADD", FAILED, "7-1", "message", &body(1)]);
    until("the first is delivered", || place.count("delivered") == 1);
    // A server that lost what it had gives the same id again.
    server.flush();
    server.say(&["XADD", FAILED, "7-1", "message", &body(2)]);
    until("the second is kept", || place.count("dead") == 1);
    server.flush();
    server.say(&["XADD", FAILED, "7-1", "message", "no JSON"]);
    until("the third is kept", || place.count("dead") == 2);
    until("all are acknowledged", || pending(&server) == "0");
    server.kill();
    let (_, log) = (engine.signal(Signal::TERM), engine.end().1);
    assert!(!log.contains("intake.dropped"), "{log}");
}
