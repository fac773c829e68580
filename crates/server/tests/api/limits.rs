//! Everything has a limit, and whoever comes up against one is told.

use redeliver_server::limits::Limits;

use crate::rig::{ADMIN, Rig};

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_whether_or_not_it_says_so() {
    let rig = Rig::with(Limits { body_bytes_max: 5_000, ..Limits::default() }, Some(ADMIN));
    let json = |len: usize| format!(r#"{{"route": "email", "payload": "{}"}}"#, "x".repeat(len));
    assert_eq!(rig.post("/v1/messages", &json(4_000)).await.status, 201);
    let large = rig.post("/v1/messages", &json(6_000)).await;
    assert_eq!(large.status, 413);
    assert!(large.text.contains("http.body_bytes_max"), "{}", large.text);
    let headers = [("content-type", "application/json"), ("content-length", "999999999")];
    let says = rig.call_with("POST", "/v1/messages", Some(ADMIN), &headers, "{}").await;
    assert_eq!(says.status, 413);
}

#[tokio::test]
async fn when_too_much_is_being_accepted_callers_are_told_to_come_again() {
    let rig = Rig::still();
    let json = r#"{"route": "email", "payload": 1}"#;
    let all = rig.server.room.take(rig.server.limits.accepting_bytes_max).unwrap();
    for kind in ["application/json", "application/x-ndjson"] {
        let answer =
            rig.call_with("POST", "/v1/messages", Some(ADMIN), &[("content-type", kind)], json).await;
        assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (429, "1"), "{kind}");
    }
    assert_eq!(rig.get("/v1/messages").await.status, 200, "whoever only looks is answered");
    drop(all);
    rig.accept(json).await;
}

#[tokio::test]
async fn what_is_nested_too_deep_is_refused_and_what_is_deep_is_not() {
    let rig = Rig::still();
    for (depth, status) in [(100, 201), (128, 422), (50_000, 422)] {
        let json = format!(r#"{{"route": "email", "payload": {}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert_eq!(rig.post("/v1/messages", &json).await.status, status, "{depth}");
    }
}

#[tokio::test]
async fn a_path_or_a_method_that_nobody_knows_is_a_problem_of_its_own() {
    let rig = Rig::still();
    let nowhere = rig.get("/v1/nowhere").await;
    assert_eq!((nowhere.status.as_u16(), nowhere.header("content-type")), (404, "application/problem+json"));
    for (method, path, allow) in [
        ("PUT", "/v1/messages", "GET,HEAD,POST"),
        ("DELETE", "/v1/messages/x", "GET,HEAD"),
        ("TRACE", "/healthz", "GET,HEAD"),
        ("GET", "/v1/messages/x/retry", "POST"),
    ] {
        let answer = rig.call(method, path, Some(ADMIN), "").await;
        assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, allow), "{method} {path}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
    }
    assert_eq!(rig.call("HEAD", "/v1/messages", Some(ADMIN), "").await.status, 200);
    assert_eq!(rig.get("/v1/messages/%FF").await.status, 404);
    assert_eq!(rig.get("/v1/messages/not-an-id").await.status, 404);
}

#[tokio::test]
async fn answers_are_not_kept_nor_guessed_at() {
    let rig = Rig::still();
    let answer = rig.get("/v1/messages").await;
    assert_eq!(
        (answer.header("cache-control"), answer.header("x-content-type-options")),
        ("no-store", "nosniff")
    );
}

/// An object of so many fields that nobody knows, each named differently.
fn object_of(fields: usize) -> String {
    let fields: Vec<String> = (0..fields).map(|n| format!("\"k{n}\":1")).collect();
    format!("{{{}}}", fields.join(","))
}

#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
async fn a_body_of_forty_thousand_fields_is_refused_at_once_and_in_few_words() {
    let rig = Rig::still();
    let json = object_of(40_000);
    let begun = std::time::Instant::now();
    let answer = rig.post("/v1/messages", &json).await;
    let (took, bytes) = (begun.elapsed(), answer.text.len());
    assert_eq!(answer.status, 422);
    assert!(
        took < std::time::Duration::from_secs(2) && bytes < json.len(),
        "{took:?}, and {bytes} bytes for {}",
        json.len()
    );
}

#[tokio::test]
async fn at_most_a_hundred_problems_are_listed_however_many_messages_are_wrong() {
    let rig = Rig::still();
    let many = format!("[{}]", vec![object_of(30); 300].join(","));
    for json in [object_of(900), many] {
        let answer = rig.post("/v1/messages", &json).await;
        assert_eq!(answer.status, 422);
        assert_eq!(answer.json()["errors"].as_array().unwrap().len(), 100, "{}", answer.json()["detail"]);
    }
}
