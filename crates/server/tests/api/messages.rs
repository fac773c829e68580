//! Messages are accepted, refused and looked at.

use serde_json::json;

use crate::rig::Rig;

#[tokio::test]
async fn a_message_is_accepted_and_told_as_it_stands() {
    let rig = Rig::still();
    let answer = rig
        .post(
            "/v1/messages",
            r#"{"route": "email", "key": "booking-17", "priority": "high", "due_at": "2999-12-01T09:00:00Z",
                "attributes": {"device_id": "d-1"}, "payload": {"b": 1.0, "a": [12345678901234567890]}}"#,
        )
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let told = answer.json();
    for (field, expected) in [
        ("workspace", json!("default")),
        ("route", json!("email")),
        ("priority", json!("high")),
        ("key", json!("booking-17")),
        ("status", json!("scheduled")),
        ("state", json!("waiting")),
        ("due_at", json!("2999-12-01T09:00:00.000Z")),
        ("attempts", json!(0)),
        ("max_attempts", json!(3)),
        ("duplicate", json!(false)),
    ] {
        assert_eq!(told[field], expected, "{field}");
    }
    let id = told["id"].as_str().unwrap();
    let full = rig.get(&format!("/v1/messages/{id}?content=full")).await;
    assert!(full.text.contains("12345678901234567890"), "byte for byte: {}", full.text);
    assert_eq!(full.json()["content"]["attributes"]["device_id"], "d-1");
}

#[tokio::test]
async fn an_e_mail_is_summed_up_and_its_body_shown_on_demand_only() {
    let rig = Rig::still();
    let id = rig
        .accept(
            r#"{"route": "email", "due_at": "2999-01-01T00:00:00Z",
                "email": {"to": ["ada@example.org", {"address": "bob@example.org", "name": "Bob"}],
                          "subject": "Hi", "text": "the-secret-body"}}"#,
        )
        .await;
    let summary = rig.get(&format!("/v1/messages/{id}")).await;
    assert_eq!(summary.json()["content"]["to"], json!(["ada@example.org", "bob@example.org"]));
    assert_eq!(summary.json()["content"]["subject"], "Hi");
    let list = rig.get("/v1/messages").await;
    for shown in [&summary.text, &list.text] {
        assert!(!shown.contains("the-secret-body"), "{shown}");
    }
    let full = rig.get(&format!("/v1/messages/{id}?content=full")).await;
    assert_eq!(full.json()["content"]["email"]["text"], "the-secret-body");
}

