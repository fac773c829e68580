//! `[transports.NAME]`: what carries messages out.

use std::time::Duration;

use redeliver_core::route::{UNCONFIRMED_MAX, UNCONFIRMED_MAX_RECOGNISED};
#[cfg(feature = "kafka")]
use redeliver_transports::kafka::KafkaConfig;
use redeliver_transports::rabbitmq::{Broker, BrokerConfig, OnConfirm, RabbitmqConfig};
#[cfg(feature = "redis")]
use redeliver_transports::redis::RedisConfig;
use redeliver_transports::scripted::{Script, ScriptedConfig, Step};
use redeliver_transports::smtp::{Server, SmtpConfig, Tls, parse_mailbox};

use super::reader::Reader;
use super::source::{Node, Value};
use super::value::{HOUR, MS, SECOND};

/// One transport, by its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum TransportConfig {
    /// `kind = "kafka"`: writes to the topics of a cluster.
    #[cfg(feature = "kafka")]
    Kafka(Box<KafkaConfig>),
    /// `kind = "rabbitmq"`: publishes to the queues of a broker.
    Rabbitmq(Box<RabbitmqConfig>),
    /// `kind = "redis"`: writes to the streams, lists or sorted sets of a server.
    #[cfg(feature = "redis")]
    Redis(Box<RedisConfig>),
    /// `kind = "scripted"`: does what its script says and never leaves the process.
    Scripted(ScriptedConfig),
    /// `kind = "smtp"`: hands mails to a mail server.
    Smtp(Box<SmtpConfig>),
}

impl TransportConfig {
    /// The kind's word.
    pub const fn kind(&self) -> &'static str {
        match self {
            #[cfg(feature = "kafka")]
            Self::Kafka(_) => "kafka",
            Self::Rabbitmq(_) => "rabbitmq",
            #[cfg(feature = "redis")]
            Self::Redis(_) => "redis",
            Self::Scripted(_) => "scripted",
            Self::Smtp(_) => "smtp",
        }
    }

    /// The time-outs that one send can use up one after another, by their keys.
    pub fn timeouts(&self) -> Vec<(&'static str, Duration)> {
        match self {
            #[cfg(feature = "kafka")]
            Self::Kafka(config) => config.timeouts(),
            Self::Rabbitmq(config) => config.timeouts(),
            #[cfg(feature = "redis")]
            Self::Redis(config) => config.timeouts(),
            Self::Scripted(_) => Vec::new(),
            Self::Smtp(config) => config.timeouts(),
        }
    }

    /// How many sends of one message may stay unconfirmed, unless the route says otherwise: few where the receiver
    /// can't recognise a repeat.
    pub const fn unconfirmed_max(&self) -> u32 {
        match self {
            #[cfg(feature = "kafka")]
            Self::Kafka(_) => UNCONFIRMED_MAX_RECOGNISED,
            Self::Rabbitmq(_) => UNCONFIRMED_MAX_RECOGNISED,
            #[cfg(feature = "redis")]
            Self::Redis(_) => UNCONFIRMED_MAX_RECOGNISED,
            Self::Scripted(_) | Self::Smtp(_) => UNCONFIRMED_MAX,
        }
    }
}

