//! What producers and consumers have in common: how they come to the cluster, and how it is known to stand.

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tokio::sync::watch;

use super::config::{Brokers, ClusterConfig};

/// What people see at the brokers.
const CLIENT_ID: &str = "redeliver";
/// The longest that librdkafka leaves a broker alone that it could not reach.
const RECONNECT_MS_MAX: &str = "1000";

/// The settings of a client of this cluster.
pub(super) fn settings(cluster: &ClusterConfig, brokers: &Brokers) -> ClientConfig {
    let mut settings = ClientConfig::new();
    // librdkafka tells the rest by its errors.
    settings.set_log_level(RDKafkaLogLevel::Warning);
    settings.set("bootstrap.servers", brokers.name());
    settings.set("client.id", CLIENT_ID);
    // It takes no less than a second.
    let connect_ms = cluster.connect_timeout.as_millis().clamp(1_000, 2_147_483_647);
    settings.set("socket.connection.setup.timeout.ms", connect_ms.to_string());
    settings.set("reconnect.backoff.max.ms", RECONNECT_MS_MAX);
    settings.set(
        "security.protocol",
        match (cluster.tls, cluster.user.is_some()) {
            (false, false) => "plaintext",
            (false, true) => "sasl_plaintext",
            (true, false) => "ssl",
            (true, true) => "sasl_ssl",
        },
    );
    if let Some(user) = &cluster.user {
        settings.set("sasl.mechanism", cluster.mechanism.name());
        settings.set("sasl.username", user);
        settings.set("sasl.password", cluster.password.reveal());
    }
    let files = [
        ("ssl.ca.location", &cluster.ca_file),
        ("ssl.certificate.location", &cluster.cert_file),
        ("ssl.key.location", &cluster.key_file),
    ];
    for (key, file) in files {
        if let Some(file) = file {
            settings.set(key, file.display().to_string());
        }
    }
    settings
}

/// What is wrong with settings that librdkafka does not take, without what they say.
pub(super) fn explain(error: KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(_, what, key, _) => format!("{key}: {what}"),
        other => other.to_string(),
    }
}

/// How it stands with a cluster, as far as its client was told.
#[derive(Debug)]
pub(super) struct Standing(watch::Sender<Known>);

/// What is known of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Why no broker can be reached, if none can.
    pub(super) away: Option<String>,
    /// Why brokers don't let us in, if they don't.
    pub(super) refused: Option<String>,
    /// Why the client is of no more use, if it isn't.
    pub(super) broken: Option<String>,
}

impl Default for Standing {
    fn default() -> Self {
        Self(watch::Sender::new(Known::default()))
    }
}

impl Standing {
    pub(super) fn known(&self) -> Known {
        self.0.borrow().clone()
    }

    /// Whether nothing speaks against sending.
    pub(super) fn is_fine(&self) -> bool {
        *self.0.borrow() == Known::default()
    }

    /// A broker has answered.
    pub(super) fn answered(&self) {
        self.0.send_modify(|known| {
            known.away = None;
            known.refused = None;
        });
    }

    /// Ends when something speaks against sending that nobody knew before.
    pub(super) async fn troubled(&self) -> Known {
        let mut known = self.0.subscribe();
        // The only error is that the sender is gone, and it is borrowed here.
        let _ = known.changed().await;
        known.borrow().clone()
    }

    /// Takes note of what librdkafka says of the cluster.
    pub(super) fn tell(&self, error: &KafkaError, reason: &str) {
        let Some(code) = error.rdkafka_error_code() else { return };
        let why = if reason.is_empty() { code.to_string() } else { reason.to_owned() };
        tracing::debug!(event = "kafka.troubled", "{code}: {why}");
        let note = |known: &mut Known| match code {
            RDKafkaErrorCode::AllBrokersDown => known.away = Some(why),
            RDKafkaErrorCode::Authentication | RDKafkaErrorCode::SaslAuthenticationFailed => {
                known.refused = Some(why);
            }
            RDKafkaErrorCode::Fatal => known.broken = Some(why),
            _ => {}
        };
        self.0.send_if_modified(|known| {
            let before = known.clone();
            note(known);
            before != *known
        });
    }
}

/// A line of librdkafka's own log.
pub(super) fn log(level: RDKafkaLogLevel, facility: &str, text: &str) {
    tracing::debug!(target: "librdkafka", ?level, facility, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::{Mechanism, Secret};

    #[test]
    fn a_login_and_certificates_are_told_to_librdkafka() {
        let brokers = Brokers::parse("k1,k2:1").unwrap();
        let plain = settings(&ClusterConfig::default(), &brokers);
        assert_eq!(plain.get("bootstrap.servers"), Some("k1:9092,k2:1"));
        assert_eq!(plain.get("security.protocol"), Some("plaintext"));
        assert_eq!(plain.get("sasl.username"), None);
        let config = ClusterConfig {
            tls: true,
            ca_file: Some("ca.pem".into()),
            user: Some("ada".to_owned()),
            password: Secret::new("secret"),
            mechanism: Mechanism::ScramSha512,
            ..ClusterConfig::default()
        };
        let secret = settings(&config, &brokers);
        assert_eq!(secret.get("security.protocol"), Some("sasl_ssl"));
        assert_eq!(secret.get("sasl.mechanism"), Some("SCRAM-SHA-512"));
        assert_eq!(secret.get("ssl.ca.location"), Some("ca.pem"));
        assert_eq!(secret.get("sasl.password"), Some("secret"));
    }
}
