//! `[store]`: what remembers the messages.

use std::path::PathBuf;
use std::time::Duration;

use redeliver_stores::postgres::{OpenOptions, PostgresUrl};

use super::reader::Reader;
use super::source::Node;
use super::value::{HOUR, SECOND};

/// What remembers the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Where it is.
    pub url: StoreUrl,
    /// What a commit withstands.
    pub durability: Durability,
    /// The database itself, where `url` is a pooler's.
    pub direct_url: Option<PostgresUrl>,
    /// How a database is spoken with.
    pub limits: StoreLimits,
}

/// How a database is spoken with; a file has none of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Connections that are held at once.
    pub connections_max: usize,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait for an answer.
    pub call_timeout: Duration,
    /// How long the database may work on a statement.
    pub statement_timeout: Duration,
    /// How long a statement may wait for others.
    pub lock_timeout: Duration,
    /// How long a transaction may wait for its next statement.
    pub idle_in_transaction_timeout: Duration,
}

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// `memory:`: in this process, gone with it.
    Memory,
    /// `sqlite:PATH`: a file on this machine.
    Sqlite(PathBuf),
    /// `postgres://…`: a database that any number of instances share.
    Postgres(PostgresUrl),
}

/// What a commit withstands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: accepted means durable.
    Full,
    /// A crash of this process, but the last moments before a power cut may be lost.
    Relaxed,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            url: StoreUrl::Sqlite("redeliver.db".into()),
            durability: Durability::Full,
            direct_url: None,
            limits: StoreLimits::default(),
        }
    }
}

impl Default for StoreLimits {
    fn default() -> Self {
        let OpenOptions {
            connections_max,
            connect_timeout,
            call_timeout,
            statement_timeout,
            lock_timeout,
            idle_in_transaction_timeout,
            ..
        } = OpenOptions::default();
        Self {
            connections_max,
            connect_timeout,
            call_timeout,
            statement_timeout,
            lock_timeout,
            idle_in_transaction_timeout,
        }
    }
}

impl StoreUrl {
    /// Reads `memory:`, `sqlite:PATH` or `postgres://…`. The error names only the scheme: what follows may hold a
    /// password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        match (scheme, rest) {
            ("memory", "") => Ok(Self::Memory),
            ("sqlite", "") => Err("sqlite: needs a path, such as sqlite:redeliver.db".to_owned()),
            ("sqlite", path) => Ok(Self::Sqlite(path.strip_prefix("//").unwrap_or(path).into())),
            (scheme, _) if PostgresUrl::SCHEMES.contains(&scheme) => parse_postgres(text).map(Self::Postgres),
            _ => Err(format!("stores are sqlite:PATH, postgres://… and memory:, not {scheme}:")),
        }
    }

    /// Writes what [`StoreUrl::parse`] reads, without any secret.
    pub fn show(&self) -> String {
        match self {
            Self::Memory => "memory:".to_owned(),
            Self::Sqlite(path) => format!("sqlite:{}", path.display()),
            Self::Postgres(url) => url.to_string(),
        }
    }
}

fn parse_postgres(text: &str) -> Result<PostgresUrl, String> {
    PostgresUrl::parse(text).map_err(|wrong| wrong.to_string())
}

pub(super) fn read(reader: &Reader<'_>) -> StoreConfig {
    let default = StoreConfig::default();
    let url = reader.get("url", default.url, |node| node.parsed(StoreUrl::parse));
    if url == StoreUrl::Memory {
        reader
            .findings()
            .warning(reader.place_of("url"), "messages in memory: are gone when the process ends");
    }
    let config = StoreConfig {
        url,
        durability: reader.get("durability", default.durability, |node| {
            node.word(&[("full", Durability::Full), ("relaxed", Durability::Relaxed)])
        }),
        direct_url: reader.get("direct_url", default.direct_url, |node| match node.text()?.as_str() {
            "" => Ok(None),
            _ => node.parsed(parse_postgres).map(Some),
        }),
        limits: read_limits(reader, &default.limits),
    };
    if config.direct_url.is_some() && !matches!(config.url, StoreUrl::Postgres(_)) {
        let wrong = "direct_url is the database behind a pooler: url must be a postgres:// address, too";
        reader.findings().error(reader.place_of("direct_url"), wrong);
    }
    config
}

fn read_limits(reader: &Reader<'_>, default: &StoreLimits) -> StoreLimits {
    let span = |key, default| reader.get(key, default, |node: &Node| node.span(SECOND / 10..=HOUR));
    let limits = StoreLimits {
        connections_max: reader
            .get("connections_max", default.connections_max, |node| Ok(node.count(2..=1_000)? as usize)),
        connect_timeout: span("connect_timeout", default.connect_timeout),
        call_timeout: span("call_timeout", default.call_timeout),
        statement_timeout: span("statement_timeout", default.statement_timeout),
        lock_timeout: span("lock_timeout", default.lock_timeout),
        idle_in_transaction_timeout: span("idle_in_transaction_timeout", default.idle_in_transaction_timeout),
    };
    if limits.statement_timeout > limits.call_timeout {
        let wrong = "statement_timeout must not be longer than call_timeout, or the database goes on with what \
                     nobody waits for";
        reader.findings().error(reader.place_of("statement_timeout"), wrong);
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_urls_are_read_and_written() {
        for text in [
            "memory:",
            "sqlite:redeliver.db",
            "sqlite:/var/lib/redeliver.db",
            "postgres://db1:5432,db2:6000/mail",
        ] {
            assert_eq!(StoreUrl::parse(text).unwrap().show(), text);
        }
        assert_eq!(StoreUrl::parse("sqlite:///var/x.db").unwrap().show(), "sqlite:/var/x.db");
        for text in ["", "sqlite:", "memory:x", "redeliver.db", "postgres:", "postgres://db:x/mail"] {
            assert!(StoreUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_wrong_url_is_not_repeated_with_its_password() {
        for url in
            ["mysql://ada:secret@db", "postgres://ada:x@secret@db/mail", "postgres://ada:secret@db:x/y"]
        {
            let wrong = StoreUrl::parse(url).unwrap_err();
            assert!(!wrong.contains("secret"), "{wrong}");
        }
    }

    #[test]
    fn a_config_with_a_password_is_printed_without_it() {
        let text =
            "[store]\nurl = 'postgres://ada:secret@db/mail'\ndirect_url = 'postgres://ada:secret@db2/mail'";
        let loaded = |text: &str| {
            let file = Some(("f".into(), text.to_owned()));
            crate::config::load(&crate::config::Sources { file, ..Default::default() })
        };
        let config = loaded(text).unwrap().config.store;
        assert_eq!(config.url.show(), "postgres://db:5432/mail");
        assert!(!format!("{config:?}").contains("secret"), "{config:?}");
        let alone = text.replace("url = 'postgres://ada:secret@db/mail'\n", "");
        let wrong = format!("{:?}", loaded(&alone).unwrap_err());
        assert!(wrong.contains("direct_url") && !wrong.contains("secret"), "{wrong}");
        let backwards = "[store]\nstatement_timeout = '40s'";
        assert!(loaded(backwards).is_err());
    }
}
