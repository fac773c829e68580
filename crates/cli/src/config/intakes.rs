//! `[intakes.NAME]`: what feeds messages in, beside the API.

use std::collections::BTreeMap;

use redeliver_core::Name;
#[cfg(feature = "kafka")]
use redeliver_transports::kafka::KafkaIntakeConfig;
use redeliver_transports::rabbitmq::RabbitmqIntakeConfig;
#[cfg(feature = "redis")]
use redeliver_transports::redis::RedisIntakeConfig;

use super::problem::did_you_mean;
use super::reader::Reader;
use super::routes::RouteConfig;
use super::source::Node;
use super::transports::{broker, flag, short};

/// One intake, by its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum IntakeConfig {
    /// `kind = "kafka"`: takes what comes to a topic.
    #[cfg(feature = "kafka")]
    Kafka(Box<KafkaIntakeConfig>),
    /// `kind = "rabbitmq"`: takes what comes to a queue.
    Rabbitmq(Box<RabbitmqIntakeConfig>),
    /// `kind = "redis"`: takes what comes to a stream.
    #[cfg(feature = "redis")]
    Redis(Box<RedisIntakeConfig>),
}

/// Reads the settings of one kind.
type ReadKind = fn(&Reader<'_>, &BTreeMap<Name, RouteConfig>) -> IntakeConfig;

const KINDS: &[(&str, ReadKind)] = &[
    #[cfg(feature = "kafka")]
    ("kafka", super::kafka::intake),
    ("rabbitmq", rabbitmq),
    #[cfg(feature = "redis")]
    ("redis", super::redis::intake),
];

pub(super) fn read(reader: &Reader<'_>, routes: &BTreeMap<Name, RouteConfig>) -> IntakeConfig {
    reader.require("kind", "kind = \"rabbitmq\"");
    match reader.find("kind", |node| node.word(KINDS)) {
        Some(read) => (read.value)(reader, routes),
        None => {
            // Without its kind, none of its other keys can be called unknown.
            reader.forgive();
            IntakeConfig::Rabbitmq(Box::default())
        }
    }
}

fn rabbitmq(reader: &Reader<'_>, routes: &BTreeMap<Name, RouteConfig>) -> IntakeConfig {
    let default = RabbitmqIntakeConfig::default();
    reader.require("queue", "queue = \"retry.scheduled\"");
    reader.require("route", "route = \"NAME\" for [routes.NAME]");
    reader.require("rejects", "rejects = \"NAME\" for [routes.NAME]");
    let route = |key, default| reader.get(key, default, |node| known_route(node, routes));
    IntakeConfig::Rabbitmq(Box::new(RabbitmqIntakeConfig {
        broker: broker(reader),
        queue: reader.get("queue", default.queue, short),
        takes: default.takes,
        route: route("route", default.route),
        rejects: route("rejects", default.rejects),
        prefetch: reader.get("prefetch", default.prefetch, |node| {
            Ok(u16::try_from(node.count(1..=60_000)?).unwrap_or(u16::MAX))
        }),
        batch_max: reader.get("batch_max", default.batch_max, |node| Ok(node.count(1..=10_000)? as usize)),
        message_bytes_max: reader.get("message_bytes_max", default.message_bytes_max, |node| {
            Ok(node.count(1_024..=134_217_728)? as usize)
        }),
        in_hand_bytes_max: reader.get("in_hand_bytes_max", default.in_hand_bytes_max, in_hand_bytes),
        max_retries: reader.get("max_retries", default.max_retries, |node| node.count(1..=1_000_000)),
        declare: reader.get("declare", default.declare, flag),
        queues: default.queues,
    }))
}

/// Bytes that may be on their way into the store.
pub(super) fn in_hand_bytes(node: &Node) -> Result<usize, String> {
    Ok(node.count(1_048_576..=1_073_741_824)? as usize)
}

pub(super) fn known_route(node: &Node, routes: &BTreeMap<Name, RouteConfig>) -> Result<Name, String> {
    let text = node.text()?;
    if routes.contains_key(text.as_str()) {
        return Ok(text.into());
    }
    let hint = did_you_mean(&text, routes.keys().map(|name| &**name)).unwrap_or_default();
    Err(format!("names no route \"{text}\" {hint}").trim_end().to_owned())
}
