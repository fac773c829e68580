//! Mail servers that answer late or never, end to end: no recipient gets more copies than the budget allows.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "story/mod.rs"]
mod story;

use std::time::Duration;

use serde_json::{Value, json};
use story::peer::{Peer, Sink};
use story::server::Place;
use story::until_some_within;

fn mail(key: &str) -> Value {
    let to = format!("{key}@example.net");
    json!({ "route": "email", "key": key,
            "email": { "from": "desk@example.org", "to": to, "subject": "Hello", "text": "It works." } })
}

/// The wait that the first release cut short: it sent a mail again every few seconds, without end.
#[test]
fn a_server_that_answers_after_twelve_seconds_gets_each_mail_once() {
    let peer = Sink::new();
    peer.tell("after dot slow 12s");
    let server = Place::outbox(&peer.url()).variable("REDELIVER_ROUTES__EMAIL__RETENTION", "1h").serve();
    let ids: Vec<String> = ["one", "two", "three"]
        .map(|key| server.post("/v1/messages", &mail(key)).json["id"].as_str().unwrap().to_owned())
        .into();
    for id in &ids {
        let message = until_some_within(Duration::from_secs(60), "the mail is delivered", || {
            Some(server.message(id)).filter(|message| message["status"] == "delivered")
        });
        assert_eq!((&message["attempts"], &message["possible_duplicates"]), (&json!(1), &json!(0)));
    }
    assert_eq!(peer.mails().len(), 3, "once each");
}

#[test]
fn a_server_that_never_answers_gets_a_mail_as_often_as_unconfirmed_max_says() {
    let peer = Sink::new();
    peer.tell("after dot hang");
    let impatient = [
        ("REDELIVER_TRANSPORTS__SMTP__CONNECT_TIMEOUT", "1s"),
        ("REDELIVER_TRANSPORTS__SMTP__COMMAND_TIMEOUT", "1s"),
        ("REDELIVER_TRANSPORTS__SMTP__DATA_TIMEOUT", "1s"),
        ("REDELIVER_POLICIES__EMAIL__BACKOFF", "[\"1s\"]"),
    ];
    let place =
        impatient.iter().fold(Place::outbox(&peer.url()), |place, (name, value)| place.variable(name, value));
    let server = place.serve();
    let id = server.post("/v1/messages", &mail("one")).json["id"].as_str().unwrap().to_owned();
    let message = until_some_within(Duration::from_secs(60), "the mail is dead", || {
        Some(server.message(&id)).filter(|message| message["status"] == "dead")
    });
    assert_eq!(message["dead_reason"], "uncertain", "{message}");
    assert_eq!((&message["attempts"], &message["possible_duplicates"]), (&json!(0), &json!(3)), "{message}");
    assert_eq!(peer.mails().len(), 3, "the default of unconfirmed_max");
}
