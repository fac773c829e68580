//! Keys are made, shown once, listed without their secrets, and revoked.

use std::sync::Arc;

use redeliver_core::Timestamp;
use redeliver_engine::access::{Access, Role};
use redeliver_engine::clock::ManualClock;
use redeliver_engine::store::Store;
use redeliver_server::limits::Limits;
use serde_json::json;

use crate::rig::{ADMIN, Rig};

#[tokio::test]
async fn a_key_is_shown_once_works_and_is_revoked() {
    let rig = Rig::still();
    let made = rig.post("/v1/keys", r#"{"name": "ops", "role": "operator", "workspace": "acme"}"#).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let key = made.json()["key"].as_str().unwrap().to_owned();
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(rig.call("GET", "/v1/messages", Some(&key), "").await.status, 200);
    let list = rig.get("/v1/keys").await;
    assert_eq!(
        (&list.json()["items"][0]["id"], &list.json()["items"][0]["role"]),
        (&json!(id), &json!("operator"))
    );
    assert!(!list.text.contains(&key[18..]), "no secret is told twice");
    let revoke = async || rig.call("DELETE", &format!("/v1/keys/{id}"), Some(ADMIN), "").await.status;
    assert_eq!(revoke().await, 204);
    assert_eq!(revoke().await, 404);
    assert_eq!(rig.call("GET", "/v1/messages", Some(&key), "").await.status, 401);
    let deeds: Vec<_> = rig.store.audit(10).await.unwrap().into_iter().map(|deed| deed.action).collect();
    assert_eq!(deeds, ["revoke_key", "create_key"]);
}

#[tokio::test]
async fn a_key_reaches_no_further_than_the_key_that_makes_it() {
    let rig = Rig::still();
    let admin = rig.key(Role::Admin, Some("acme")).await;
    let make = async |json: &str| rig.call("POST", "/v1/keys", Some(&admin), json).await.status;
    assert_eq!(make(r#"{"name": "a", "role": "viewer"}"#).await, 403);
    assert_eq!(make(r#"{"name": "a", "role": "viewer", "workspace": "other"}"#).await, 403);
    assert_eq!(make(r#"{"name": "a", "role": "viewer", "workspace": "acme"}"#).await, 201);
    assert_eq!(make(r#"{"name": "", "role": "root"}"#).await, 422);
    rig.key(Role::Viewer, None).await;
    let seen = rig.call("GET", "/v1/keys", Some(&admin), "").await.json();
    assert_eq!(seen["items"].as_array().unwrap().len(), 2, "its own workspace's");
    let others: Vec<_> =
        rig.store.keys().await.unwrap().into_iter().filter(|key| key.workspace.is_none()).collect();
    let path = format!("/v1/keys/{}", others[0].id);
    assert_eq!(rig.call("DELETE", &path, Some(&admin), "").await.status, 404);
}

#[tokio::test]
async fn whoever_guesses_keys_is_slowed_down_and_whoever_has_one_is_not() {
    let rig = Rig::at(ManualClock::at(Timestamp::default()), Limits::default(), Some(ADMIN));
    let key = rig.key(Role::Viewer, None).await;
    let rig = Arc::new(rig);
    let guess = |n: u32| {
        let (rig, key) = (Arc::clone(&rig), format!("the-{n}-th-key-of-many"));
        tokio::spawn(async move { rig.call("GET", "/v1/messages", Some(&key), "").await.status.as_u16() })
    };
    let guesses: Vec<_> = (0..100).map(guess).collect();
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let (answered, waiting): (Vec<_>, Vec<_>) =
        guesses.into_iter().partition(tokio::task::JoinHandle::is_finished);
    assert_eq!((answered.len(), waiting.len()), (36, 64), "no time has passed");
    for status in answered {
        assert_eq!(status.await.unwrap(), 429);
    }
    assert_eq!(rig.call("GET", "/v1/messages", Some(&key), "").await.status, 200);
}