#[tokio::test]
async fn everything_that_is_wrong_is_said_at_once_by_its_field() {
    let rig = Rig::still();
    let check = async |json: &str, expected: &[(&str, &str)]| {
        let answer = rig.post("/v1/messages", json).await;
        assert_eq!(answer.status, 422, "{json}: {}", answer.text);
        assert_eq!(answer.header("content-type"), "application/problem+json");
        let errors = answer.json()["errors"].as_array().unwrap().clone();
        assert_eq!(errors.len(), expected.len(), "{json}: {}", answer.text);
        for (error, (field, words)) in errors.iter().zip(expected) {
            assert_eq!(error["field"], *field, "{}", answer.text);
            assert!(error["problem"].as_str().unwrap().contains(words), "{words}: {}", answer.text);
        }
    };
    check("{}", &[("route", "is missing"), ("payload", "is missing")]).await;
    check(r#"{"rout": "email", "payload": 1}"#, &[("route", "missing"), ("rout", "did you mean \"route\"?")])
        .await;
    check(r#"{"route": "fax", "payload": 1}"#, &[("route", "names no route")]).await;
    check(
        r#"{"route": "email", "payload": 1, "priority": "hihg"}"#,
        &[("priority", "did you mean \"high\"?")],
    )
    .await;
    check(r#"{"route": "email", "payload": 1, "due_at": "tomorrow"}"#, &[("due_at", "not a time")]).await;
    check(r#"{"route": "email", "payload": 1, "attempts": -1}"#, &[("attempts", "between 0 and")]).await;
    check(r#"{"route": "email", "payload": 1, "attempts": 1.5}"#, &[("attempts", "whole number")]).await;
    check(r#"{"route": "email", "payload": 1, "attempts": 4294967295}"#, &[("attempts", "between 0 and")])
        .await;
    check(r#"{"route": "email", "payload": 1, "payload_base64": "AA=="}"#, &[("payload", "several ways")])
        .await;
    check(r#"{"route": "email", "payload_base64": "?"}"#, &[("payload_base64", "is not base64")]).await;
    check(r#"{"route": "email", "payload": 1, "workspace": "a b"}"#, &[("workspace", "letters")]).await;
    check(r#"{"route": "email", "payload": 1, "key": ""}"#, &[("key", "1 to 512")]).await;
    check(r#"{"route": "email", "email": {"to": [], "text": "x"}}"#, &[("email.to", "")]).await;
    check(
        r#"{"route": "email", "email": {"to": "a@b.example", "text": "x", "sbject": "x"}}"#,
        &[("email.sbject", "did you mean \"subject\"?")],
    )
    .await;
    check(
        r#"[{"route": "email", "payload": 1}, {"route": "fax", "payload": 1}]"#,
        &[("[1].route", "names no")],
    )
    .await;
    assert_eq!(rig.get("/v1/messages").await.json()["items"], json!([]), "nothing of it was kept");
}

#[tokio::test]
async fn what_is_no_json_or_says_so_is_refused() {
    let rig = Rig::still();
    for (kind, body, status) in [
        ("application/json", "", 400),
        ("application/json", "{", 400),
        ("application/json", "\u{1}", 400),
        ("application/json", "[1,", 400),
        ("application/json", "\"x\"", 422),
        ("text/plain", "{}", 415),
        ("multipart/form-data", "{}", 415),
    ] {
        let headers = [("content-type", kind)];
        let answer = rig.call_with("POST", "/v1/messages", Some(crate::rig::ADMIN), &headers, body).await;
        assert_eq!(answer.status, status, "{kind} {body:?}: {}", answer.text);
    }
    let gzip = [("content-type", "application/json"), ("content-encoding", "gzip")];
    let answer = rig.call_with("POST", "/v1/messages", Some(crate::rig::ADMIN), &gzip, "x").await;
    assert_eq!(answer.status, 415);
}

#[tokio::test]
async fn the_same_key_is_the_same_message_and_another_content_a_conflict() {
    let rig = Rig::still();
    let one = r#"{"route": "email", "key": "k", "payload": 1}"#;
    let first = rig.post("/v1/messages", one).await.json();
    let again = rig.post("/v1/messages", one).await;
    assert_eq!((again.status.as_u16(), &again.json()["duplicate"]), (200, &json!(true)));
    assert_eq!(again.json()["id"], first["id"]);
    let other = rig.post("/v1/messages", r#"{"route": "email", "key": "k", "payload": 2}"#).await;
    assert_eq!(other.status, 409, "{}", other.text);
    assert!(other.text.contains(first["id"].as_str().unwrap()));
    assert_eq!(other.json()["errors"][0]["field"], "key");
    let both =
        r#"[{"route": "email", "key": "k", "payload": 2}, {"route": "email", "key": "k", "payload": 3}]"#;
    let both = rig.post("/v1/messages", both).await;
    assert_eq!(both.status, 409, "{}", both.text);
    assert_eq!(both.json()["errors"][1]["field"], "[1].key");
}

#[tokio::test]
async fn a_header_stands_for_the_key_where_the_body_has_none() {
    let rig = Rig::still();
    let send = async |header: &str, json: &'static str| {
        let headers = [("content-type", "application/json"), ("idempotency-key", header)];
        rig.call_with("POST", "/v1/messages", Some(crate::rig::ADMIN), &headers, json).await
    };
    let told = send("h-1", r#"{"route": "email", "payload": 1}"#).await;
    assert_eq!(told.json()["key"], "h-1");
    assert_eq!(send("h-1", r#"{"route": "email", "payload": 1, "key": "h-1"}"#).await.status, 200);
    let both = send("h-1", r#"{"route": "email", "payload": 1, "key": "h-2"}"#).await;
    assert_eq!((both.status.as_u16(), &both.json()["errors"][0]["field"]), (422, &json!("key")));
    let many = r#"[{"route": "email", "payload": 1}, {"route": "email", "payload": 2, "key": "own"}]"#;
    let told = send("h-3", many).await.json();
    assert_eq!(
        (&told[0]["key"], &told[1]["key"]),
        (&json!("h-3/0"), &json!("own")),
        "each has its place in it"
    );
    assert_eq!(send("h-3", many).await.status, 200, "and saying it again sends nothing twice");
}

#[tokio::test]
async fn an_array_is_answered_in_its_order() {
    let rig = Rig::still();
    rig.accept(r#"{"route": "email", "key": "taken", "payload": 1}"#).await;
    let answer = rig
        .post(
            "/v1/messages",
            r#"[{"route": "email", "key": "a", "payload": 1}, {"route": "sms", "key": "taken", "payload": 1},
                {"route": "email", "key": "taken", "payload": 1}]"#,
        )
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let all = answer.json();
    assert_eq!((&all[0]["key"], &all[0]["duplicate"]), (&json!("a"), &json!(false)));
    assert_eq!(all[1]["problem"]["status"], 409, "{all}");
    assert_eq!(all[2]["duplicate"], true);
    assert_eq!(rig.post("/v1/messages", "[]").await.status, 200);
}

#[tokio::test]
async fn whoever_would_rather_wait_is_told_what_came_of_the_first_try() {
    let rig = Rig::running().await;
    let send = async |payload: &str, wait: &str| {
        let headers = [("content-type", "application/json"), ("prefer", wait)];
        let json = format!(r#"{{"route": "email", "payload": {payload}}}"#);
        rig.call_with("POST", "/v1/messages", Some(crate::rig::ADMIN), &headers, json).await
    };
    for (payload, wait, status, word) in [
        ("1", "wait=20", 200, "delivered"),
        ("\"refuse\"", "respond-async, wait=20", 200, "dead"),
        ("\"fail\"", "wait=20", 202, "retrying"),
        ("\"hand_off\"", "wait=20", 202, "handed_off"),
        ("\"hang\"", "wait=0", 202, "sending"),
    ] {
        let answer = send(payload, wait).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["status"]), (status, &json!(word)), "{payload}");
    }
    let answer = send("1", "wait=20").await;
    assert_eq!(answer.header("preference-applied"), "wait=20");
    assert_eq!(answer.json()["receipt"], "250 ok");
    assert_eq!(send("1", "wait=soon").await.status, 201, "what can't be understood is not preferred");
    let later = r#"{"route": "email", "payload": 1, "due_at": "2999-01-01T00:00:00Z"}"#;
    let headers = [("content-type", "application/json"), ("prefer", "wait=5")];
    let later = rig.call_with("POST", "/v1/messages", Some(crate::rig::ADMIN), &headers, later).await;
    assert_eq!((later.status.as_u16(), &later.json()["status"]), (202, &json!("scheduled")));
}

#[tokio::test]
async fn the_list_goes_page_by_page_and_is_filtered_by_status() {
    let rig = Rig::still();
    let mut later = Vec::new();
    for n in 0..7 {
        later.push(
            rig.accept(&format!(r#"{{"route": "email", "payload": {n}, "due_at": "2999-01-01T00:00:00Z"}}"#))
                .await,
        );
        rig.accept(&format!(r#"{{"route": "sms", "priority": "low", "payload": {n}}}"#)).await;
    }
    let mut pages = Vec::new();
    let mut path = "/v1/messages?status=scheduled&limit=3".to_owned();
    loop {
        let page = rig.get(&path).await.json();
        pages.extend(
            page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/messages?status=scheduled&limit=3&after={next}");
    }
    // Those of one millisecond have no order among them, but the same one each time.
    later.sort_by(|a, b| b.cmp(a));
    assert_eq!(pages, later, "newest first, none twice, none missing");
    for (query, count) in [
        ("status=due", 7),
        ("route=sms", 7),
        ("lane=low", 7),
        ("priority=high", 0),
        ("status=dead", 0),
        ("key=x", 0),
        ("workspace=elsewhere", 0),
    ] {
        let found = rig.get(&format!("/v1/messages?{query}")).await.json();
        assert_eq!(found["items"].as_array().unwrap().len(), count, "{query}");
    }
    for query in [
        "limit=0",
        "limit=501",
        "limit=x",
        "status=pending",
        "after=!",
        "with_dismissed=1",
        "colour=red",
        "limit=1&limit=2",
    ] {
        assert_eq!(rig.get(&format!("/v1/messages?{query}")).await.status, 422, "{query}");
    }
}
