//! Opens a database: where it is, with which settings, and what to say if it can't be.

use std::collections::HashMap;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::errors::{Fault, OpenError, open_error};
use super::rows::get;
use super::tls::{self, Check};

/// How a store is opened.
#[derive(Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// The address of the database itself, where the other one is a pooler's: tables are made and news is heard there.
    pub direct_url: Option<String>,
    /// What a commit is worth.
    pub durability: Durability,
    /// Connections that are held at once, at most.
    pub connections_max: usize,
    /// How long to wait for a connection to be made.
    pub connect_timeout: Duration,
    /// How long to wait for an answer.
    pub call_timeout: Duration,
    /// How long the database may work on one statement.
    pub statement_timeout: Duration,
    /// How long a statement may wait for others.
    pub lock_timeout: Duration,
    /// How long a transaction may wait for its next statement. What a stopped instance has locked is free after that.
    pub idle_in_transaction_timeout: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            direct_url: None,
            durability: Durability::Full,
            connections_max: 10,
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(30),
            statement_timeout: Duration::from_secs(20),
            lock_timeout: Duration::from_secs(5),
            idle_in_transaction_timeout: Duration::from_secs(5),
        }
    }
}

/// What a commit is worth.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power cut.
    Full,
    /// It survives the end of the process; a power cut may take the last ones.
    Relaxed,
}

/// Where a database is, and how to speak with it.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
    /// Hosts and name, without anything secret.
    pub(super) place: String,
    /// What each transaction has to say, because the connection could not bring it along.
    pub(super) limits: Option<String>,
}

impl Address {
    /// Reads an address: a URL, or words such as `host=db1,db2 user=redeliver`.
    pub(super) fn read(url: &str, options: &OpenOptions) -> Result<Self, OpenError> {
        let (mut config, Encryption { mode, check, root }) = parse(url)?;
        config.ssl_mode(mode);
        // One that can only be read is of no use: after a failover, the next host is.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("redeliver");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(options.connect_timeout);
        }
        // A peer that vanished without a word is noticed.
        config.keepalives_idle(Duration::from_secs(15)).keepalives_interval(Duration::from_secs(5));
        config.keepalives_retries(3).tcp_user_timeout(options.call_timeout);
        let place = place(&config);
        let bad = |why: String| OpenError::BadAddress { why };
        let tls = tls::connector(check, root.as_deref()).map_err(bad)?;
        Ok(Self { config, tls, place, limits: None })
    }

    /// Has the database itself keep to the limits: each connection brings them along, or, where a pooler turns away
    /// whoever brings any or drops them, each transaction says them.
    pub(super) async fn limited(self, options: &OpenOptions) -> Result<Self, OpenError> {
        let bringing = self.clone().bringing(options);
        let taken = bringing.are_settings_taken(options).await;
        if taken.map_err(|fault| open_error(&self.place, &fault))? {
            return Ok(bringing);
        }
        tracing::debug!("the pooler takes no settings: each transaction says its limits");
        let said = settings(options).map(|(name, value)| format!("SET LOCAL {name} = {value}"));
        Ok(Self { limits: Some(said.join("; ")), ..self })
    }

    /// Whether a connection has the settings that it brought.
    async fn are_settings_taken(&self, options: &OpenOptions) -> Result<bool, Fault> {
        const UNKNOWN_SETTING: &str = "08P01";
        let (db, driven) = match self.connect().await {
            Err(Fault::Sql(error)) if error.code().is_some_and(|code| code.code() == UNKNOWN_SETTING) => {
                return Ok(false);
            }
            connected => connected?,
        };
        let brought = settings(options);
        let names = brought.each_ref().map(|(name, _)| *name);
        let asked = [(&names.as_slice() as _, Type::TEXT_ARRAY)];
        let found = db.query_typed(include_str!("sql/limits.sql"), &asked).await;
        driven.abort();
        let pair = |row: &Row| Ok((get::<String>(row, 0)?, get::<String>(row, 1)?));
        let found = found?.iter().map(pair).collect::<Result<HashMap<_, _>, Fault>>()?;
        // Each of them: one may be the database's own by chance.
        Ok(brought.iter().all(|(name, value)| found.get(*name) == Some(value)))
    }

    fn bringing(mut self, options: &OpenOptions) -> Self {
        let mut words = self.config.get_options().unwrap_or_default().to_owned();
        for (name, value) in settings(options) {
            words.push_str(&format!(" -c {name}={value}"));
        }
        self.config.options(words.trim());
        self
    }

    /// A connection of its own, and what drives it.
    pub(super) async fn connect(&self) -> Result<(Client, JoinHandle<()>), Fault> {
        let (client, connection) = self.config.connect(self.tls.clone()).await?;
        let driven = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = %Fault::from(error), "a connection to the database ended");
            }
        });
        Ok((client, driven))
    }
}

