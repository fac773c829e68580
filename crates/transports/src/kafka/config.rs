//! The cluster as it is written in a config.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How a cluster is come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The brokers to begin with; without any, messages wait.
    pub brokers: Option<Brokers>,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// A file of certificates (PEM) that are trusted instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Our own certificate (PEM), where brokers ask for one.
    pub cert_file: Option<PathBuf>,
    /// The key of it (PEM).
    pub key_file: Option<PathBuf>,
    /// Whom to log in as; nobody logs in without.
    pub user: Option<String>,
    /// The password.
    pub password: Secret,
    /// How the password is shown.
    pub mechanism: Mechanism,
    /// How long it may take until a broker answers.
    pub connect_timeout: Duration,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            brokers: None,
            tls: false,
            ca_file: None,
            cert_file: None,
            key_file: None,
            user: None,
            password: Secret(String::new()),
            mechanism: Mechanism::Plain,
            connect_timeout: Duration::from_secs(5),
        }
    }
}

impl ClusterConfig {
    /// What is wrong with these settings taken together, if anything is.
    pub fn problem(&self) -> Option<String> {
        let is_scram = self.user.is_some() && self.mechanism != Mechanism::Plain;
        if cfg!(not(feature = "kafka-tls")) && (self.tls || is_scram) {
            return Some(
                "this build knows no TLS and no SCRAM for Kafka: build it with --features kafka-tls"
                    .to_owned(),
            );
        }
        let files = [&self.ca_file, &self.cert_file, &self.key_file];
        if !self.tls && files.iter().any(|file| file.is_some()) {
            return Some("certificates are for encrypted connections: tls = true".to_owned());
        }
        if self.cert_file.is_some() != self.key_file.is_some() {
            return Some("cert_file and key_file go together".to_owned());
        }
        if self.user.is_none() && !self.password.0.is_empty() {
            return Some("a password needs a user".to_owned());
        }
        None
    }
}

/// How messages are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaConfig {
    /// The cluster.
    pub cluster: ClusterConfig,
    /// The attribute whose value is a record's key: what has the same key keeps its partition.
    pub key_attribute: String,
    /// How long the cluster may take to take a message before it counts as lost.
    pub delivery_timeout: Duration,
    /// What it means that the cluster has it.
    pub on_confirm: OnConfirm,
    /// The largest record.
    pub message_bytes_max: usize,
    /// How records are made smaller.
    pub compression: Compression,
}

impl KafkaConfig {
    /// The time-outs that one send can use up one after another, by their keys.
    pub fn timeouts(&self) -> Vec<(&'static str, Duration)> {
        vec![("connect_timeout", self.cluster.connect_timeout), ("delivery_timeout", self.delivery_timeout)]
    }
}

impl Default for KafkaConfig {
    fn default() -> Self {
        Self {
            cluster: ClusterConfig::default(),
            key_attribute: "device_id".to_owned(),
            delivery_timeout: Duration::from_secs(9),
            on_confirm: OnConfirm::Delivered,
            message_bytes_max: 1_000_000,
            compression: Compression::None,
        }
    }
}

/// What it means for a message that the cluster has it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OnConfirm {
    /// It has arrived.
    Delivered,
    /// An outside worker will take it, and report.
    HandedOff,
}

impl OnConfirm {
    /// The words of the config.
    pub const WORDS: [(&str, Self); 2] = [("delivered", Self::Delivered), ("handed_off", Self::HandedOff)];
}

/// How a password is shown to a broker.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// As it is.
    Plain,
    /// By a proof of it.
    ScramSha256,
    /// By a longer proof.
    ScramSha512,
}

impl Mechanism {
    /// The words of the config.
    pub const WORDS: [(&str, Self); 3] =
        [("plain", Self::Plain), ("scram-sha-256", Self::ScramSha256), ("scram-sha-512", Self::ScramSha512)];

    /// Its name on the wire.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

/// How records are made smaller.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// As gzip does it.
    Gzip,
    /// As snappy does it.
    Snappy,
    /// As lz4 does it.
    Lz4,
    /// As zstd does it.
    Zstd,
}

impl Compression {
    /// The words of the config.
    pub const WORDS: [(&str, Self); 5] = [
        ("none", Self::None),
        ("gzip", Self::Gzip),
        ("snappy", Self::Snappy),
        ("lz4", Self::Lz4),
        ("zstd", Self::Zstd),
    ];

    /// Its name for librdkafka.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// Brokers of one cluster, at least one: they know the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brokers(String);

impl Brokers {
    /// Reads `host:9092,other:9092`; a host without a port has the usual one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let brokers: Vec<String> = text.split(',').map(|one| broker(one.trim())).collect::<Result<_, _>>()?;
        Ok(Self(brokers.join(",")))
    }

    /// The brokers as people know them.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Whether both name the same broker, and so the same cluster.
    pub fn shares_broker_with(&self, other: &Self) -> bool {
        self.0.split(',').any(|ours| other.0.split(',').any(|theirs| ours.eq_ignore_ascii_case(theirs)))
    }
}

fn broker(text: &str) -> Result<String, String> {
    let wrong = || "brokers are written host:9092,other:9092, without anything before or behind".to_owned();
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (format!("[{host}]"), None),
        Some((host, port)) => (format!("[{host}]"), Some(port.strip_prefix(':').ok_or_else(wrong)?)),
        None => match text.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (text.to_owned(), None),
        },
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    let is_host = !host.trim_matches(['[', ']']).is_empty() && host.chars().all(fits);
    let port = port.map_or(Ok(9_092), str::parse::<u16>).map_err(|_| wrong())?;
    match is_host && port > 0 {
        true => Ok(format!("{host}:{port}")),
        false => Err(wrong()),
    }
}

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret that is this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"***\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_are_hosts_with_ports() {
        let check = |text: &str, name: &str| assert_eq!(Brokers::parse(text).unwrap().name(), name);
        check("localhost", "localhost:9092");
        check("k1:1, k2:2,k3", "k1:1,k2:2,k3:9092");
        check("[::1]:9093,[::1]", "[::1]:9093,[::1]:9092");
        for text in
            ["", ",", "a,", "a:", "a:0", "a:99999", "kafka://a:1", "a:secret@b:1", "a b", "[::1", "[]:1"]
        {
            let wrong = Brokers::parse(text).unwrap_err();
            assert!(!wrong.contains("secret"), "{text}: {wrong}");
        }
    }

    #[test]
    fn settings_that_cannot_be_meant_are_refused() {
        let plain = || ClusterConfig { brokers: Brokers::parse("k").ok(), ..ClusterConfig::default() };
        assert_eq!(plain().problem(), None);
        let user = Some("ada".to_owned());
        assert_eq!(ClusterConfig { user: user.clone(), ..plain() }.problem(), None);
        let is_wrong = |config: ClusterConfig| config.problem().is_some();
        assert!(is_wrong(ClusterConfig { ca_file: Some("ca.pem".into()), ..plain() }));
        assert!(is_wrong(ClusterConfig { password: Secret::new("x"), ..plain() }));
        assert!(is_wrong(ClusterConfig { cert_file: Some("c.pem".into()), tls: true, ..plain() }));
        let scram = ClusterConfig { user, mechanism: Mechanism::ScramSha512, ..plain() };
        assert_eq!(is_wrong(scram), cfg!(not(feature = "kafka-tls")));
        assert!(!format!("{:?}", Secret::new("secret")).contains("secret"));
    }
}
