//! What the real binary writes while it serves, for machines: one object a line, ids as fields, nothing secret.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use process::face::KEY;
use process::{BODY, Place, Signal, until};
use serde_json::{Value, json};

const CONFIG: &str = r#"
[transports.script]
kind = "scripted"
script = ["fail 451 later", "deliver"]

[transports.no]
kind = "scripted"
script = ["refuse 550 nobody"]

[policies.quick]
backoff = ["50ms"]
max_attempts = 3

[routes.email]
transport = "script"
policy = "quick"

[routes.sms]
transport = "no"
policy = "quick"

[log]
format = "json"
filter = "info,redeliver_engine=debug,redeliver_server=debug,redeliver_cli=debug"
"#;

#[test]
fn every_line_of_a_served_story_is_an_event_with_its_ids() {
    let place = Place::new(CONFIG).with_variable("REDELIVER_ADMIN_KEY", KEY);
    let server = place.serve();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::blocking::Client::builder().no_proxy().build().unwrap();
    let ask = |path: &str, key: &str, body: &Value| {
        client.post(format!("{}{path}", server.url())).bearer_auth(key).json(body).send().unwrap()
    };
    let mut ids = Vec::new();
    for route in ["email", "sms"] {
        let message = json!({ "route": route, "key": route, "attributes": { "to": "ada@example.org" }, "payload": BODY });
        let accepted: Value = ask("/v1/messages", KEY, &message).json().unwrap();
        ids.push(accepted["id"].as_str().unwrap().to_owned());
        assert_eq!(ask("/v1/messages", KEY, &message).status(), 200, "said again");
    }
    assert_eq!(ask("/v1/messages", "a-key-that-is-wrong", &json!({})).status(), 401);
    until("both have ended", || place.count("delivered") == 1 && place.count("dead") == 1);
    server.signal(Signal::TERM);
    let (status, log) = server.end();
    assert_eq!(status.code(), Some(0), "{log}");
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    for line in &lines {
        for field in ["timestamp", "level", "event", "message", "target"] {
            assert!(line[field].is_string(), "{field} in {line}");
        }
    }
    let told = |event: &str, id: &str| {
        let has = |line: &&Value| line["event"] == event && line["id"] == id;
        let line = lines.iter().find(has).unwrap_or_else(|| panic!("{event} of {id} in:\n{log}"));
        assert!(line["route"].is_string() && line["lane"] == "medium" && line["attempts"].is_u64(), "{line}");
    };
    told("message.accepted", &ids[0]);
    told("attempt.failed", &ids[0]);
    told("message.delivered", &ids[0]);
    told("message.dead", &ids[1]);
    for secret in [BODY, KEY, "a-key-that-is-wrong", "ada@example.org"] {
        assert!(!log.contains(secret), "{secret} in:\n{log}");
    }
}
