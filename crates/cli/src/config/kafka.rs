//! Transports and intakes with `kind = "kafka"`.

use std::collections::BTreeMap;

use redeliver_core::Name;
use redeliver_transports::kafka::{
    Brokers, ClusterConfig, Compression, KafkaConfig, KafkaIntakeConfig, Mechanism, OnConfirm, Secret, Takes,
};

use super::intakes::{IntakeConfig, in_hand_bytes, known_route};
use super::reader::Reader;
use super::routes::RouteConfig;
use super::source::Node;
use super::transports::{TransportConfig, flag, text_or_empty};
use super::value::{HOUR, MS, SECOND};

pub(super) fn transport(reader: &Reader<'_>) -> TransportConfig {
    let default = KafkaConfig::default();
    TransportConfig::Kafka(Box::new(KafkaConfig {
        cluster: cluster(reader),
        key_attribute: reader.get("key_attribute", default.key_attribute, Node::text),
        delivery_timeout: reader
            .get("delivery_timeout", default.delivery_timeout, |node| node.span(MS..=HOUR)),
        on_confirm: reader.get("on_confirm", default.on_confirm, |node| node.word(&OnConfirm::WORDS)),
        message_bytes_max: reader.get("message_bytes_max", default.message_bytes_max, message_bytes),
        compression: reader.get("compression", default.compression, |node| node.word(&Compression::WORDS)),
    }))
}

pub(super) fn intake(reader: &Reader<'_>, routes: &BTreeMap<Name, RouteConfig>) -> IntakeConfig {
    let default = KafkaIntakeConfig::default();
    reader.require("topic", "topic = \"notifications.failed\"");
    reader.require("rejects", "rejects = \"NAME\" for [routes.NAME]");
    IntakeConfig::Kafka(Box::new(KafkaIntakeConfig {
        cluster: cluster(reader),
        topic: reader.get("topic", default.topic, |node| node.parsed(topic)),
        takes: reader.get("takes", default.takes, |node| node.word(&Takes::WORDS)),
        group: reader.get("group", default.group, Node::text),
        rejects: reader.get("rejects", default.rejects, |node| known_route(node, routes)),
        workspace: reader
            .get("workspace", default.workspace, |node| text_or_empty(node, |name| Ok(name.into()))),
        batch_max: reader.get("batch_max", default.batch_max, |node| Ok(node.count(1..=10_000)? as usize)),
        message_bytes_max: reader.get("message_bytes_max", default.message_bytes_max, message_bytes),
        in_hand_bytes_max: reader.get("in_hand_bytes_max", default.in_hand_bytes_max, in_hand_bytes),
    }))
}

/// The keys that say how a cluster is come to.
fn cluster(reader: &Reader<'_>) -> ClusterConfig {
    let default = ClusterConfig::default();
    let file = |key, default| reader.get(key, default, |node| text_or_empty(node, |path| Ok(path.into())));
    let cluster = ClusterConfig {
        brokers: reader.get("brokers", default.brokers, |node| text_or_empty(node, Brokers::parse)),
        tls: reader.get("tls", default.tls, flag),
        ca_file: file("ca_file", default.ca_file),
        cert_file: file("cert_file", default.cert_file),
        key_file: file("key_file", default.key_file),
        user: reader.get("user", default.user, |node| text_or_empty(node, |name| Ok(name.to_owned()))),
        password: reader.get("password", default.password, |node| node.text().map(Secret::new)),
        mechanism: reader.get("mechanism", default.mechanism, |node| node.word(&Mechanism::WORDS)),
        connect_timeout: reader
            .get("connect_timeout", default.connect_timeout, |node| node.span(SECOND..=HOUR)),
    };
    if let Some(problem) = cluster.problem() {
        reader.findings().error(reader.place(), problem);
    }
    cluster
}

fn topic(text: &str) -> Result<String, String> {
    redeliver_transports::kafka::check_topic(text).map(|()| text.to_owned())
}

fn message_bytes(node: &Node) -> Result<usize, String> {
    Ok(node.count(1_024..=134_217_728)? as usize)
}

#[cfg(test)]
mod tests {
    use crate::config::{IntakeConfig, Loaded, Sources, TransportConfig, load};

    fn loaded(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let file = Some(("f".into(), text.to_owned()));
        let sources = Sources { file, variables: variables.collect(), ..Sources::default() };
        load(&sources).map_err(|wrong| format!("{wrong:?}"))
    }

    const TEXT: &str = "[transports.kafka]\nkind = 'kafka'\n[policies.p]\nbackoff = ['1s']\nmax_attempts = 2\n\
                        [routes.r]\ntransport = 'kafka'\npolicy = 'p'\ntarget = 'retry.{priority}'\n\
                        [intakes.kafka]\nkind = 'kafka'\ntopic = 'failed'\nrejects = 'r'\n";

    #[test]
    fn kafka_brokers_names_the_cluster_of_what_is_there() {
        let config = loaded(TEXT, &[("KAFKA_BROKERS", "k1,k2:9")]).unwrap().config;
        let Some(TransportConfig::Kafka(transport)) = config.transports.get("kafka") else { panic!() };
        let Some(IntakeConfig::Kafka(intake)) = config.intakes.get("kafka") else { panic!() };
        for cluster in [&transport.cluster, &intake.cluster] {
            assert_eq!(cluster.brokers.as_ref().map(|brokers| brokers.name()), Some("k1:9092,k2:9"));
        }
        let wrong = loaded(TEXT, &[("KAFKA_BROKERS", "kafka://ada:secret@k1")]).unwrap_err();
        assert!(wrong.contains("KAFKA_BROKERS") && !wrong.contains("secret"), "{wrong}");
    }

    #[test]
    fn a_target_may_have_a_place_for_the_priority() {
        let config = loaded(TEXT, &[]).unwrap().config;
        let targets = config.routes["r"].route.lanes.each_ref().map(|travel| travel.target.clone());
        let expected = ["critical", "high", "medium", "low"].map(|lane| Some(format!("retry.{lane}").into()));
        assert_eq!(targets, expected);
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        for line in [
            "topic = 'no topic'",
            "mechanism = 'kerberos'",
            "ca_file = 'ca.pem'",
            "password = 'secret'",
            "batch_max = 0",
            "rejects = 'nowhere'",
        ] {
            let text = TEXT.replace("topic = 'failed'\nrejects = 'r'\n", "");
            let rest = ["topic = 'failed'", "rejects = 'r'"].into_iter();
            let rest: Vec<&str> =
                rest.filter(|other| other.split('=').next() != line.split('=').next()).collect();
            let wrong = loaded(&format!("{text}{}\n{line}\n", rest.join("\n")), &[]).unwrap_err();
            assert!(!wrong.contains("secret"), "{wrong}");
        }
    }

    #[test]
    fn two_intakes_on_one_topic_are_refused_and_both_are_named() {
        let with = |brokers: &str, topic: &str| {
            let second = format!(
                "[intakes.second]\nkind = 'kafka'\nbrokers = '{brokers}'\ntopic = '{topic}'\nrejects = 'r'\n"
            );
            let first = TEXT.replace("topic = 'failed'", "topic = 'failed'\nbrokers = 'k1,k2'");
            loaded(&format!("{first}{second}"), &[])
        };
        let wrong = with("K2:9092,k3", "failed").unwrap_err();
        assert!(wrong.contains("\\\"kafka\\\" and \\\"second\\\" both read the topic failed of"), "{wrong}");
        assert!(with("k3", "failed").is_ok());
        assert!(with("k1", "reports").is_ok());
    }
}
