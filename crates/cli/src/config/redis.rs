//! Transports and intakes with `kind = "redis"`.

use std::collections::BTreeMap;

use redeliver_core::Name;
use redeliver_transports::redis::{
    OnConfirm, RedisConfig, RedisIntakeConfig, ServerConfig, Servers, Structure, Takes,
};

use super::intakes::{IntakeConfig, in_hand_bytes, known_route};
use super::reader::Reader;
use super::routes::RouteConfig;
use super::source::Node;
use super::transports::{TransportConfig, flag, text_or_empty};
use super::value::{HOUR, MS, SECOND};

pub(super) fn transport(reader: &Reader<'_>) -> TransportConfig {
    let default = RedisConfig::default();
    TransportConfig::Redis(Box::new(RedisConfig {
        server: server(reader),
        structure: reader.get("structure", default.structure, |node| node.word(&Structure::WORDS)),
        entries_max: reader.get("entries_max", default.entries_max, |node| {
            node.unless("unlimited", |node| Ok(node.count(1..=u32::MAX)?.into()))
        }),
        on_confirm: reader.get("on_confirm", default.on_confirm, |node| node.word(&OnConfirm::WORDS)),
    }))
}

pub(super) fn intake(reader: &Reader<'_>, routes: &BTreeMap<Name, RouteConfig>) -> IntakeConfig {
    let default = RedisIntakeConfig::default();
    reader.require("stream", "stream = \"notifications.failed\"");
    reader.require("rejects", "rejects = \"NAME\" for [routes.NAME]");
    IntakeConfig::Redis(Box::new(RedisIntakeConfig {
        server: server(reader),
        stream: reader.get("stream", default.stream, some_text),
        takes: reader.get("takes", default.takes, |node| node.word(&Takes::WORDS)),
        group: reader.get("group", default.group, some_text),
        rejects: reader.get("rejects", default.rejects, |node| known_route(node, routes)),
        workspace: reader
            .get("workspace", default.workspace, |node| text_or_empty(node, |name| Ok(name.into()))),
        batch_max: reader.get("batch_max", default.batch_max, |node| Ok(node.count(1..=10_000)? as usize)),
        message_bytes_max: reader.get("message_bytes_max", default.message_bytes_max, |node| {
            Ok(node.count(1_024..=134_217_728)? as usize)
        }),
        in_hand_bytes_max: reader.get("in_hand_bytes_max", default.in_hand_bytes_max, in_hand_bytes),
        claim_after: reader.get("claim_after", default.claim_after, |node| node.span(SECOND..=HOUR)),
        delete: reader.get("delete", default.delete, flag),
    }))
}

/// The keys that say how a server is come to.
fn server(reader: &Reader<'_>) -> ServerConfig {
    let default = ServerConfig::default();
    ServerConfig {
        servers: reader.get("url", default.servers, |node| text_or_empty(node, Servers::parse)),
        ca_file: reader.get("ca_file", default.ca_file, |node| text_or_empty(node, |path| Ok(path.into()))),
        connect_timeout: reader.get("connect_timeout", default.connect_timeout, |node| node.span(MS..=HOUR)),
        reply_timeout: reader.get("reply_timeout", default.reply_timeout, |node| node.span(MS..=HOUR)),
    }
}

fn some_text(node: &Node) -> Result<String, String> {
    let text = node.text()?;
    match text.is_empty() {
        true => Err("is empty".to_owned()),
        false => Ok(text),
    }
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

    const TEXT: &str = "[transports.redis]\nkind = 'redis'\n[policies.p]\nbackoff = ['1s']\nmax_attempts = 2\n\
                        [routes.r]\ntransport = 'redis'\npolicy = 'p'\n";
    const INTAKE: &str = "[intakes.redis]\nkind = 'redis'\n";

    #[test]
    fn redis_url_names_the_server_of_what_is_there() {
        let text = format!("{TEXT}{INTAKE}stream = 'failed'\nrejects = 'r'\n");
        let config = loaded(&text, &[("REDIS_URL", "rediss://:secret@cache/2")]).unwrap().config;
        let Some(TransportConfig::Redis(transport)) = config.transports.get("redis") else { panic!() };
        let Some(IntakeConfig::Redis(intake)) = config.intakes.get("redis") else { panic!() };
        for server in [&transport.server, &intake.server] {
            assert_eq!(server.servers.as_ref().map(|it| it.name()).as_deref(), Some("cache:6379/2"));
        }
        let wrong = loaded(&text, &[("REDIS_URL", "http://ada:secret@cache")]).unwrap_err();
        assert!(wrong.contains("REDIS_URL") && !wrong.contains("secret"), "{wrong}");
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        for line in ["structure = 'tree'", "entries_max = 0", "on_confirm = 'read'", "reply_timeout = 'soon'"]
        {
            let text = TEXT.replace("kind = 'redis'\n", &format!("kind = 'redis'\n{line}\n"));
            assert!(loaded(&text, &[]).is_err(), "{line}");
        }
        let intake = |lines: &str| loaded(&format!("{TEXT}{INTAKE}{lines}\n"), &[]);
        assert!(intake("stream = 's'\nrejects = 'r'").is_ok());
        for lines in [
            "rejects = 'r'",
            "stream = 's'",
            "stream = ''\nrejects = 'r'",
            "stream = 's'\nrejects = 'nowhere'",
            "stream = 's'\nrejects = 'r'\ntakes = 'all'",
            "stream = 's'\nrejects = 'r'\nclaim_after = '1ms'",
        ] {
            assert!(intake(lines).is_err(), "{lines}");
        }
    }

    #[test]
    fn two_intakes_on_one_stream_are_refused_and_both_are_named() {
        let intake = |name: &str, url: &str, more: &str| {
            format!("[intakes.{name}]\nkind = 'redis'\nurl = '{url}'\nrejects = 'r'\nstream = 's'\n{more}\n")
        };
        let both = |one: &str, two: &str, more: &str| {
            loaded(&format!("{TEXT}{}{}", intake("east", one, ""), intake("west", two, more)), &[])
        };
        for (one, two) in [
            ("redis://h", "redis://:pw@H:6379/0"),
            ("redis-cluster://a,b", "redis-cluster://b,c"),
            ("redis-sentinel://a/m/1", "redis-sentinel://a,b/m/1"),
        ] {
            let wrong = both(one, two, "group = 'other'").unwrap_err();
            assert!(wrong.contains("\\\"east\\\" and \\\"west\\\" both read the stream s of"), "{wrong}");
            assert!(!wrong.contains("pw"), "{wrong}");
        }
        for (one, two) in [
            ("redis://h", "redis://other"),
            ("redis://h/0", "redis://h/1"),
            ("redis://h", "redis://h:7000"),
            ("redis-sentinel://a/m", "redis-sentinel://a/n"),
        ] {
            assert!(both(one, two, "").is_ok(), "{one} {two}");
        }
        // Without a server nothing is read.
        assert!(both("", "", "").is_ok());
        assert!(both("redis://h", "redis://h", "").is_err());
    }
}
