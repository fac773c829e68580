//! A cluster, a transport that writes to its topics, and an intake that reads them.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../carrying/mod.rs"]
mod carrying;

use std::sync::Arc;

use bytes::Bytes;
pub use carrying::*;
use redeliver_core::accept::NewMessage;
use redeliver_core::{Content, Timestamp};
use redeliver_engine::bring::Bring;
use redeliver_engine::clock::WallClock;
use redeliver_engine::hear::Hear;
use redeliver_servers::kafka::KafkaCluster;
use redeliver_transports::kafka::{
    Brokers, ClusterConfig, KafkaConfig, KafkaIntake, KafkaIntakeConfig, KafkaTransport, Takes,
};

/// The topic that intakes take from.
pub const SOURCE: &str = "source";
/// The group that they are in.
pub const GROUP: &str = "readers";
/// What nobody can make a message of.
pub const POISON: &[u8] = b"\x07garbage";

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
    intake_within("source", cluster, KafkaIntakeConfig::default())
}

/// The same under another name, within limits of the story's own.
pub fn intake_within(name: &'static str, cluster: &KafkaCluster, limits: KafkaIntakeConfig) -> KafkaIntake {
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
        ..limits
    };
    let bring = Bring {
        name: name.into(),
        read: Arc::new(read),
        rejects: config.rejects.clone(),
        bytes_max: config.message_bytes_max,
        clock: clock.clone(),
    };
    KafkaIntake::new(name, config, bring, clock).unwrap()
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
    KafkaIntake::new("reports", config, Hear::new(bring, None), clock).unwrap()
}
