//! The same done to many messages: what it would mean, how far it comes, and who stops it.

use std::time::Duration;

use redeliver_core::bulk::{Bulk, Pace, Standing, Which};
use redeliver_core::operate::Action;
use redeliver_engine::access::Role;
use redeliver_engine::store::Store;
use serde_json::{Value, json};

use crate::rig::Rig;

async fn dead(rig: &Rig, payload: &str, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let json =
            format!(r#"{{"route": "email", "attempts": 3, "error": "452 full", "payload": {payload}}}"#);
        ids.push(rig.accept(&json).await);
    }
    ids
}

async fn begin(rig: &Rig, body: Value) -> Value {
    let answer = rig.post("/v1/bulk", &body.to_string()).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    answer.json()
}

async fn standing(rig: &Rig, bulk: &Value) -> Value {
    rig.get(&format!("/v1/bulk/{}", bulk["id"].as_str().unwrap())).await.json()
}

#[tokio::test]
async fn a_dry_run_says_what_it_would_mean_and_does_nothing() {
    let rig = Rig::still();
    dead(&rig, "1", 3).await;
    rig.accept(r#"{"route": "email", "payload": 1}"#).await;
    let body = json!({ "action": "retry", "filter": { "status": "dead" }, "dry_run": true, "rate_per_s": 2 });
    let answer = rig.post("/v1/bulk", &body.to_string()).await;
    assert_eq!(answer.status, 200);
    let said = answer.json();
    assert_eq!((&said["count"], &said["at_least"], &said["seconds"]), (&json!(3), &json!(false), &json!(2)));
    assert_eq!(said["attempts_max"], 3, "the budget was used up elsewhere, so that each has one try");
    assert!(said["oldest_at"].is_string());
    assert_eq!(rig.get("/v1/bulk").await.json()["items"], json!([]));
    rig.server.engine.bulk_tick().await.unwrap();
    assert_eq!(rig.get("/v1/messages?status=dead").await.json()["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn all_that_match_are_dismissed_at_their_rate_and_every_deed_is_written_down() {
    let rig = Rig::still();
    dead(&rig, "1", 7).await;
    let waiting = rig.accept(r#"{"route": "email", "payload": 1}"#).await;
    let bulk =
        begin(&rig, json!({ "action": "dismiss", "filter": { "status": "dead" }, "rate_per_s": 3 })).await;
    for (done, word) in [(3, "running"), (6, "running"), (7, "done")] {
        rig.server.engine.bulk_tick().await.unwrap();
        let seen = standing(&rig, &bulk).await;
        assert_eq!((&seen["done"], &seen["standing"]), (&json!(done), &json!(word)));
        assert_eq!((&seen["total"], &seen["left"]), (&json!(7), &json!(7 - done)));
        assert_eq!(seen["total_at_least"], json!(false));
    }
    assert_eq!(rig.get("/v1/messages").await.json()["items"][0]["id"], waiting);
    let deeds = rig.store.audit(100).await.unwrap();
    assert_eq!(deeds.iter().filter(|deed| deed.action == "dismiss").count(), 7);
    assert_eq!(deeds.iter().filter(|deed| deed.action == "bulk_dismiss").count(), 1);
}

#[tokio::test]
async fn one_that_goes_on_is_not_forgotten_behind_a_hundred_newer_ones_and_is_listed_behind_them() {
    let rig = Rig::still();
    dead(&rig, "1", 2).await;
    let bulk = begin(&rig, json!({ "action": "dismiss", "filter": { "status": "dead" } })).await;
    let clock = rig.server.engine.clock();
    for n in 1..=120 {
        let now = clock.now().plus(Duration::from_millis(n));
        let (id, pace) = (clock.message_id(now).to_string(), Pace { rate_per_s: 1, is_careful: false });
        let newer = Bulk::new(id, "ada", Action::Retry, Which::default(), pace, now);
        let ended = Bulk { standing: Standing::Done, ..newer };
        assert!(rig.store.put_bulk(ended, None).await.unwrap());
    }
    rig.server.engine.bulk_tick().await.unwrap();
    let seen = standing(&rig, &bulk).await;
    assert_eq!((&seen["done"], &seen["standing"]), (&json!(2), &json!("done")));
    let first = rig.get("/v1/bulk").await.json();
    assert_eq!(first["items"].as_array().unwrap().len(), 100);
    let second = rig.get(&format!("/v1/bulk?after={}", first["next"].as_str().unwrap())).await.json();
    let items = second["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[20]["id"], &second["next"]), (21, &bulk["id"], &json!(null)));
    let other = rig.key(Role::Viewer, Some("other")).await;
    let none = rig.call("GET", "/v1/bulk", Some(&other), "").await.json();
    assert_eq!(none, json!({ "items": [], "next": null }), "others' are looked past");
}

#[tokio::test]
async fn it_waits_goes_on_and_ends_as_it_is_told() {
    let rig = Rig::still();
    dead(&rig, "1", 9).await;
    let bulk =
        begin(&rig, json!({ "action": "dismiss", "filter": { "status": "dead" }, "rate_per_s": 2 })).await;
    let tell = async |word: &str| {
        rig.post(&format!("/v1/bulk/{}/{word}", bulk["id"].as_str().unwrap()), "").await.status.as_u16()
    };
    let done = async || {
        rig.server.engine.bulk_tick().await.unwrap();
        standing(&rig, &bulk).await["done"].as_u64().unwrap()
    };
    assert_eq!(done().await, 2);
    assert_eq!(tell("pause").await, 200);
    assert_eq!((done().await, tell("pause").await), (2, 409));
    assert_eq!(tell("resume").await, 200);
    assert_eq!(done().await, 4);
    assert_eq!(tell("stop").await, 200);
    assert_eq!((done().await, tell("resume").await), (4, 409));
    assert_eq!(standing(&rig, &bulk).await["standing"], "stopped");
}

#[tokio::test]
async fn those_that_are_named_are_done_and_what_no_longer_fits_is_skipped() {
    let rig = Rig::still();
    let ids = dead(&rig, "1", 2).await;
    let waiting = rig.accept(r#"{"route": "email", "payload": 1}"#).await;
    let named = json!([ids[0], waiting, "nonsense", ids[1]]);
    let bulk = begin(&rig, json!({ "action": "retry", "ids": named })).await;
    rig.server.engine.bulk_tick().await.unwrap();
    let seen = standing(&rig, &bulk).await;
    assert_eq!((&seen["done"], &seen["skipped"], &seen["standing"]), (&json!(2), &json!(1), &json!("done")));
    assert_eq!(rig.get(&format!("/v1/messages/{}", ids[0])).await.json()["status"], "due");
}

#[tokio::test]
async fn a_careful_retry_stops_by_itself_when_the_first_fails_again() {
    let rig = Rig::running().await;
    for _ in 0..30 {
        rig.accept(r#"{"route": "email", "attempts": 3, "error": "452 full", "payload": "refuse"}"#).await;
    }
    let bulk = begin(
        &rig,
        json!({ "action": "retry", "filter": { "error": "452" }, "canary": true, "rate_per_s": 100 }),
    )
    .await;
    let seen = until(&rig, &bulk, "stopped").await;
    assert_eq!((&seen["done"], &seen["why"]), (&json!(1), &json!("1 of 1 messages failed again")));
}

#[tokio::test]
async fn a_careful_retry_goes_on_stage_by_stage_while_all_is_well() {
    let rig = Rig::running().await;
    dead(&rig, "1", 30).await;
    let bulk = begin(
        &rig,
        json!({ "action": "retry", "filter": { "status": "dead" }, "canary": true, "rate_per_s": 100 }),
    )
    .await;
    let seen = until(&rig, &bulk, "done").await;
    assert_eq!((&seen["done"], &seen["stage"]), (&json!(30), &json!(3)));
    for _ in 0..6_000 {
        if rig.get("/v1/messages?status=delivered").await.json()["items"].as_array().unwrap().len() == 30 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("not all were delivered");
}

async fn until(rig: &Rig, bulk: &Value, word: &str) -> Value {
    for _ in 0..6_000 {
        let seen = standing(rig, bulk).await;
        if seen["standing"] == word {
            return seen;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("it never was {word}: {}", standing(rig, bulk).await)
}

#[tokio::test]
async fn one_workspace_does_nothing_to_another() {
    let rig = Rig::still();
    let theirs = rig
        .accept(r#"{"route": "email", "workspace": "acme", "attempts": 3, "error": "x", "payload": 1}"#)
        .await;
    let other = rig.key(Role::Operator, Some("other")).await;
    let post = async |body: Value| rig.call("POST", "/v1/bulk", Some(&other), &body.to_string()).await;
    assert_eq!(post(json!({ "action": "dismiss", "filter": { "workspace": "acme" } })).await.status, 403);
    for body in [json!({ "action": "dismiss" }), json!({ "action": "dismiss", "ids": [theirs] })] {
        let bulk = post(body).await.json();
        rig.server.engine.bulk_tick().await.unwrap();
        assert_eq!(standing(&rig, &bulk).await["done"], 0);
    }
    let bulk = begin(&rig, json!({ "action": "dismiss", "filter": { "workspace": "acme" } })).await;
    let path = format!("/v1/bulk/{}", bulk["id"].as_str().unwrap());
    assert_eq!(rig.call("GET", &path, Some(&other), "").await.status, 404);
    assert_eq!(rig.call("POST", &format!("{path}/stop"), Some(&other), "").await.status, 404);
    assert_eq!(
        rig.call("GET", "/v1/bulk", Some(&other), "").await.json()["items"].as_array().unwrap().len(),
        2
    );
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_its_field() {
    let rig = Rig::still();
    for (body, field) in [
        (json!({}), "action"),
        (json!({ "action": "restore" }), "action"),
        (json!({ "action": "retry", "filter": { "status": "odd" } }), "filter.status"),
        (json!({ "action": "retry", "filter": { "since": "odd" } }), "filter.since"),
        (json!({ "action": "retry", "filter": { "colour": "red" } }), "filter.colour"),
        (json!({ "action": "retry", "filter": [null, null] }), "filter"),
        (json!({ "action": "retry", "rate_per_s": 0 }), "rate_per_s"),
        (json!({ "action": "retry", "rate_per_s": 1.5 }), "rate_per_s"),
        (json!({ "action": "retry", "ids": vec!["x"; 501] }), "ids"),
    ] {
        let answer = rig.post("/v1/bulk", &body.to_string()).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["errors"][0]["field"]),
            (422, &json!(field)),
            "{body}"
        );
    }
}

#[tokio::test]
async fn dead_messages_stand_together_by_their_error_and_are_dismissed_together() {
    let rig = Rig::still();
    for error in
        ["550 5.1.1 no user ada@example.org", "550 5.1.1 no user grace@example.com", "452 4.2.2 full"]
    {
        rig.accept(&json!({ "route": "email", "attempts": 3, "error": error, "payload": 1 }).to_string())
            .await;
    }
    let said = rig.get("/v1/dead-letters/groups").await.json();
    let items = said["items"].as_array().unwrap();
    assert_eq!((items.len(), &said["looked_at"]), (2, &json!(3)));
    assert_eq!((&items[0]["count"], &items[0]["error"]), (&json!(2), &json!("550 5.1.1 no user (address)")));
    assert_eq!((&items[0]["routes"], &items[0]["hours"][23]), (&json!(["email"]), &json!(2)));
    assert_eq!(items[0]["destinations"], json!(["peer"]));
    let fingerprint = items[0]["fingerprint"].clone();
    let listed = rig.get(&format!("/v1/messages?fingerprint={}", fingerprint.as_str().unwrap())).await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    let bulk = begin(&rig, json!({ "action": "dismiss", "filter": { "fingerprint": fingerprint } })).await;
    rig.server.engine.bulk_tick().await.unwrap();
    assert_eq!(standing(&rig, &bulk).await["done"], 2);
    assert_eq!(rig.get("/v1/dead-letters/groups").await.json()["looked_at"], 1);
    assert_eq!(rig.get("/v1/dead-letters/groups?route=sms").await.json()["looked_at"], 0);
    let other = rig.key(Role::Viewer, Some("other")).await;
    assert_eq!(rig.call("GET", "/v1/dead-letters/groups", Some(&other), "").await.json()["looked_at"], 0);
}
