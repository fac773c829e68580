//! `redeliver serve` between the topics of a Kafka cluster: what comes to one goes to others, whatever happens in between.
#![cfg(feature = "kafka")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use std::collections::BTreeSet;

use process::{Place, Signal, until};
use redeliver_servers::kafka::{KafkaCluster, Record};

const FAILED: &str = "notifications.failed";
const TOPICS: [&str; 4] = [
    "notifications.retry.critical",
    "notifications.retry.high",
    "notifications.retry.medium",
    "notifications.retry.low",
];

fn cluster() -> KafkaCluster {
    let cluster = KafkaCluster::start();
    for topic in TOPICS.iter().chain(&[FAILED]) {
        cluster.make_topic(topic, 2);
    }
    cluster
}

/// From one topic to four, all that fails to be tried again at once.
fn place(cluster: &KafkaCluster) -> Place {
    let brokers = cluster.brokers();
    Place::new(&format!(
        r#"
[engine]
poll_interval = "100ms"

[transports.kafka]
kind = "kafka"
brokers = "{brokers}"
delivery_timeout = "1500ms"

[transports.script]
kind = "scripted"

[policies.quick]
backoff = ["50ms"]
max_attempts = 5

[routes.notification]
transport = "kafka"
target = "notifications.retry.{{priority}}"
policy = "quick"
lease = "6s"
send_timeout = "8s"

[routes.unreadable]
transport = "script"
policy = "quick"

[intakes.kafka]
kind = "kafka"
brokers = "{brokers}"
topic = "{FAILED}"
rejects = "unreadable"
"#
    ))
}

/// The n-th failed notification, as whoever failed to send it reports it.
fn failed(n: usize) -> String {
    let priority = ["critical", "high", "medium", "low"][n % 4];
    format!(
        r#"{{"route":"notification","key":"n-{n}","priority":"{priority}","attempts":1,"error":"503",
            "attributes":{{"device_id":"d-{n}"}},"payload":{{"n":{n}}}}}"#
    )
}

fn put(cluster: &KafkaCluster, bodies: &[String]) {
    let records: Vec<_> = bodies.iter().map(|body| (None, body.as_bytes())).collect();
    cluster.put_all(FAILED, &records);
}

fn arrived(cluster: &KafkaCluster) -> Vec<Record> {
    TOPICS.iter().flat_map(|topic| cluster.records(topic)).collect()
}

#[test]
fn what_comes_to_a_topic_goes_to_that_of_its_priority_and_what_nobody_can_read_is_dead() {
    let cluster = cluster();
    let place = place(&cluster);
    let engine = place.serve();
    let mut bodies: Vec<String> = (0..8).map(failed).collect();
    bodies.push("no JSON".to_owned());
    bodies.push(r#"{"route":"nowhere","payload":1}"#.to_owned());
    bodies.push(r#"{"route":"notification","payload":1,"atempts":2}"#.to_owned());
    // Said twice is one message.
    bodies.push(failed(3));
    put(&cluster, &bodies);
    until("all are settled", || place.count("delivered") == 8 && place.count("dead") == 3);
    until("all are committed", || cluster.committed("redeliver", FAILED) == 12);
    for (priority, topic) in ["critical", "high", "medium", "low"].iter().zip(TOPICS) {
        for record in cluster.records(topic) {
            assert_eq!(record.header("priority"), Some(*priority));
            let n = String::from_utf8(record.key.clone().unwrap()).unwrap().replace("d-", "");
            assert_eq!(String::from_utf8(record.bytes.clone()).unwrap(), format!("{{\"n\":{n}}}"));
            assert_eq!(record.header("content-type"), Some("application/json"));
        }
    }
    assert_eq!(arrived(&cluster).len(), 8);
    engine.signal(Signal::TERM);
    let (status, log) = engine.end();
    assert_eq!(status.code(), Some(0), "{log}");
    let dead = place.run("list --status dead");
    for words in ["not JSON", "no route nowhere", "atempts is unknown"] {
        assert!(dead.out.contains(words), "{words} in {}{}", dead.out, dead.err);
    }
}

#[test]
fn brokers_that_go_and_a_server_that_is_killed_lose_nothing() {
    let cluster = cluster();
    let place = place(&cluster);
    let engine = place.serve();
    put(&cluster, &(0..200).map(failed).collect::<Vec<_>>());
    until("some have gone out", || place.count("delivered") > 0);
    cluster.take_down();
    drop(engine);
    let engine = place.serve();
    // Without a broker, nothing comes and nothing goes.
    engine.logs("taking what comes to the topic");
    cluster.bring_up();
    put(&cluster, &(200..400).map(failed).collect::<Vec<_>>());
    until("all are delivered", || place.count("delivered") == 400);
    let devices: BTreeSet<Vec<u8>> = arrived(&cluster).into_iter().filter_map(|record| record.key).collect();
    assert_eq!(devices.len(), 400);
    assert_eq!(place.count("dead"), 0);
}
