//! Queues of RabbitMQ over a network that fails: messages published to them, and taken from them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redeliver_servers::proxy::Way;
use redeliver_servers::rabbitmq::RabbitmqServer;
use serde_json::json;

use crate::faults::{Kind, Lane, Subject, fail_all, inbound, outbound, wait_for};
use crate::story::broker::{Arrivals, Peer, consumer};

/// In the middle of a message's frames and of a confirm.
const OUTBOUND_CUTS: [(Way, usize); 5] =
    [(Way::Up, 1), (Way::Up, 40), (Way::Up, 150), (Way::Down, 1), (Way::Down, 10)];
/// In the middle of an acknowledgement and of a message's frames.
const INBOUND_CUTS: [(Way, usize); 5] =
    [(Way::Up, 1), (Way::Up, 15), (Way::Down, 1), (Way::Down, 60), (Way::Down, 200)];

/// A broker whose heartbeats are late is silent for less than twice their time.
const DELAY: Duration = Duration::from_secs(6);

/// Where the lane's broker is, and how long it may be silent.
fn broker(lane: &Lane) -> String {
    let timeout = lane.kind.timeout();
    // After twice as long a broker is gone.
    let heartbeat = if lane.kind == Kind::BlackHole { "1s" } else { "5s" };
    format!(
        "kind = \"rabbitmq\"\nurl = \"amqp://guest:guest@127.0.0.1:{}\"\nconnect_timeout = \"{timeout}\"\nheartbeat = \"{heartbeat}\"\n",
        lane.proxy.port()
    )
}

fn publisher(lane: &Lane) -> String {
    format!("{}confirm_timeout = \"{}\"\n", broker(lane), lane.kind.timeout())
}

fn queue(lane: &Lane) -> String {
    let name = lane.kind.name();
    format!("{}queue = \"{name}\"\nroute = \"{name}\"\nrejects = \"{name}\"\n", broker(lane))
}

#[test]
fn messages_to_rabbitmq_end_with_few_copies_whatever_the_network_does() {
    let server = RabbitmqServer::start();
    let lanes = Lane::all(server.port(), &OUTBOUND_CUTS, DELAY);
    let subject = Subject::start(&outbound(&lanes, true, publisher));
    let out = subject.place.path("arrived");
    let queues = Kind::ALL.map(Kind::name).join(",");
    let _consumer = consumer(&server.url(), &queues, &out, &[]);
    let mut arrivals = Arrivals::of(&out);
    let message = |lane: &Lane, n: usize| {
        let (name, key) = (lane.kind.name(), format!("{}-{n}", lane.kind.name()));
        json!({ "route": name, "key": key, "payload": key })
    };
    fail_all(
        &lanes,
        |lane, numbers| subject.accept(&numbers.map(|n| message(lane, n)).collect()),
        |lane, count| subject.settled(lane.kind.name(), count),
    );
    wait_for("the queues are empty", || queues_with_messages(&server).is_empty());
    let mut copies: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for line in arrivals.all() {
        let body = STANDARD.decode(line["body"].as_str().unwrap()).unwrap();
        let key = String::from_utf8(body).unwrap().trim_matches('"').to_owned();
        // The broker may bring a message twice to its consumer: that is none of our copies.
        if line["redelivered"] == false {
            let queue = line["queue"].as_str().unwrap().to_owned();
            *copies.entry(queue).or_default().entry(key).or_default() += 1;
        }
    }
    for kind in Kind::ALL {
        subject.judge(kind.name(), &copies[kind.name()]);
    }
    subject.end();
}

/// The queues that are not empty, messages that nobody has acknowledged included.
fn queues_with_messages(server: &RabbitmqServer) -> Vec<String> {
    let said = server.control(&["--quiet", "list_queues", "--no-table-headers", "name", "messages"]);
    said.lines().filter(|line| !line.trim().is_empty() && !line.ends_with("\t0")).map(str::to_owned).collect()
}

#[test]
fn what_was_acknowledged_to_rabbitmq_is_stored_once_whatever_the_network_does() {
    let server = RabbitmqServer::start();
    let lanes = Lane::all(server.port(), &INBOUND_CUTS, DELAY);
    let subject = Subject::start(&inbound(&lanes, queue));
    for kind in Kind::ALL {
        subject.process.logs(&format!("taking what comes to the queue {} of", kind.name()));
    }
    // Programs of their own, of which this machine can't start any number at once.
    let turn = Mutex::new(());
    fail_all(
        &lanes,
        |lane, numbers| {
            let _turn = turn.lock().unwrap();
            let (first, count) = (numbers.start.to_string(), numbers.len().to_string());
            let what =
                ["publish", "--url", &server.url(), "--queue", lane.kind.name(), "--to", lane.kind.name()];
            Peer::start(&[&what[..], &["--first", &first, "--count", &count]].concat()).says("published");
        },
        // Each message that was published is stored: none was acknowledged and forgotten.
        |lane, count| subject.settled(lane.kind.name(), count),
    );
    wait_for("everything is acknowledged", || queues_with_messages(&server).is_empty());
    for kind in Kind::ALL {
        let messages = subject.messages(kind.name());
        for message in &messages {
            assert_eq!((message.state.name(), message.attempts), ("delivered", 2), "{message:?}");
        }
        println!("{}: {} messages taken", kind.name(), messages.len());
    }
    subject.end();
}
