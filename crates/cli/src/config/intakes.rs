//! `[intakes.NAME]`: what feeds messages in, beside the API.

use std::collections::BTreeMap;

use redeliver_core::Name;
#[cfg(feature = "kafka")]
use redeliver_transports::kafka::KafkaIntakeConfig;
use redeliver_transports::rabbitmq::RabbitmqIntakeConfig;
#[cfg(feature = "redis")]
use redeliver_transports::redis::RedisIntakeConfig;

use super::problem::{Findings, did_you_mean};
use super::reader::{Located, Reader};
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

impl IntakeConfig {
    /// The source that this intake and another both read, if it is the same.
    fn shared_source(&self, other: &Self) -> Option<String> {
        match (self, other) {
            #[cfg(feature = "kafka")]
            (Self::Kafka(one), Self::Kafka(two)) => {
                let (ours, theirs) = (one.cluster.brokers.as_ref()?, two.cluster.brokers.as_ref()?);
                let is_same = one.topic == two.topic && ours.shares_broker_with(theirs);
                is_same.then(|| format!("the topic {} of {}", one.topic, ours.name()))
            }
            (Self::Rabbitmq(one), Self::Rabbitmq(two)) => {
                let (ours, theirs) = (one.broker.broker.as_ref()?, two.broker.broker.as_ref()?);
                let is_same = one.queue == two.queue && ours.name() == theirs.name();
                is_same.then(|| format!("the queue {} of {}", one.queue, ours.name()))
            }
            #[cfg(feature = "redis")]
            (Self::Redis(one), Self::Redis(two)) => {
                let (ours, theirs) = (one.server.servers.as_ref()?, two.server.servers.as_ref()?);
                let is_same = one.stream == two.stream && ours.shares_database_with(theirs);
                is_same.then(|| format!("the stream {} of {}", one.stream, ours.name()))
            }
            #[cfg(any(feature = "kafka", feature = "redis"))]
            _ => None,
        }
    }
}

/// Reports intakes that read the same source: an input that both read would be two messages.
pub(super) fn check_sources(intakes: &BTreeMap<Name, Located<IntakeConfig>>, findings: &Findings) {
    for (n, (name, intake)) in intakes.iter().enumerate() {
        for (earlier, other) in intakes.iter().take(n) {
            if let Some(source) = other.value.shared_source(&intake.value) {
                let wrong = format!(
                    "intakes \"{earlier}\" and \"{name}\" both read {source}: a source has one intake, so remove one"
                );
                findings.error(&intake.place, wrong);
            }
        }
    }
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
    match routes.get(text.as_str()) {
        Some(known) if known.route.table.is_some() => {
            return Err(format!("names route \"{text}\", whose messages are rows of a table: name another"));
        }
        Some(_) => return Ok(text.into()),
        None => {}
    }
    let hint = did_you_mean(&text, routes.keys().map(|name| &**name)).unwrap_or_default();
    Err(format!("names no route \"{text}\" {hint}").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use crate::config::{Sources, load};

    const TEXT: &str = "[transports.script]\nkind = 'scripted'\n[policies.p]\nbackoff = ['1s']\nmax_attempts = 2\n\
                        [routes.r]\ntransport = 'script'\npolicy = 'p'\n";

    #[test]
    fn two_intakes_on_one_queue_are_refused_and_both_are_named() {
        let intake = |name: &str, url: &str| {
            format!(
                "[intakes.{name}]\nkind = 'rabbitmq'\nurl = '{url}'\nqueue = 'q'\nroute = 'r'\nrejects = 'r'\n"
            )
        };
        let both = |one: &str, two: &str| {
            let file = Some(("f".into(), format!("{TEXT}{}{}", intake("east", one), intake("west", two))));
            load(&Sources { file, ..Sources::default() }).map_err(|wrong| wrong.to_string())
        };
        let wrong = both("amqp://h", "amqp://ada:secret@h:5672/%2F").unwrap_err();
        assert!(wrong.contains("intakes \"east\" and \"west\" both read the queue q of h:5672:"), "{wrong}");
        assert!(!wrong.contains("secret"), "{wrong}");
        assert!(both("amqp://h", "amqp://h/other").is_ok());
        assert!(both("amqp://h", "amqp://elsewhere").is_ok());
    }
}
