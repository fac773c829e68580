//! Traces of the real binary, as a collector has them: one span for each request and each try, in the caller's trace.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod collector;
mod process;

use collector::{Collector, Span};
use process::face::KEY;
use process::{BODY, Place, Process, Signal, until};
use serde_json::{Value, json};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

const CONFIG: &str = r#"
[transports.script]
kind = "scripted"
script = ["fail 451 later", "deliver"]

[policies.quick]
backoff = ["50ms"]
max_attempts = 3

[routes.email]
transport = "script"
policy = "quick"
"#;

fn place(endpoint: &str) -> Place {
    Place::new(CONFIG)
        .with_variable("REDELIVER_ADMIN_KEY", KEY)
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.to_owned().leak())
}

fn client() -> reqwest::blocking::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::blocking::Client::builder().no_proxy().build().unwrap()
}

/// Has a message accepted, within this trace.
fn send(server: &Process, traceparent: &str) -> Value {
    let message = json!({ "route": "email", "key": "k", "payload": BODY });
    let request = client().post(format!("{}/v1/messages", server.url())).bearer_auth(KEY);
    let answer = request.header("traceparent", traceparent).json(&message).send().unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    answer.json().unwrap()
}

fn metrics(server: &Process) -> String {
    client().get(format!("{}/metrics", server.url())).send().unwrap().text().unwrap()
}

#[test]
fn a_request_and_its_tries_are_spans_of_the_callers_trace() {
    let collector = Collector::start();
    let place = place(&collector.url);
    let server = place.serve();
    let accepted = send(&server, &format!("00-{TRACE}-{PARENT}-01"));
    let tries = || -> Vec<Span> { collector.spans().into_iter().filter(|s| s.name == "attempt").collect() };
    until("both tries are told", || tries().len() == 2);
    server.signal(Signal::TERM);
    let (status, log) = server.end();
    assert_eq!(status.code(), Some(0), "{log}");
    let spans = collector.spans();
    let request = spans.iter().find(|span| span.name == "POST /v1/messages").unwrap();
    assert_eq!((request.trace.as_str(), request.parent.as_str()), (TRACE, PARENT));
    assert_eq!(request.attributes["http.response.status_code"], "201");
    assert_eq!(request.attributes["http.route"], "/v1/messages");
    for (number, outcome) in [("1", "failed"), ("2", "delivered")] {
        let tries = tries();
        let span = tries.iter().find(|span| span.attributes["attempt"] == number).unwrap();
        assert_eq!((span.trace.as_str(), span.parent.as_str()), (TRACE, PARENT));
        let said = |name: &str| span.attributes[name].as_str();
        assert_eq!((said("route"), said("lane"), said("outcome")), ("email", "medium", outcome));
        assert_eq!(said("message.id"), accepted["id"].as_str().unwrap());
        assert_eq!(span.is_error, outcome == "failed");
    }
    assert_eq!(collector.services(), ["redeliver"]);
    let told = format!("{spans:?}");
    assert!(!told.contains(BODY) && !told.contains(KEY), "{told}");
}

#[test]
fn saying_it_again_in_another_trace_is_a_duplicate_and_no_conflict() {
    let collector = Collector::start();
    let place = place(&collector.url);
    let server = place.serve();
    let first = send(&server, &format!("00-{TRACE}-{PARENT}-01"));
    let again = send(&server, &format!("00-{}-{PARENT}-01", TRACE.replace('0', "1")));
    assert_eq!((&again["id"], &again["duplicate"]), (&first["id"], &json!(true)));
    let nonsense = send(&server, "nonsense");
    assert_eq!(nonsense["duplicate"], true);
}

#[test]
fn what_the_caller_does_not_sample_is_not_sent() {
    let collector = Collector::start();
    let place = place(&collector.url);
    let server = place.serve();
    send(&server, &format!("00-{TRACE}-{PARENT}-00"));
    until("it is delivered", || place.count("delivered") == 1);
    server.signal(Signal::TERM);
    assert_eq!(server.end().0.code(), Some(0));
    assert!(collector.spans().iter().all(|span| span.trace != TRACE), "{:?}", collector.spans());
}

#[test]
fn a_collector_that_is_busy_is_asked_again() {
    let collector = Collector::busy(1);
    let place = place(&collector.url);
    let server = place.serve();
    send(&server, &format!("00-{TRACE}-{PARENT}-01"));
    until("what it had no time for is told", || {
        collector.spans().iter().any(|span| span.name == "POST /v1/messages")
    });
    assert!(metrics(&server).contains("redeliver_spans_dropped_total 0\n"));
}

#[test]
fn a_collector_that_is_gone_holds_up_nothing_and_what_it_misses_is_counted() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = place(&format!("http://{nobody}"));
    let server = place.serve();
    send(&server, &format!("00-{TRACE}-{PARENT}-01"));
    until("it is delivered", || place.count("delivered") == 1);
    let is_counted = || {
        let metrics = metrics(&server);
        let dropped = metrics.lines().find_map(|line| line.strip_prefix("redeliver_spans_dropped_total "));
        dropped.is_some_and(|count| count != "0")
    };
    until("what was dropped is counted", is_counted);
    server.logs("the collector takes no traces");
    server.signal(Signal::TERM);
    let (status, log) = server.end();
    assert_eq!(status.code(), Some(0), "{log}");
    assert_eq!(log.matches("takes no traces").count(), 1, "once, not for every batch: {log}");
}

#[test]
fn a_collectors_address_with_a_login_is_refused_and_not_repeated() {
    let said = place("http://ada:secret@127.0.0.1:4318").run("check");
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("OTEL_EXPORTER_OTLP_HEADERS") && !said.err.contains("secret"), "{}", said.err);
}
