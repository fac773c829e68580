//! The environment as a config: `REDELIVER_STORE__URL` is `store.url`, and a few names that others already use.

use std::collections::BTreeSet;

use super::problem::{Findings, Place};
use super::source::{Entry, Node, Table, Value};

/// Names that stand for a key without spelling it. The spelled-out name wins over them. Those of a transport say
/// something about one that the config has, and make none.
pub const ALIASES: &[(&str, &[&str])] = &[
    ("DATABASE_URL", &["store", "url"]),
    ("HTTP_PORT", &["http", "port"]),
    ("REDELIVER_ADMIN_KEY", &["http", "admin_key"]),
    ("RABBITMQ_URL", &["transports", "rabbitmq", "url"]),
    ("RABBITMQ_URL", &["intakes", "retry", "url"]),
    ("KAFKA_BROKERS", &["transports", "kafka", "brokers"]),
    ("KAFKA_BROKERS", &["transports", "kafka-letters", "brokers"]),
    ("KAFKA_BROKERS", &["intakes", "kafka", "brokers"]),
    ("KAFKA_BROKERS", &["intakes", "kafka-reports", "brokers"]),
    ("REDIS_URL", &["transports", "redis", "url"]),
    ("REDIS_URL", &["intakes", "redis", "url"]),
    ("REDIS_URL", &["intakes", "redis-reports", "url"]),
    ("RETRY_QUEUE", &["intakes", "retry", "queue"]),
    ("DEFAULT_MAX_RETRIES", &["intakes", "retry", "max_retries"]),
    ("MANUAL_REVIEW_QUEUE", &["routes", "manual-review", "target"]),
    ("DEVICE_SERVICE_URL", &["routes", "notification", "eligibility", "url"]),
    ("SMTP_URL", &["transports", "smtp", "url"]),
    ("RetryIntervalSeconds", &["tables", "email-log", "retry_interval"]),
    ("MaxAttempts", &["policies", "email-log", "max_attempts"]),
    ("BackoffSchedule", &["policies", "email-log", "backoff"]),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", &["telemetry", "otlp_endpoint"]),
    ("SERVICE_NAME", &["telemetry", "service_name"]),
];

/// The same for spans that are written as a number of milliseconds.
pub const ALIASES_MS: &[(&str, &[&str])] = &[
    ("BASE_DELAY_MS", &["policies", "broker", "backoff", "base"]),
    ("MAX_DELAY_MS", &["policies", "broker", "backoff", "cap"]),
    ("RETRY_POLL_INTERVAL_MS", &["engine", "poll_interval"]),
];

const PREFIX: &str = "REDELIVER_";
const BETWEEN: &str = "__";

/// The environment's variables with their values, in any order.
pub type Variables = Vec<(String, String)>;

/// Lays what the environment says over a config. An empty variable says nothing.
///
/// Only names with a `__` spell a key: others with our prefix belong to the command line, or to whoever runs us.
pub fn lay_over(table: &mut Table, variables: &Variables) {
    let said = || variables.iter().filter(|(_, value)| !value.is_empty());
    for (alias, path) in ALIASES {
        let is_there = path.len() < 3 || has(table, &path[..path.len() - 1]);
        if let Some((name, value)) = said().find(|(name, _)| name == alias && is_there) {
            put(table, path, name, value);
        }
    }
    for (alias, path) in ALIASES_MS {
        let is_there = path.len() < 3 || has(table, &path[..path.len() - 1]);
        if let Some((name, value)) = said().find(|(name, _)| name == alias && is_there) {
            put(table, path, name, &format!("{value}ms"));
        }
    }
    let mut spelled: Vec<_> = said().filter(|(name, _)| name.starts_with(PREFIX)).collect();
    spelled.sort();
    for (name, value) in spelled {
        let path: Vec<&str> = name[PREFIX.len()..].split(BETWEEN).collect();
        if path.len() > 1 {
            put(table, &path, name, value);
        }
    }
}

/// Warns of variables that would spell a key if they had `__` where they have `_`.
pub fn warn_of_slips(variables: &Variables, known: &BTreeSet<String>, findings: &Findings) {
    for (name, _) in variables.iter().filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty()) {
        let spelled =
            |key: &&String| format!("{PREFIX}{}", key.replace('.', "_").to_ascii_uppercase()) == *name;
        if let Some(key) = known.iter().find(spelled) {
            let right = key.replace('.', BETWEEN).to_ascii_uppercase();
            let slip = format!("it is not used: {key} is spelled {PREFIX}{right}");
            findings.warning(&Place::Variable(name.as_str().into()), slip);
        }
    }
}

/// Whether there is a table at this path.
fn has(table: &Table, path: &[&str]) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    match table.get(first) {
        Some(Entry { node: Node { value: Value::Table(inner), .. }, .. }) => has(inner, rest),
        _ => false,
    }
}

fn put(table: &mut Table, path: &[&str], name: &str, value: &str) {
    let Some((first, rest)) = path.split_first() else { return };
    let place = Place::Variable(name.into());
    let key = spelled_as(table, first);
    let node = match rest {
        [] => Node { place: place.clone(), value: Value::Bare(value.to_owned()) },
        _ => {
            let mut inner = match table.entries.iter_mut().find(|entry| entry.key == key) {
                Some(Entry { node: Node { value: Value::Table(inner), .. }, .. }) => {
                    return put(inner, rest, name, value);
                }
                _ => Table::default(),
            };
            put(&mut inner, rest, name, value);
            Node { place: place.clone(), value: Value::Table(inner) }
        }
    };
    table.lay_over(Table { entries: vec![Entry { key, place, node }] });
}