/// What the database is asked to keep to. Spans are in milliseconds, as it takes them.
fn settings(options: &OpenOptions) -> [(&'static str, String); 4] {
    let ms = |span: Duration| span.as_millis().to_string();
    [
        ("statement_timeout", ms(options.statement_timeout)),
        ("lock_timeout", ms(options.lock_timeout)),
        ("idle_in_transaction_session_timeout", ms(options.idle_in_transaction_timeout)),
        // Statements are short: translating them costs more than it saves.
        ("jit", "off".to_owned()),
    ]
}

/// Turns away a connection whose commits a power cut could undo, unless that is what was asked for.
pub(super) async fn check_durability(db: &Client, durability: Durability) -> Result<(), Fault> {
    let row = db.query_typed_one(include_str!("sql/durability.sql"), &[]).await?;
    let (commit, fsync): (&str, &str) = (get(&row, 0)?, get(&row, 1)?);
    if durability == Durability::Relaxed {
        return Ok(());
    }
    if commit == "off" {
        return Err(Fault::Unfit(
            "synchronous_commit is off, so that a commit may not survive a power cut; \
             say `ALTER ROLE … SET synchronous_commit = on`, or allow it by the durability `relaxed`"
                .to_owned(),
        ));
    }
    if fsync == "off" {
        return Err(Fault::Unfit(
            "fsync is off, so that a power cut may destroy the database; \
             turn it on, or allow it by the durability `relaxed`"
                .to_owned(),
        ));
    }
    Ok(())
}

/// How the way to the database is encrypted.
pub(super) struct Encryption {
    mode: SslMode,
    check: Check,
    /// A file with the authorities to trust.
    root: Option<String>,
}

/// Understands an address, and opens nothing.
pub(super) fn parse(url: &str) -> Result<(Config, Encryption), OpenError> {
    let bad = |why: String| OpenError::BadAddress { why };
    let (url, mode) = take(url, "sslmode");
    let (url, root) = take(&url, "sslrootcert");
    let config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
        bad(format!("{}; it looks like postgres://USER:PASSWORD@HOST:5432/DATABASE", Fault::from(error)))
    })?;
    let (mode, check) = match mode.as_deref() {
        None | Some("prefer" | "allow") => (SslMode::Prefer, Check::Nothing),
        Some("disable") => (SslMode::Disable, Check::Nothing),
        Some("require") if root.is_none() => (SslMode::Require, Check::Nothing),
        Some("require" | "verify-ca") => (SslMode::Require, Check::Authority),
        Some("verify-full") => (SslMode::Require, Check::Name),
        Some(other) => {
            let known = "disable, prefer, require, verify-ca, verify-full";
            return Err(bad(format!("sslmode is {other:?}, which is none of {known}")));
        }
    };
    Ok((config, Encryption { mode, check, root }))
}

/// Takes one setting out of an address.
fn take(url: &str, name: &str) -> (String, Option<String>) {
    let mut value = None;
    let mut keep = |pair: &&str| match pair.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
        Some(found) => {
            value = Some(found.to_owned());
            false
        }
        None => true,
    };
    let rest = match url.split_once('?') {
        Some((base, query)) => {
            let query: Vec<&str> = query.split('&').filter(&mut keep).collect();
            if query.is_empty() { base.to_owned() } else { format!("{base}?{}", query.join("&")) }
        }
        None if url.contains("://") => url.to_owned(),
        None => url.split_whitespace().filter(&mut keep).collect::<Vec<&str>>().join(" "),
    };
    (rest, value)
}

/// Hosts and name of a database, without anything secret.
pub(super) fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |n: usize| ports.get(n).or(ports.first()).copied().unwrap_or(5432);
    let host = |(n, host): (usize, &Host)| match host {
        Host::Tcp(name) => format!("{name}:{}", port(n)),
        Host::Unix(path) => format!("{}:{}", path.display(), port(n)),
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{}/{database}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Address, OpenError> {
        Address::read(url, &OpenOptions::default())
    }

    #[test]
    fn a_place_is_told_without_its_password() {
        for (url, place) in [
            ("postgres://ann:secret@db:6000/mail", "postgres://db:6000/mail"),
            ("postgresql://ann:secret@db1:1,db2:2/mail?sslmode=disable", "postgres://db1:1,db2:2/mail"),
            ("host=db1,db2 port=7 user=ann password=secret", "postgres://db1:7,db2:7/ann"),
        ] {
            assert_eq!(read(url).unwrap().place, place, "{url}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_read_is_not_repeated() {
        for url in ["postgres://ann:secret@db:port/mail", "password=secret nonsense=1", "host=db port=secret"]
        {
            let Err(error) = read(url) else { panic!("{url} was read") };
            assert!(!error.to_string().contains("secret@"), "{error}");
        }
    }

    #[test]
    fn sslmode_says_what_is_checked() {
        for (mode, expected) in [
            ("disable", SslMode::Disable),
            ("prefer", SslMode::Prefer),
            ("require", SslMode::Require),
            ("verify-ca", SslMode::Require),
            ("verify-full", SslMode::Require),
        ] {
            let address = read(&format!("postgres://db/mail?connect_timeout=3&sslmode={mode}")).unwrap();
            assert_eq!(address.config.get_ssl_mode(), expected, "{mode}");
        }
        let Err(error) = read("host=db sslmode=maybe") else { panic!("it was read") };
        assert!(error.to_string().contains("verify-full"), "{error}");
        let Err(error) = read("host=db sslmode=verify-full sslrootcert=nowhere.pem") else {
            panic!("it was read")
        };
        assert!(error.to_string().contains("nowhere.pem"), "{error}");
    }

    #[test]
    fn only_a_host_that_can_be_written_will_do() {
        let address = read("postgres://db1,db2/mail").unwrap();
        assert_eq!(address.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }
}
