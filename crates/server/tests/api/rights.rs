//! Every role at every route, every route of one workspace from another, and nobody at all.

use std::time::Duration;

use axum::http::StatusCode;
use redeliver_core::Timestamp;
use redeliver_engine::access::{Access, Role, SessionRecord};
use redeliver_engine::clock::ManualClock;
use redeliver_server::auth::rights::{Need, RIGHTS};
use redeliver_server::auth::secret::{csrf_token, digest};
use redeliver_server::limits::Limits;

use crate::rig::{ADMIN, Rig};

fn path(route: &str, id: &str) -> String {
    let named = [("{id}", id), ("{name}", "email"), ("{campaign}", "c"), ("{prospect}", "p")];
    let named = named.into_iter().chain([
        ("{bulk}", "none"),
        ("{workspace}", "acme"),
        ("{address}", "a"),
        ("{sender}", "a"),
        ("{destination}", "mx"),
    ]);
    named.fold(route.to_owned(), |path, (name, value)| path.replace(name, value))
}

#[tokio::test]
async fn each_role_may_do_what_the_table_says_and_nothing_else() {
    let rig = Rig::still();
    let id = rig.accept(r#"{"route": "email", "payload": 1}"#).await;
    for role in Role::ALL {
        let key = rig.key(role, None).await;
        for (method, route, need) in RIGHTS {
            let status = rig.call(method, &path(route, &id), Some(&key), "{}").await.status;
            let may = match need {
                Need::Nobody | Need::AnyKeyToExist => true,
                Need::AtLeast(least) => role >= *least,
            };
            assert_eq!(status != StatusCode::FORBIDDEN, may, "{method} {route} as {}: {status}", role.name());
            assert!(
                status != StatusCode::UNAUTHORIZED && !status.is_server_error(),
                "{method} {route}: {status}"
            );
        }
    }
}

#[tokio::test]
async fn nobody_gets_in_without_a_key_or_with_a_wrong_one() {
    // A wrong key waits for its answer: time flies here.
    let clock = ManualClock::at(Timestamp::default());
    let rig = Rig::at(clock.clone(), Limits::default(), Some(ADMIN));
    tokio::spawn(async move {
        loop {
            clock.advance(Duration::from_millis(500));
            tokio::task::yield_now().await;
        }
    });
    let key = rig.key(Role::Admin, None).await;
    let last = if key.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{last}", &key[..key.len() - 1]);
    for (method, route, need) in RIGHTS {
        for (key, words) in [
            (None, "send a key"),
            (Some("rdk_nobody_x"), "unknown or revoked"),
            (Some(wrong.as_str()), "unknown"),
            (Some(""), "unknown"),
        ] {
            let answer = rig.call(method, &path(route, "x"), key, "{}").await;
            match need {
                Need::Nobody | Need::AnyKeyToExist => assert_eq!(answer.status, 200, "{route}"),
                Need::AtLeast(_) => {
                    assert_eq!(answer.status, 401, "{method} {route} {key:?}");
                    assert_eq!(answer.header("www-authenticate"), "Bearer");
                    assert!(answer.text.contains(words), "{}", answer.text);
                }
            }
        }
    }
}

#[tokio::test]
async fn while_there_is_no_key_at_all_only_health_and_metrics_answer() {
    let rig = Rig::with(Limits::default(), None);
    for (method, route, need) in RIGHTS {
        let status = rig.call(method, &path(route, "x"), None, "{}").await.status;
        assert_eq!(status.as_u16(), if *need == Need::Nobody { 200 } else { 401 }, "{method} {route}");
    }
    rig.key(Role::Viewer, None).await;
    assert_eq!(rig.call("GET", "/openapi.json", None, "").await.status, 200);
}

#[tokio::test]
async fn another_workspaces_message_is_not_there() {
    let rig = Rig::still();
    let id = rig.accept(r#"{"route": "email", "workspace": "acme", "key": "k", "payload": 1}"#).await;
    let own = rig.key(Role::Admin, Some("acme")).await;
    let other = rig.key(Role::Admin, Some("other")).await;
    let body = r#"{"outcome": "delivered"}"#;
    for (method, route, _) in
        RIGHTS.iter().filter(|(_, route, _)| route.contains("{id}") && !route.contains("keys"))
    {
        let status = rig.call(method, &path(route, &id), Some(&other), body).await.status;
        assert_eq!(status, 404, "{method} {route}");
        let status = rig.call(method, &path(route, &id), Some(&own), body).await.status;
        assert_ne!(status, 404, "{method} {route}");
    }
    for query in ["", "?workspace=acme", "?key=k"] {
        let list = rig.call("GET", &format!("/v1/messages{query}"), Some(&other), "").await.json();
        assert_eq!(list["items"].as_array().unwrap().len(), 0, "{query}");
    }
    assert_eq!(rig.call("GET", "/api/admin/outbox", Some(&other), "").await.text, "[]");
    for route in ["/v1/stats", "/v1/stats/minutes", "/v1/instances", "/api/admin/dashboard"] {
        assert_eq!(rig.call("GET", route, Some(&other), "").await.status, 403, "{route}");
    }
    assert_eq!(rig.call("POST", "/v1/routes/email/pause", Some(&other), "").await.status, 403);
}

#[tokio::test]
async fn a_key_of_one_workspace_sends_into_that_one_only() {
    let rig = Rig::still();
    let key = rig.key(Role::Sender, Some("acme")).await;
    let send = async |json: &str| rig.call("POST", "/v1/messages", Some(&key), json).await;
    assert_eq!(send(r#"{"route": "email", "payload": 1}"#).await.json()["workspace"], "acme");
    assert_eq!(send(r#"{"route": "email", "payload": 1, "workspace": "acme"}"#).await.status, 201);
    assert_eq!(send(r#"{"route": "email", "payload": 1, "workspace": "other"}"#).await.status, 403);
}

#[tokio::test]
async fn what_a_message_carries_is_shown_in_full_to_operators_only() {
    let rig = Rig::still();
    let id = rig.accept(r#"{"route": "email", "payload": "the-secret-body"}"#).await;
    for (role, status) in [(Role::Viewer, 403), (Role::Sender, 403), (Role::Operator, 200)] {
        let key = rig.key(role, None).await;
        let answer = rig.call("GET", &format!("/v1/messages/{id}?content=full"), Some(&key), "").await;
        assert_eq!(answer.status, status, "{}", role.name());
        assert_eq!(answer.text.contains("the-secret-body"), status == 200);
    }
}

#[tokio::test]
async fn a_session_is_as_good_as_a_key_until_it_is_over() {
    let rig = Rig::still();
    let now = rig.server.engine.clock().now();
    let session = |token: &str, expires_at| SessionRecord {
        digest: digest(token),
        key: None,
        name: "ada".into(),
        workspace: None,
        role: Role::Operator,
        created_at: now,
        expires_at,
    };
    rig.store.add_session(session("lives", now.plus(std::time::Duration::from_secs(60)))).await.unwrap();
    rig.store.add_session(session("over", now)).await.unwrap();
    let call = async |method: &str, token: &str, csrf: &str| {
        let cookie = format!("theme=dark; redeliver_session={token}");
        let headers = [("cookie", cookie.as_str()), ("x-csrf-token", csrf)];
        let path = if method == "GET" { "/v1/messages" } else { "/v1/routes/email/pause" };
        rig.call_with(method, path, None, &headers, "").await.status.as_u16()
    };
    assert_eq!(call("GET", "lives", "").await, 200);
    assert_eq!(call("GET", "over", "").await, 401);
    assert_eq!(call("GET", "made-up", "").await, 401);
    assert_eq!(call("POST", "lives", "").await, 403, "another site's page has the cookie, but not this");
    assert_eq!(call("POST", "lives", &csrf_token("lives")).await, 200);
}
