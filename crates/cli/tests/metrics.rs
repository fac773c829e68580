//! `/metrics` of the real binary: every name that people build alerts on, in a form that Prometheus reads.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use std::collections::{BTreeMap, BTreeSet};

use process::face::KEY;
use process::{Place, Process, Signal, until};
use serde_json::json;

const CONFIG: &str = r#"
[transports.script]
kind = "scripted"
script = ["fail 451 later", "deliver"]

[transports.no]
kind = "scripted"
script = ["refuse 550 nobody"]

[transports.locked]
kind = "scripted"
script = ["refuse_login 535 who"]

[transports.stuck]
kind = "scripted"
script = ["hang", "deliver"]

[policies.quick]
backoff = ["50ms"]
max_attempts = 3

[routes.email]
transport = "script"
policy = "quick"

[routes.sms]
transport = "no"
policy = "quick"

[routes.post]
transport = "locked"
policy = "quick"

[routes.slow]
transport = "stuck"
policy = "quick"
"#;

/// What was scraped: samples by name and labels.
type Samples = BTreeMap<String, f64>;

fn client() -> reqwest::blocking::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::blocking::Client::builder().no_proxy().build().unwrap()
}

fn scrape(server: &Process) -> Samples {
    parse(&client().get(format!("{}/metrics", server.url())).send().unwrap().text().unwrap())
}

fn post(server: &Process, path: &str, body: &serde_json::Value) {
    let request = client().post(format!("{}{path}", server.url())).bearer_auth(KEY);
    let answer = request.json(body).send().unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
}

/// Reads the text format, and holds it against its rules: a metric has one HELP, then one TYPE, then its samples.
fn parse(text: &str) -> Samples {
    let (mut helped, mut typed) = (BTreeSet::new(), BTreeMap::new());
    let mut samples = Samples::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(helped.insert(name.to_owned()) && help.ends_with('.'), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(helped.contains(name), "no HELP before {line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(typed.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            check_labels(labels.strip_suffix('}').unwrap());
            let is_of = |known: &str| {
                let parts = ["_bucket", "_sum", "_count"];
                name == known
                    || (typed[known] == "histogram" && parts.iter().any(|p| name == format!("{known}{p}")))
            };
            assert!(typed.keys().any(|known| is_of(known)), "no TYPE before {line}");
            assert!(samples.insert(series.to_owned(), value.parse().unwrap()).is_none(), "twice: {line}");
        }
    }
    samples
}

/// Labels are `name="value"`, with commas in between and nothing that would have to be escaped.
fn check_labels(labels: &str) {
    for label in labels.split(',').filter(|label| !label.is_empty()) {
        let (name, value) = label.split_once('=').unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{label}");
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap();
        assert!(!value.contains(['"', '\\']), "{label}");
    }
}

#[test]
fn every_promised_metric_is_there_and_counts_what_it_says() {
    let place = Place::new(CONFIG).with_variable("REDELIVER_ADMIN_KEY", KEY);
    let server = place.serve();
    let fresh = scrape(&server);
    for zero in [
        r#"redeliver_attempts_total{route="email",outcome="delivered"}"#,
        r#"redeliver_dead_total{route="sms",reason="refused"}"#,
        r#"redeliver_leases_lost_total{route="email"}"#,
        r#"redeliver_gates_closed{gate="pause",scope="route"}"#,
        r#"redeliver_gates_closed{gate="breaker",scope="destination"}"#,
        "redeliver_store_failures_total",
    ] {
        assert_eq!(fresh.get(zero), Some(&0.0), "{zero} before anything has happened");
    }
    for route in ["email", "sms", "post"] {
        post(&server, "/v1/messages", &json!({ "route": route, "payload": 1 }));
    }
    post(&server, "/v1/routes/slow/pause", &json!({}));
    let expected = [
        (r#"redeliver_attempts_total{route="email",outcome="failed"}"#, 1.0),
        (r#"redeliver_attempts_total{route="sms",outcome="refused"}"#, 1.0),
        (r#"redeliver_dead_total{route="sms",reason="refused"}"#, 1.0),
        (r#"redeliver_dead{route="sms",lane="medium",reason="refused"}"#, 1.0),
        (r#"redeliver_messages{route="sms",lane="medium",state="dead"}"#, 1.0),
        (r#"redeliver_gates_closed{gate="pause",scope="route"}"#, 1.0),
        (r#"redeliver_gates_closed{gate="hold",scope="destination"}"#, 1.0),
        (r#"redeliver_attempts_total{route="email",outcome="delivered"}"#, 1.0),
        // Every carrying, whatever it came to.
        (r#"redeliver_lateness_seconds_count{route="sms"}"#, 1.0),
        (r#"redeliver_lateness_seconds_count{route="email"}"#, 2.0),
        (r#"redeliver_events_total{event="message.dead",route="sms"}"#, 1.0),
        (r#"redeliver_http_requests_total{method="POST",path="/v1/messages",status="201"}"#, 3.0),
    ];
    let is_told = |samples: &Samples| expected.iter().all(|(key, value)| samples.get(*key) == Some(value));
    let mut last = Samples::new();
    until("all of it is told", || {
        last = scrape(&server);
        is_told(&last)
    });
    for edge in ["0.001", "1", "60", "3600", "+Inf"] {
        let bucket = format!(r#"redeliver_lateness_seconds_bucket{{route="email",le="{edge}"}}"#);
        assert!(last.contains_key(&bucket), "{bucket} in {last:#?}");
    }
}

#[test]
fn a_lease_that_a_killed_process_lost_is_counted_by_the_next() {
    let place = Place::new(CONFIG).with_variable("REDELIVER_ADMIN_KEY", KEY);
    let server = place.serve();
    place.accept("slow", 1..3);
    until("they are in the air", || place.count("claimed") == 2);
    server.signal(Signal::KILL);
    server.end();
    let server = place.serve();
    until("they are delivered", || place.count("delivered") == 2);
    let is_told = || {
        let samples = scrape(&server);
        samples[r#"redeliver_leases_lost_total{route="slow"}"#] == 2.0
            && samples[r#"redeliver_attempts_total{route="slow",outcome="delivered"}"#] == 2.0
    };
    until("both are counted", is_told);
}
