//! A cluster, a transport that writes to its topics, and an intake that reads them.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redeliver_conformance::make;
use redeliver_core::accept::NewMessage;
use redeliver_core::{Content, Message, Outcome, Timestamp};
use redeliver_engine::bring::Bring;
use redeliver_engine::clock::WallClock;
use redeliver_engine::hear::Hear;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_servers::kafka::KafkaCluster;
use redeliver_transports::kafka::{
    Brokers, ClusterConfig, KafkaConfig, KafkaIntake, KafkaIntakeConfig, KafkaTransport, Takes,
};

/// Long enough for any answer that will come.
pub const WITHIN: Duration = Duration::from_secs(60);
/// The topic that intakes take from.
pub const SOURCE: &str = "source";
/// The group that they are in.
pub const GROUP: &str = "readers";
/// What nobody can make a message of.
pub const POISON: &[u8] = b"\x07garbage";

pub fn run<T>(story: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(story)
}

pub fn cluster_config(cluster: &KafkaCluster) -> ClusterConfig {
    ClusterConfig { brokers: Brokers::parse(cluster.brokers()).ok(), ..ClusterConfig::default() }
}

pub fn config(cluster: &KafkaCluster) -> KafkaConfig {
    KafkaConfig { cluster: cluster_config(cluster), delivery_timeout: WITHIN, ..KafkaConfig::default() }
}

pub fn transport(config: KafkaConfig) -> KafkaTransport {
    KafkaTransport::new("kafka", config, WallClock::new(Timestamp::default())).unwrap()
}

/// An intake that makes a message of all bytes but those of poison.
pub fn intake(cluster: &KafkaCluster) -> KafkaIntake {
    let clock: Arc<WallClock> = WallClock::new(Timestamp::default());
    let read = |bytes: &[u8]| match bytes == POISON {
        true => Err("it is poison".to_owned()),
        false => Ok(NewMessage::new("retry", Content::of_bytes(Bytes::copy_from_slice(bytes)))),
    };
    let config = KafkaIntakeConfig {
        cluster: cluster_config(cluster),
        topic: SOURCE.to_owned(),
        group: GROUP.to_owned(),
        rejects: "unreadable".into(),
        ..KafkaIntakeConfig::default()
    };
    let bring = Bring {
        name: "source".into(),
        read: Arc::new(read),
        rejects: config.rejects.clone(),
        bytes_max: config.message_bytes_max,
        clock: clock.clone(),
    };
    KafkaIntake::new("source", config, bring, clock).unwrap()
}

/// An intake of reports.
pub fn report_intake(cluster: &KafkaCluster) -> KafkaIntake {
    let clock: Arc<WallClock> = WallClock::new(Timestamp::default());
    let config = KafkaIntakeConfig {
        cluster: cluster_config(cluster),
        topic: SOURCE.to_owned(),
        takes: Takes::Reports,
        group: GROUP.to_owned(),
        ..KafkaIntakeConfig::default()
    };
    let bring = Bring {
        name: "reports".into(),
        read: Arc::new(|_| Err(String::new())),
        rejects: "unreadable".into(),
        bytes_max: config.message_bytes_max,
        clock: clock.clone(),
    };
    KafkaIntake::new("reports", config, Hear::new(bring), clock).unwrap()
}

/// Something to carry to a topic.
pub fn to(topic: &str, body: &str) -> Content {
    Content { target: Some(topic.into()), ..Content::of_bytes(body.to_owned()) }
}

/// Carries the n-th message.
pub async fn carry(transport: &dyn Transport, n: u32, content: &Content) -> Outcome {
    carry_message(transport, &make::message(n), content).await
}

pub async fn carry_message(transport: &dyn Transport, message: &Message, content: &Content) -> Outcome {
    let envelope = Envelope { message, content, target: content.target.as_deref() };
    transport.carry(&envelope, WITHIN).await
}

/// The same until it is delivered: what is put off, or lost, is tried again.
pub async fn carry_until_delivered(transport: &dyn Transport, n: u32, content: &Content) -> Outcome {
    let mut last = None;
    let trying = async {
        loop {
            match carry(transport, n, content).await {
                outcome @ (Outcome::Deferred { .. } | Outcome::Lost { .. }) => {
                    last = Some(outcome);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                other => return other,
            }
        }
    };
    let tried = tokio::time::timeout(WITHIN, trying).await;
    tried.unwrap_or_else(|_| panic!("not delivered within {WITHIN:?}: {last:?}"))
}