/// Reads the settings of one kind.
type ReadKind = fn(&Reader<'_>) -> TransportConfig;

/// The kinds and how each is read.
const KINDS: &[(&str, ReadKind)] = &[
    #[cfg(feature = "kafka")]
    ("kafka", super::kafka::transport),
    ("rabbitmq", rabbitmq),
    #[cfg(feature = "redis")]
    ("redis", super::redis::transport),
    ("scripted", scripted),
    ("smtp", smtp),
];

pub(super) fn read(reader: &Reader<'_>) -> TransportConfig {
    reader.require("kind", "kind = \"smtp\"");
    match reader.find("kind", |node| node.word(KINDS)) {
        Some(read) => (read.value)(reader),
        None => {
            // Without its kind, none of its other keys can be called unknown.
            reader.forgive();
            TransportConfig::Scripted(ScriptedConfig::default())
        }
    }
}

fn rabbitmq(reader: &Reader<'_>) -> TransportConfig {
    let default = RabbitmqConfig::default();
    TransportConfig::Rabbitmq(Box::new(RabbitmqConfig {
        broker: broker(reader),
        exchange: reader.get("exchange", default.exchange, short),
        confirm_timeout: reader.get("confirm_timeout", default.confirm_timeout, |node| node.span(MS..=HOUR)),
        on_confirm: reader.get("on_confirm", default.on_confirm, |node| node.word(&OnConfirm::WORDS)),
        declare: reader.get("declare", default.declare, flag),
        queues: default.queues,
    }))
}

/// The keys that say how a broker is come to.
pub(super) fn broker(reader: &Reader<'_>) -> BrokerConfig {
    let default = BrokerConfig::default();
    let span = |key, default| reader.get(key, default, |node| node.span(SECOND..=HOUR));
    BrokerConfig {
        broker: reader.get("url", default.broker, |node| text_or_empty(node, Broker::parse)),
        ca_file: reader.get("ca_file", default.ca_file, |node| text_or_empty(node, |path| Ok(path.into()))),
        connect_timeout: span("connect_timeout", default.connect_timeout),
        heartbeat: span("heartbeat", default.heartbeat),
    }
}

/// A name that a broker takes.
pub(super) fn short(node: &Node) -> Result<String, String> {
    let text = node.text()?;
    match text.len() <= 255 {
        true => Ok(text),
        false => Err("has at most 255 bytes".to_owned()),
    }
}

fn scripted(reader: &Reader<'_>) -> TransportConfig {
    let steps =
        reader.list("script", "[\"fail 451 try later\", \"deliver\"]", |node| node.parsed(Step::parse));
    let script = steps.map(|steps| {
        Script::new(steps.value).ok_or_else(|| {
            let wrong = format!("script must have 1 to {} steps", Script::STEPS_MAX);
            reader.findings().error(&steps.place, wrong);
        })
    });
    TransportConfig::Scripted(ScriptedConfig {
        script: script.and_then(Result::ok).unwrap_or_default(),
        latency: reader.get("latency", Duration::ZERO, |node| node.span(Duration::ZERO..=HOUR)),
    })
}

fn smtp(reader: &Reader<'_>) -> TransportConfig {
    let default = SmtpConfig::default();
    let span = |key, default| reader.get(key, default, |node| node.span(MS..=HOUR));
    let config = SmtpConfig {
        server: reader.get("url", default.server, |node| text_or_empty(node, Server::parse)),
        tls: reader.get("tls", default.tls, |node| node.unless("as_url", |node| node.word(&Tls::WORDS))),
        ca_file: reader.get("ca_file", default.ca_file, |node| text_or_empty(node, |path| Ok(path.into()))),
        auth_without_tls: reader.get("auth_without_tls", default.auth_without_tls, flag),
        from: reader.get("from", default.from, |node| node.parsed(parse_mailbox)),
        helo: reader.get("helo", default.helo, |node| node.parsed(host_name)),
        connect_timeout: span("connect_timeout", default.connect_timeout),
        command_timeout: span("command_timeout", default.command_timeout),
        data_timeout: span("data_timeout", default.data_timeout),
        idle_timeout: reader
            .get("idle_timeout", default.idle_timeout, |node| node.span(Duration::ZERO..=HOUR)),
        connections_max: reader
            .get("connections_max", default.connections_max, |node| Ok(node.count(1..=10_000)? as usize)),
    };
    if let Some(problem) = config.problem() {
        reader.findings().error(reader.place_of("url"), problem);
    }
    TransportConfig::Smtp(Box::new(config))
}

/// A text with a grammar of its own; the empty text is none.
pub(super) fn text_or_empty<T>(
    node: &Node,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if node.text()?.is_empty() {
        return Ok(None);
    }
    node.parsed(parse).map(Some)
}

/// A name that a server can be greeted with; empty means that there is none.
fn host_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    match text.len() <= 255 && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err("a name of a host is made of letters, digits, \".\" and \"-\"".to_owned()),
    }
}