/// The key that a variable's part means: variables know neither small letters nor `-` and `.`.
fn spelled_as(table: &Table, part: &str) -> String {
    let plain = |key: &str| key.to_ascii_lowercase().replace(['-', '.'], "_");
    let known = table.entries.iter().find(|entry| plain(&entry.key) == plain(part));
    known.map_or_else(|| part.to_ascii_lowercase(), |entry| entry.key.clone())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redeliver_core::Lane;
    use redeliver_core::policy::Backoff;

    use super::*;
    use crate::config::source::Text;
    use crate::config::{IntakeConfig, Sources, load, profiles};

    fn value(table: &Table, path: &[&str]) -> String {
        let entry = table.get(path[0]).unwrap();
        match (&entry.node.value, path.len()) {
            (Value::Table(inner), 2..) => value(inner, &path[1..]),
            (Value::Text(text) | Value::Bare(text), 1) => format!("{text} ({})", entry.place),
            other => panic!("{other:?}"),
        }
    }

    fn lay(text: &str, variables: &[(&str, &str)]) -> Table {
        let mut table = Text { source: 0, name: "f".into(), text }.parse(&Findings::default());
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        lay_over(&mut table, &variables);
        table
    }

    #[test]
    fn a_variable_wins_over_the_file_and_the_spelled_out_name_over_its_alias() {
        let url = |variables: &[(&str, &str)]| value(&lay("store.url = 'a'", variables), &["store", "url"]);
        assert_eq!(url(&[]), "a (f:1:7)");
        assert_eq!(url(&[("DATABASE_URL", "b")]), "b (environment variable DATABASE_URL)");
        assert_eq!(
            url(&[("REDELIVER_STORE__URL", "c"), ("DATABASE_URL", "b")]),
            "c (environment variable REDELIVER_STORE__URL)"
        );
        assert_eq!(url(&[("DATABASE_URL", "")]), "a (f:1:7)");
    }

    #[test]
    fn names_with_dashes_and_dots_are_found() {
        let table =
            lay("[routes.\"e-mail.eu\"]\nlease = '1m'", &[("REDELIVER_ROUTES__E_MAIL_EU__LEASE", "2m")]);
        let lease = value(&table, &["routes", "e-mail.eu", "lease"]);
        assert!(lease.starts_with("2m"), "{lease}");
    }

    #[test]
    fn what_spells_no_key_is_left_alone() {
        let table = lay("", &[("REDELIVER_PORT", "tcp://10.0.0.1"), ("REDELIVER_KEY", "k"), ("HOME", "/")]);
        assert!(table.entries.is_empty());
    }

    #[test]
    fn a_variable_that_nearly_spells_a_key_is_warned_of() {
        let known = BTreeSet::from(["store.url".to_owned(), "store".to_owned()]);
        let variables = ["REDELIVER_STORE_URL", "REDELIVER_PORT", "REDELIVER_STORE__URL"];
        let findings = Findings::default();
        warn_of_slips(&variables.map(|name| (name.to_owned(), "x".to_owned())).to_vec(), &known, &findings);
        let warnings: Vec<String> =
            findings.into_warnings().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            ["environment variable REDELIVER_STORE_URL: warning: it is not used: \
              store.url is spelled REDELIVER_STORE__URL"]
        );
    }

    #[test]
    fn the_names_of_the_broker_retry_document_set_what_they_say() {
        let said = [
            ("SERVICE_NAME", "retries"),
            ("HTTP_PORT", "9000"),
            ("RABBITMQ_URL", "amqp://mq"),
            ("RETRY_QUEUE", "retry.here"),
            ("MANUAL_REVIEW_QUEUE", "review.here"),
            ("DEFAULT_MAX_RETRIES", "5"),
            ("BASE_DELAY_MS", "100"),
            ("MAX_DELAY_MS", "2000"),
            ("RETRY_POLL_INTERVAL_MS", "250"),
        ];
        let sources = Sources {
            profile: profiles::find("broker-retry"),
            variables: said.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            ..Sources::default()
        };
        let config = load(&sources).unwrap().config;
        assert_eq!((config.telemetry.service_name.as_str(), config.http.port), ("retries", 9_000));
        assert_eq!(config.engine.poll_interval, Duration::from_millis(250));
        let IntakeConfig::Rabbitmq(intake) = &config.intakes["retry"] else { panic!("{:?}", config.intakes) };
        assert_eq!((intake.queue.as_str(), intake.max_retries), ("retry.here", 5));
        assert_eq!(intake.broker.broker.as_ref().map(|broker| broker.host.as_str()), Some("mq"));
        let review = config.routes["manual-review"].route.travel(Lane::Medium);
        assert_eq!(review.target.as_deref(), Some("review.here"));
        let (base, cap) = (Duration::from_millis(100), Duration::from_secs(2));
        assert_eq!(config.policies["broker"].backoff, Backoff::Exponential { base, factor: 2.0, cap });
    }

    #[test]
    fn a_variable_makes_the_tables_that_it_needs() {
        let table = lay("", &[("REDELIVER_ROUTES__SMS__LANES__LOW__TARGET", "q")]);
        assert!(value(&table, &["routes", "sms", "lanes", "low", "target"]).starts_with("q "));
    }
}
