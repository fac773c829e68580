//! Measures how fast messages go to a Kafka cluster: by this transport, and beside it by the bare client that it stands on, the
//! same records with the same settings, in turns, against the same cluster. `kafka [MESSAGES] [ROUNDS]`
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that cannot go on has failed")]

mod measured;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use measured::{BODY_BYTES, WITHIN, carried, per_second};
use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use redeliver_conformance::make;
use redeliver_core::{AttemptId, Content, Timestamp};
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_servers::kafka::KafkaCluster;
use redeliver_transports::kafka::{Brokers, ClusterConfig, KafkaConfig, KafkaTransport, NAME_HEADER};

/// Carryings in the air at once.
const WINDOW: usize = 4_096;
const TOPIC: &str = "measured";

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|word| word.parse().unwrap()).collect();
    let messages = numbers.first().copied().unwrap_or(200_000);
    let rounds = numbers.get(1).copied().unwrap_or(3);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for round in 1..=rounds {
        // The cluster keeps everything in memory, so each has a new one.
        let ours = runtime.block_on(ours(messages));
        let bare = bare(messages);
        println!("round {round}: ours {ours:.0}/s, bare {bare:.0}/s, ratio {:.2}", ours / bare);
    }
}

fn cluster() -> KafkaCluster {
    let cluster = KafkaCluster::start();
    cluster.make_topic(TOPIC, 4);
    cluster
}

async fn ours(messages: usize) -> f64 {
    let cluster = cluster();
    let brokers = Brokers::parse(cluster.brokers()).ok();
    let config = KafkaConfig {
        cluster: ClusterConfig { brokers, ..ClusterConfig::default() },
        delivery_timeout: WITHIN,
        ..KafkaConfig::default()
    };
    let clock = WallClock::new(Timestamp::default());
    let transport = KafkaTransport::new("kafka", config, clock.clone()).unwrap();
    let content = Content {
        attributes: BTreeMap::from([("device_id".to_owned(), "d-1".to_owned())]),
        target: Some(TOPIC.into()),
        content_type: Some("application/json".into()),
        ..Content::of_bytes(vec![b'x'; BODY_BYTES])
    };
    carried(&transport, &content, WINDOW, messages, &clock).await
}

/// Counts what has arrived.
struct Count(Arc<AtomicUsize>);

impl ClientContext for Count {}

impl ProducerContext for Count {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        assert!(result.is_ok(), "it did not arrive");
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn bare(messages: usize) -> f64 {
    let cluster = cluster();
    let mut settings = ClientConfig::new();
    settings.set("bootstrap.servers", cluster.brokers());
    settings.set("enable.idempotence", "true").set("acks", "all").set("linger.ms", "5");
    settings.set("partitioner", "murmur2_random");
    let arrived = Arc::new(AtomicUsize::new(0));
    let producer = ThreadedProducer::from_config_and_context(&settings, Count(Arc::clone(&arrived))).unwrap();
    let message = make::message(1);
    let (id, name) = (message.id.to_string(), AttemptId::of(&message).to_string());
    let body = vec![b'x'; BODY_BYTES];
    let clock = WallClock::new(Timestamp::default());
    let send = || {
        let headers = [
            ("id", id.as_str()),
            ("attempt_id", name.as_str()),
            ("priority", message.lane.name()),
            (NAME_HEADER, name.as_str()),
            ("content-type", "application/json"),
        ];
        let headers = headers
            .into_iter()
            .fold(OwnedHeaders::new(), |all, (key, value)| all.insert(Header { key, value: Some(value) }));
        producer.send(BaseRecord::to(TOPIC).payload(&body).key("d-1").headers(headers)).is_ok()
    };
    assert!(send());
    producer.flush(WITHIN).unwrap();
    let began = clock.uptime();
    for _ in 0..messages {
        while !send() {
            // Its queue is full.
            std::thread::yield_now();
        }
    }
    producer.flush(WITHIN).unwrap();
    assert_eq!(arrived.load(Ordering::Relaxed), messages + 1);
    per_second(messages, &clock, began)
}
