//! The API of the real binary: who gets in, where it listens, and how it ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use process::{Place, Process, Signal, until};

const ROUTE: &str = r#"
[transports.script]
kind = "scripted"

[policies.quick]
backoff = ["50ms"]
max_attempts = 3

[routes.email]
transport = "script"
policy = "quick"
"#;

/// The status of an answer, and its text.
fn ask(server: &Process, method: &str, path: &str, key: &str, body: &str) -> (u16, String) {
    server.logs("answering on http://");
    let log = server.log();
    let address = log.split("answering on http://").nth(1).unwrap();
    let address: String = address.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned())
}

#[test]
fn without_a_key_only_health_answers_and_a_key_that_is_made_beside_it_works_at_once() {
    let place = Place::new(ROUTE);
    let server = place.serve();
    server.logs("there is no key yet");
    for path in ["/healthz", "/readyz", "/metrics"] {
        // Not ready before the first heartbeat.
        until(path, || ask(&server, "GET", path, "", "").0 == 200);
    }
    let message = r#"{"route": "email", "payload": 1}"#;
    assert_eq!(ask(&server, "POST", "/v1/messages", "", message).0, 401);
    let made = place.run("keys create --name tests --role sender --workspace acme");
    assert_eq!(made.code, Some(0), "{}", made.err);
    let key = made.out.trim();
    let (status, told) = ask(&server, "POST", "/v1/messages", key, message);
    assert_eq!(status, 201, "{told}");
    let id = serde_json::from_str::<serde_json::Value>(&told).unwrap()["id"].as_str().unwrap().to_owned();
    until("it is delivered", || {
        ask(&server, "GET", &format!("/v1/messages/{id}"), key, "").1.contains("\"delivered\"")
    });
    let (_, metrics) = ask(&server, "GET", "/metrics", "", "");
    for words in ["redeliver_events_total{event=\"message.delivered\"", "redeliver_http_requests_total{"] {
        assert!(metrics.contains(words), "{words} in:\n{metrics}");
    }
    let listed = place.run("keys list --json");
    let keys: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    assert!(!listed.out.contains(key) && keys[0]["workspace"] == "acme", "{}", listed.out);
    let revoke = format!("keys revoke {}", keys[0]["id"].as_str().unwrap());
    assert_eq!(place.run(&revoke).code, Some(0));
    assert_eq!(place.run(&revoke).code, Some(1), "once");
    assert_eq!(ask(&server, "GET", "/v1/messages", key, "").0, 401);
    server.signal(Signal::TERM);
    let (status, log) = server.end();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains(key), "no key is ever logged");
}

#[test]
fn keys_are_made_listed_and_revoked_over_the_network_too_and_in_a_store_that_is_named() {
    let place = Place::new(ROUTE).with_variable("REDELIVER_ADMIN_KEY", "0123456789abcdef");
    let server = place.serve();
    let url = server.url();
    let far = place.with_variable("REDELIVER_KEY", "0123456789abcdef");
    let made = far.run(&format!("keys create --name ada --role viewer --workspace acme --url {url}"));
    assert_eq!((made.code, made.err.as_str()), (Some(0), ""));
    assert_eq!(ask(&server, "GET", "/v1/messages", made.out.trim(), "").0, 200);
    let listed = |more: &str| -> serde_json::Value {
        let said = far.run(&format!("keys list --json {more}"));
        assert_eq!(said.code, Some(0), "{}", said.err);
        serde_json::from_str(&said.out).unwrap()
    };
    let keys = listed(&format!("--url {url}"));
    assert_eq!((&keys[0]["name"], &keys[0]["workspace"]), (&"ada".into(), &"acme".into()));
    assert_eq!(keys, listed("--store sqlite:store.db"), "it is the same store");
    assert!(far.run(&format!("keys list --url {url}")).out.contains("acme"));
    let revoke = format!("keys revoke {} --url {url}", keys[0]["id"].as_str().unwrap());
    assert_eq!(far.run(&revoke).code, Some(0));
    assert_eq!(far.run(&revoke).code, Some(1), "once");
    assert_eq!(ask(&server, "GET", "/v1/messages", made.out.trim(), "").0, 401);
}

#[test]
fn the_first_key_comes_from_the_environment_and_is_long() {
    let place = Place::new(ROUTE).with_variable("REDELIVER_ADMIN_KEY", "0123456789abcdef");
    let server = place.serve();
    let (status, made) =
        ask(&server, "POST", "/v1/keys", "0123456789abcdef", r#"{"name": "ops", "role": "operator"}"#);
    assert_eq!((status, made.contains("rdk_")), (201, true), "{made}");
    assert!(!server.log().contains("0123456789abcdef"));
    let short = Place::new(ROUTE).with_variable("REDELIVER_ADMIN_KEY", "0123456789abcde").run("check");
    assert_eq!(short.code, Some(2));
    assert!(
        short.err.contains("at least 16 characters") && !short.err.contains("0123456789"),
        "{}",
        short.err
    );
}

#[test]
fn nobody_else_is_let_in_while_there_is_no_key() {
    let place = Place::new(ROUTE).with_variable("REDELIVER_HTTP__LISTEN", "0.0.0.0");
    let said = place.run("serve");
    assert_eq!(said.code, Some(1));
    for words in ["refusing to listen on 0.0.0.0", "redeliver keys create", "REDELIVER_ADMIN_KEY"] {
        assert!(said.err.contains(words), "{}", said.err);
    }
    assert_eq!(place.run("keys create --name tests --role admin").code, Some(0));
    let server = place.serve();
    server.logs("answering on http://0.0.0.0:");
}

#[test]
fn a_port_that_is_taken_is_named_with_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let place = Place::new(ROUTE).with_variable("HTTP_PORT", port.leak());
    let said = place.run("serve");
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("cannot listen on 127.0.0.1:") && said.err.contains("HTTP_PORT"),
        "{}",
        said.err
    );
}
