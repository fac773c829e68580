//! The example config says what the code does: every key, none but those, and each with its default.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::time::Duration;

use redeliver_cli::config::{
    Config, IntakeConfig, Loaded, RouteConfig, Sources, TableConfig, TransportConfig, load,
};
use redeliver_core::breaker::BreakerConfig;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Lane, Policy, Route};
use redeliver_gates::eligibility::{EligibilityConfig, Template};
use redeliver_transports::kafka::KafkaIntakeConfig;
use redeliver_transports::rabbitmq::RabbitmqIntakeConfig;
use redeliver_transports::redis::RedisIntakeConfig;
use redeliver_transports::scripted::ScriptedConfig;

const EXAMPLE: &str = include_str!("../../../redeliver.example.toml");

fn loaded() -> Loaded {
    let file = Some(("redeliver.example.toml".into(), EXAMPLE.to_owned()));
    load(&Sources { file, ..Sources::default() }).unwrap()
}

fn policy(backoff: Backoff) -> Policy {
    Policy { backoff, jitter: Jitter::None, max_attempts: 4, expires_after: None }
}

/// A route with the defaults of a transport whose receivers can recognise a repeat.
fn through_a_broker(route: Route, send_timeout_s: u64) -> Route {
    Route { send_timeout: Duration::from_secs(send_timeout_s), unconfirmed_max: 20, ..route }
}

#[test]
fn the_example_is_the_default_config_with_its_routes() {
    let seconds = Duration::from_secs;
    let steps = policy(Backoff::Table([60, 300, 900].map(seconds).to_vec()));
    let doubling = policy(Backoff::Exponential { base: seconds(2), factor: 2.0, cap: seconds(60) });
    let email = RouteConfig {
        route: Route { send_timeout: seconds(705), ..Route::new("email", "smtp", steps.clone()) },
        policies: [(); 4].map(|()| "steps".into()),
        eligibility: None,
    };
    let dead = RouteConfig {
        route: Route {
            breaker: Some(BreakerConfig::default()),
            ..Route::new("dead", "script", doubling.clone())
        },
        policies: [(); 4].map(|()| "doubling".into()),
        eligibility: None,
    };
    let orders = RouteConfig {
        route: through_a_broker(Route::new("orders", "rabbitmq", doubling.clone()), 40),
        policies: [(); 4].map(|()| "doubling".into()),
        eligibility: Some(EligibilityConfig {
            path: Template::parse("/devices/{device_id}").unwrap(),
            ..EligibilityConfig::default()
        }),
    };
    let retry = RabbitmqIntakeConfig {
        queue: "retry.scheduled".to_owned(),
        route: "orders".into(),
        rejects: "dead".into(),
        ..RabbitmqIntakeConfig::default()
    };
    let devices = RouteConfig {
        route: through_a_broker(Route::new("devices", "kafka", doubling.clone()), 20),
        policies: [(); 4].map(|()| "doubling".into()),
        eligibility: None,
    };
    let kafka = KafkaIntakeConfig {
        topic: "notifications.failed".to_owned(),
        rejects: "dead".into(),
        ..KafkaIntakeConfig::default()
    };
    let alerts = RouteConfig {
        route: through_a_broker(Route::new("alerts", "redis", doubling.clone()), 20),
        policies: [(); 4].map(|()| "doubling".into()),
        eligibility: None,
    };
    let redis = RedisIntakeConfig {
        stream: "notifications.failed".to_owned(),
        rejects: "dead".into(),
        ..RedisIntakeConfig::default()
    };
    let expected = Config {
        transports: [
            ("kafka".into(), TransportConfig::Kafka(Box::default())),
            ("rabbitmq".into(), TransportConfig::Rabbitmq(Box::default())),
            ("redis".into(), TransportConfig::Redis(Box::default())),
            ("script".into(), TransportConfig::Scripted(ScriptedConfig::default())),
            ("smtp".into(), TransportConfig::Smtp(Box::default())),
        ]
        .into(),
        policies: [("steps".into(), steps), ("doubling".into(), doubling)].into(),
        tables: [("email-log".into(), TableConfig::default())].into(),
        routes: [
            ("email".into(), email),
            ("dead".into(), dead),
            ("orders".into(), orders),
            ("alerts".into(), alerts),
            ("devices".into(), devices),
        ]
        .into(),
        intakes: [
            ("retry".into(), IntakeConfig::Rabbitmq(Box::new(retry))),
            ("redis".into(), IntakeConfig::Redis(Box::new(redis))),
            ("kafka".into(), IntakeConfig::Kafka(Box::new(kafka))),
        ]
        .into(),
        ..Config::default()
    };
    let loaded = loaded();
    assert_eq!(loaded.config, expected);
    assert_eq!(loaded.warnings, []);
}

#[test]
fn an_empty_file_is_the_default_config() {
    let file = Some(("empty.toml".into(), String::new()));
    assert_eq!(load(&Sources { file, ..Sources::default() }).unwrap().config, Config::default());
}

#[test]
fn every_key_is_in_the_example() {
    let lanes = Lane::ALL.map(|lane| format!(".lanes.{}", lane.name()));
    let any_lane =
        |key: &String| lanes.iter().fold(key.clone(), |key, lane| key.replace(lane.as_str(), ".lanes.*"));
    let known: BTreeSet<String> = loaded().known.iter().map(any_lane).collect();
    let mut written = BTreeSet::new();
    walk("", &toml::from_str(EXAMPLE).unwrap(), &mut written);
    let missing: Vec<&String> = known.difference(&written).collect();
    assert!(missing.is_empty(), "known to the code, missing in redeliver.example.toml: {missing:?}");
}

/// Every path in a table, with `*` for the names that people choose and for lanes.
fn walk(path: &str, table: &toml::Table, written: &mut BTreeSet<String>) {
    let chosen =
        ["intakes", "transports", "policies", "routes", "tables"].contains(&path) || path.ends_with(".lanes");
    for (key, value) in table {
        let key = if chosen { "*" } else { key };
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        if let toml::Value::Table(inner) = value {
            walk(&path, inner, written);
        }
        written.insert(path);
    }
}
