//! Streams of Redis over a network that fails: messages written to them, and taken from them.

use std::collections::BTreeMap;
use std::time::Duration;

use redeliver_servers::proxy::Way;
use redeliver_servers::redis::RedisServer;
use serde_json::json;

use crate::faults::{Kind, Lane, Subject, fail_all, inbound, outbound, wait_for};

/// In the middle of a command and of its answer.
const CUTS: [(Way, usize); 5] =
    [(Way::Up, 1), (Way::Up, 40), (Way::Up, 150), (Way::Down, 1), (Way::Down, 10)];

/// Where the lane's server is, and how long it may be silent.
fn redis(lane: &Lane) -> String {
    let (timeout, port) = (lane.kind.timeout(), lane.proxy.port());
    format!(
        "kind = \"redis\"\nurl = \"redis://127.0.0.1:{port}\"\nconnect_timeout = \"{timeout}\"\n\
         reply_timeout = \"{timeout}\"\n"
    )
}

fn stream(lane: &Lane) -> String {
    let name = lane.kind.name();
    format!("{}stream = \"{name}\"\nrejects = \"{name}\"\n", redis(lane))
}

/// The values of the field `payload` in a stream, and how often each is there.
fn copies(server: &RedisServer, stream: &str) -> BTreeMap<String, usize> {
    let entries = server.say(&["XRANGE", stream, "-", "+"]);
    let lines: Vec<&str> = entries.lines().collect();
    let mut copies = BTreeMap::new();
    for pair in lines.windows(2).filter(|pair| pair[0] == "payload") {
        *copies.entry(pair[1].trim_matches('"').to_owned()).or_default() += 1;
    }
    copies
}

#[test]
fn messages_to_redis_end_with_few_copies_whatever_the_network_does() {
    let server = RedisServer::start();
    let lanes = Lane::all(server.port(), &CUTS, Duration::from_secs(3));
    let subject = Subject::start(&outbound(&lanes, true, redis));
    let message = |lane: &Lane, n: usize| {
        let (name, key) = (lane.kind.name(), format!("{}-{n}", lane.kind.name()));
        json!({ "route": name, "key": key, "payload": key })
    };
    fail_all(
        &lanes,
        |lane, numbers| subject.accept(&numbers.map(|n| message(lane, n)).collect()),
        |lane, count| subject.settled(lane.kind.name(), count),
    );
    for kind in Kind::ALL {
        subject.judge(kind.name(), &copies(&server, kind.name()));
    }
    subject.end();
}

/// How many entries of a stream the intake has acknowledged.
fn acknowledged(server: &RedisServer, stream: &str) -> usize {
    let groups = server.say(&["XINFO", "GROUPS", stream]);
    let lines: Vec<&str> = groups.lines().collect();
    let value = |name: &str| {
        let at = lines.iter().position(|line| *line == name)?;
        lines.get(at + 1)?.parse::<usize>().ok()
    };
    value("entries-read").unwrap_or_default().saturating_sub(value("pending").unwrap_or_default())
}

#[test]
fn what_was_acknowledged_to_redis_is_stored_once_whatever_the_network_does() {
    let server = RedisServer::start();
    let lanes = Lane::all(server.port(), &CUTS, Duration::from_secs(3));
    let subject = Subject::start(&inbound(&lanes, stream));
    fail_all(
        &lanes,
        |lane, numbers| {
            let name = lane.kind.name();
            for n in numbers {
                let body = json!({ "route": name, "payload": format!("{name}-{n}") }).to_string();
                server.say(&["XADD", name, "*", "message", &body]);
            }
        },
        |lane, count| {
            let name = lane.kind.name();
            // Asked for in this order: what is acknowledged by then was stored before.
            let stands = || (acknowledged(&server, name), subject.messages(name).len());
            wait_for(&format!("{count} entries of {name} are acknowledged"), || {
                let (acknowledged, stored) = stands();
                assert!(acknowledged <= stored, "{name}: {acknowledged} acknowledged, {stored} stored");
                acknowledged == count
            });
            subject.settled(name, count);
        },
    );
    for kind in Kind::ALL {
        let messages = subject.messages(kind.name());
        for message in &messages {
            assert_eq!((message.state.name(), message.attempts), ("delivered", 1), "{message:?}");
        }
        println!("{}: {} entries taken", kind.name(), messages.len());
    }
    subject.end();
}