pub(super) fn flag(node: &Node) -> Result<bool, String> {
    match &node.value {
        Value::Flag(flag) => Ok(*flag),
        Value::Bare(text) if text == "true" => Ok(true),
        Value::Bare(text) if text == "false" => Ok(false),
        other => Err(format!("must be true or false, not {}", other.kind())),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Loaded, Sources, TransportConfig, load};

    fn loaded(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let file = Some(("f".into(), text.to_owned()));
        let sources = Sources { file, variables: variables.collect(), ..Sources::default() };
        load(&sources).map_err(|wrong| format!("{wrong:?}"))
    }

    const MAIL: &str = "[transports.smtp]\nkind = 'smtp'\n";

    #[test]
    fn smtp_url_names_the_mail_server_of_a_transport_that_is_there() {
        let server = |text: &str, url: &str| {
            let config = loaded(text, &[("SMTP_URL", url)]).unwrap().config;
            match config.transports.get("smtp") {
                Some(TransportConfig::Smtp(config)) => config.server.as_ref().map(|server| server.name()),
                _ => None,
            }
        };
        assert_eq!(server(MAIL, "smtp://mx:2525").as_deref(), Some("mx:2525"));
        assert_eq!(server(MAIL, ""), None, "mails wait");
        assert_eq!(server("", "smtp://mx:2525"), None, "no transport is made of it");
    }

    #[test]
    fn rabbitmq_url_names_the_broker_of_a_transport_that_is_there() {
        let text = "[transports.rabbitmq]\nkind = 'rabbitmq'\n";
        let config = loaded(text, &[("RABBITMQ_URL", "amqp://ada:secret@mq/orders")]).unwrap().config;
        let Some(TransportConfig::Rabbitmq(config)) = config.transports.get("rabbitmq") else { panic!() };
        assert_eq!(
            config.broker.broker.as_ref().map(|broker| broker.name()).as_deref(),
            Some("mq:5672/orders")
        );
        for url in ["amqp://ada:secret@", "http://ada:secret@mq", "amqp://ada:secret@mq:none"] {
            let wrong = loaded(text, &[("RABBITMQ_URL", url)]).unwrap_err();
            assert!(wrong.contains("RABBITMQ_URL") && !wrong.contains("secret"), "{wrong}");
        }
        for line in ["on_confirm = 'read'", "heartbeat = '1ms'", "declare = 1"] {
            assert!(loaded(&format!("{text}{line}"), &[]).is_err(), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_mail_server_is_said_without_its_password() {
        for url in ["smtps://ada:secret@", "http://ada:secret@mx", "smtps://ada:secret@mx:none"] {
            let wrong = loaded(MAIL, &[("SMTP_URL", url)]).unwrap_err();
            assert!(wrong.contains("SMTP_URL") && !wrong.contains("secret"), "{wrong}");
        }
        let open = format!("{MAIL}tls = 'none'");
        let wrong = loaded(&open, &[("SMTP_URL", "smtp://ada:secret@mx")]).unwrap_err();
        assert!(wrong.contains("auth_without_tls") && !wrong.contains("secret"), "{wrong}");
        assert!(
            loaded(&format!("{open}\nauth_without_tls = true"), &[("SMTP_URL", "smtp://ada:secret@mx")])
                .is_ok()
        );
        for line in [
            "from = 'nobody'",
            "helo = 'a b'",
            "auth_without_tls = 'yes'",
            "connections_max = 0",
            "tls = 'maybe'",
        ] {
            assert!(loaded(&format!("{MAIL}{line}"), &[]).is_err(), "{line}");
        }
    }
}
