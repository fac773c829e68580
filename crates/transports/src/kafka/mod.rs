//! Writes to the topics of a Kafka cluster, and takes what comes to them.

mod classify;
mod client;
mod config;
mod inbound;
mod outbound;
mod reader;
mod record;

pub use classify::{INVALID, UNROUTABLE};
pub use config::{Brokers, ClusterConfig, Compression, KafkaConfig, Mechanism, OnConfirm, Secret};
pub use inbound::{KafkaIntake, KafkaIntakeConfig, Taker, Takes};
pub use outbound::{KafkaTransport, UNCONFIGURED};
pub use record::{NAME_HEADER, REPEAT_HEADER, check_topic};
