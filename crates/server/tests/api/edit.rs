//! A message that was hopeless is corrected and sent again, and what it said is not lost.

use redeliver_core::edit::EDITS_MAX;
use redeliver_engine::access::Role;
use redeliver_server::limits::Limits;
use serde_json::{Value, json};

use crate::rig::{ADMIN, Answer, Rig};

/// A mail that is dead on arrival.
const MAIL: &str = r#"{"route": "email", "key": "booking-17", "attempts": 3, "error": "550 no such user",
    "attributes": {"tour": "7"},
    "email": {"to": ["ada@exmaple.org", {"address": "bob@example.org", "name": "Bob"}], "subject": "Hi", "text": "the-secret-body"}}"#;

async fn edit(rig: &Rig, id: &str, body: &Value) -> Answer {
    rig.post(&format!("/v1/messages/{id}/edit"), &body.to_string()).await
}

async fn version(rig: &Rig, id: &str) -> u64 {
    rig.get(&format!("/v1/messages/{id}")).await.json()["version"].as_u64().unwrap()
}

#[tokio::test]
async fn a_refused_message_is_corrected_and_arrives() {
    let rig = Rig::running().await;
    let id = rig.accept(r#"{"route": "email", "payload": "refuse"}"#).await;
    let dead = rig.until(&id, "dead").await;
    let said = json!({ "version": dead["version"], "payload": "take it", "route": "sms" });
    let answer = edit(&rig, &id, &said).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let delivered = rig.until(&id, "delivered").await;
    assert_eq!((&delivered["route"], &delivered["attempts"]), (&json!("sms"), &json!(1)));
    let edits = rig.get(&format!("/v1/messages/{id}/edits")).await.json();
    let differences = json!([
        { "field": "route", "before": "email", "after": "sms" },
        { "field": "payload", "before": "\"refuse\"", "after": "\"take it\"" },
    ]);
    assert_eq!(edits["items"][0]["differences"], differences);
    assert_eq!((&edits["items"][0]["generation"], edits["items"].as_array().unwrap().len()), (&json!(1), 1));
    let deed = rig.get("/v1/audit?limit=1").await.json()["items"][0].take();
    assert_eq!((&deed["action"], &deed["detail"]), (&json!("edit"), &json!("route, payload")));
    assert_eq!(
        rig.get(&format!("/v1/messages/{id}/attempts")).await.json()["items"][0]["outcome"],
        "refused"
    );
}

#[tokio::test]
async fn a_dry_run_shows_the_difference_and_changes_nothing() {
    let rig = Rig::still();
    let id = rig.accept(MAIL).await;
    let email = json!({ "to": "ada@example.org", "subject": "Hello", "html": "<p>x</p>" });
    let said =
        json!({ "version": 0, "dry_run": true, "email": email, "attributes": { "tour": null, "stop": "3" } });
    let answer = edit(&rig, &id, &said).await.json();
    assert_eq!((&answer["dry_run"], &answer["message"]["status"]), (&json!(true), &json!("dead")));
    let bob = json!({ "address": "bob@example.org", "name": "Bob" });
    let differences = json!([
        { "field": "attributes.stop", "before": null, "after": "3" },
        { "field": "attributes.tour", "before": "7", "after": null },
        { "field": "email.html", "before": null, "after": "<p>x</p>" },
        { "field": "email.subject", "before": "Hi", "after": "Hello" },
        { "field": "email.to", "before": ["ada@exmaple.org", bob], "after": ["ada@example.org"] },
    ]);
    assert_eq!(answer["differences"], differences);
    assert_eq!(version(&rig, &id).await, 0);
    assert_eq!(rig.get(&format!("/v1/messages/{id}/edits")).await.json()["items"], json!([]));
}

#[tokio::test]
async fn of_two_who_correct_at_once_the_second_is_told_to_look_again() {
    let rig = Rig::still();
    let id = rig.accept(MAIL).await;
    let said = |subject: &str| json!({ "version": 0, "email": { "subject": subject } });
    assert_eq!(edit(&rig, &id, &said("one")).await.status, 200);
    let late = edit(&rig, &id, &said("two")).await;
    assert_eq!(late.status, 409);
    assert!(late.text.contains("has changed since version 0"), "{}", late.text);
    let full = rig.get(&format!("/v1/messages/{id}?content=full")).await.json();
    assert_eq!(full["content"]["email"]["subject"], "one");
    // The same key with the first content is the same message, whatever a person made of it.
    let again = rig.post("/v1/messages", MAIL).await;
    assert_eq!((again.status.as_u16(), &again.json()["id"]), (200, &json!(id)));
}

#[tokio::test]
async fn whatever_would_be_refused_as_new_is_refused_as_a_correction() {
    let rig = Rig::still();
    let mail = rig.accept(MAIL).await;
    let bytes = rig.accept(r#"{"route": "sms", "attempts": 3, "payload": 1}"#).await;
    let long = "x".repeat(2_001);
    for (id, said, field) in [
        (&mail, json!({}), "version"),
        (&mail, json!({ "version": "0" }), "version"),
        (&mail, json!({ "version": 0, "email": { "to": "no address" } }), "email.to[0].address"),
        (&mail, json!({ "version": 0, "email": { "to": null } }), "email.to"),
        (
            &mail,
            json!({ "version": 0, "email": { "subject": "a\r\nBcc: eve@example.org" } }),
            "email.subject",
        ),
        (&mail, json!({ "version": 0, "email": { "subject": long } }), "email.subject"),
        (&mail, json!({ "version": 0, "email": { "colour": "red" } }), "email.colour"),
        (&mail, json!({ "version": 0, "email": [1] }), "email"),
        (&mail, json!({ "version": 0, "payload": 1 }), "payload"),
        (&mail, json!({ "version": 0, "content_type": "text/plain" }), "content_type"),
        (&mail, json!({ "version": 0, "route": "fax" }), "route"),
        (&mail, json!({ "version": 0, "attributes": { "a\n": "b" } }), "attributes"),
        (&mail, json!({ "version": 0, "key": "another" }), "key"),
        (&mail, json!({ "version": 0, "workspace": "another" }), "workspace"),
        (&bytes, json!({ "version": 0, "email": { "subject": "x" } }), "email"),
        (&bytes, json!({ "version": 0, "target": "" }), "target"),
        (&bytes, json!({ "version": 0, "payload_base64": "?" }), "payload_base64"),
        (&bytes, json!({ "version": 0, "payload": 1, "payload_base64": "" }), "payload"),
        (
            &bytes,
            json!({ "version": 0, "content_type": "application/vnd.redeliver.email+json" }),
            "content_type",
        ),
        (
            &bytes,
            json!({ "version": 0, "content_type": "application/vnd.redeliver.campaign-step" }),
            "content_type",
        ),
    ] {
        let answer = edit(&rig, id, &said).await;
        assert_eq!(answer.status, 422, "{said}: {}", answer.text);
        let errors = answer.json()["errors"].take();
        assert!(errors.as_array().unwrap().iter().any(|wrong| wrong["field"] == field), "{said}: {errors}");
        assert!(!answer.text.contains("no address"), "what is wrong is not repeated");
    }
    assert_eq!(
        edit(&rig, &mail, &json!({ "version": 0, "email": {} })).await.status,
        409,
        "nothing is different"
    );
    assert_eq!(edit(&rig, &mail, &json!({ "version": 0, "email": { "subject": "Hi" } })).await.status, 409);
    let unknown = "01900000-0000-7000-8000-000000000000";
    assert_eq!(edit(&rig, unknown, &json!({ "version": 0, "payload": 1 })).await.status, 404);
}

#[tokio::test]
async fn a_message_that_waits_is_corrected_and_one_that_has_arrived_is_not() {
    let rig = Rig::running().await;
    let later = rig.accept(r#"{"route": "email", "payload": 1, "due_at": "2999-01-01T00:00:00Z"}"#).await;
    let said = |version: u64| json!({ "version": version, "payload": 2, "target": "elsewhere" });
    assert_eq!(edit(&rig, &later, &said(version(&rig, &later).await)).await.status, 200);
    let delivered = rig.until(&later, "delivered").await;
    let answer = edit(&rig, &later, &said(delivered["version"].as_u64().unwrap())).await;
    assert_eq!(answer.status, 409);
    assert!(answer.text.contains("it has arrived"), "{}", answer.text);
}

#[tokio::test]
async fn what_a_message_said_is_for_those_who_may_read_it() {
    let rig = Rig::still();
    let id = rig.accept(MAIL).await;
    let said = json!({ "version": 0, "email": { "text": "another-secret" } });
    assert_eq!(edit(&rig, &id, &said).await.status, 200);
    for (role, is_seen) in [(Role::Viewer, false), (Role::Sender, false), (Role::Operator, true)] {
        let key = rig.key(role, None).await;
        let edits = rig.call("GET", &format!("/v1/messages/{id}/edits"), Some(&key), "").await;
        assert_eq!(edits.json()["items"][0]["differences"][0]["field"], "email.text");
        assert_eq!(edits.text.contains("secret"), is_seen, "{}", role.name());
        let deeds = rig.call("GET", "/v1/audit", Some(&key), "").await;
        let deed =
            deeds.json()["items"].as_array().unwrap().iter().find(|deed| deed["action"] == "edit").cloned();
        assert_eq!(deed.unwrap()["detail"], "email.text");
        assert!(!deeds.text.contains("secret"), "{}", deeds.text);
    }
}

#[tokio::test]
async fn a_corrected_message_is_no_larger_than_a_new_one_and_its_history_has_an_end() {
    let rig = Rig::with(Limits { body_bytes_max: 1_000, ..Limits::default() }, Some(ADMIN));
    let text = "x".repeat(600);
    let id = rig
        .accept(
            &json!({ "route": "email", "attempts": 3, "email": { "to": "a@example.org", "text": text } })
                .to_string(),
        )
        .await;
    assert_eq!(edit(&rig, &id, &json!({ "version": 0, "email": { "html": text } })).await.status, 413);
    for n in 0..EDITS_MAX as u64 {
        let said = json!({ "version": n, "email": { "subject": n.to_string() } });
        assert_eq!(edit(&rig, &id, &said).await.status, 200);
    }
    let said = json!({ "version": EDITS_MAX, "email": { "subject": "once more" } });
    let answer = edit(&rig, &id, &said).await;
    assert!(answer.status == 409 && answer.text.contains("send a new message instead"), "{}", answer.text);
}
