//! The server is killed in the middle of retrying many messages, twice. It goes on where it was, and does nothing twice:
//! not even to those that are dead again by then.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a story that can't go on has failed")]

#[path = "story/mod.rs"]
mod story;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use story::peer::{Peer, Sink};
use story::server::{Place, Server};
use story::{until, until_some};

const MESSAGES: usize = 200;
/// How many are done when the server is killed.
const KILLED_AT: [u64; 2] = [30, 100];

/// A mail whose tries were used up elsewhere: it is dead when it comes.
fn dead_mail(number: usize) -> Value {
    json!({ "route": "email", "key": format!("mail-{number}"), "attempts": 6, "error": "451 try again later",
        "email": { "from": "desk@example.org", "to": "ada@example.net", "subject": "tour", "text": "hello" } })
}

fn standing(server: &Server, bulk: &str) -> Value {
    server.get(&format!("/v1/bulk/{bulk}")).json
}

#[test]
fn a_bulk_operation_survives_kills_and_does_nothing_twice() {
    let sink = Sink::new();
    // Whatever is retried is dead again at once, and would be retried again by whoever forgot.
    sink.tell("refuse");
    let place = Place::outbox(&sink.url())
        .variable("REDELIVER_ROUTES__EMAIL__RETENTION", "1h")
        .variable("REDELIVER_LOG__FILTER", "warn,redeliver_cli=info");
    let mut server = place.serve();
    let mails: Vec<Value> = (0..MESSAGES).map(dead_mail).collect();
    let answer = server.post("/v1/messages", &Value::Array(mails));
    let ids: Vec<String> = answer
        .json
        .as_array()
        .unwrap()
        .iter()
        .map(|accepted| accepted["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), MESSAGES);

    let wanted = json!({ "action": "retry", "filter": { "status": "dead" }, "rate_per_s": 20 });
    let begun = server.post("/v1/bulk", &wanted);
    assert_eq!(begun.status, 202, "{}", begun.json);
    let bulk = begun.json["id"].as_str().unwrap().to_owned();
    for done in KILLED_AT {
        until("it has come so far", || standing(&server, &bulk)["done"].as_u64().unwrap() >= done);
        assert_eq!(standing(&server, &bulk)["standing"], "running", "it is in the middle");
        server.kill();
        server = place.serve();
    }
    let ended =
        until_some("it is done", || Some(standing(&server, &bulk)).filter(|bulk| bulk["standing"] == "done"));
    until("nothing is on its way", || {
        let total = &server.get("/v1/stats").json["total"];
        total["waiting"] == 0 && total["sending"] == 0
    });

    let mut deeds: BTreeMap<String, usize> = BTreeMap::new();
    let audit = server.get("/v1/audit?limit=500").json;
    for deed in audit["items"].as_array().unwrap() {
        if deed["action"] == "retry" {
            *deeds.entry(deed["subject"].as_str().unwrap().to_owned()).or_default() += 1;
        } else {
            assert_eq!(
                (&deed["action"], &deed["subject"]),
                (&json!("bulk_retry"), &json!(format!("bulk:{bulk}")))
            );
        }
    }
    for id in &ids {
        assert_eq!(deeds.get(id), Some(&1), "{id} was retried once");
        let history = server.get(&format!("/v1/messages/{id}/attempts")).json;
        let refused = history["items"].as_array().unwrap().iter().filter(|one| one["outcome"] == "refused");
        assert_eq!(refused.count(), 1, "{history}");
    }
    // What was done and not noted before a kill is found to be done.
    let (done, skipped) = (ended["done"].as_u64().unwrap(), ended["skipped"].as_u64().unwrap());
    assert!(done <= MESSAGES as u64 && done + skipped >= MESSAGES as u64, "{ended}");
    println!(
        "{} kills, {MESSAGES} messages, {done} noted as done, {skipped} found to be done already",
        KILLED_AT.len()
    );
    assert_eq!(server.stop().matches("panicked").count(), 0);
}
