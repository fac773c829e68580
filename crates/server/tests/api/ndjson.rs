//! Many messages, a line each: bad lines don't stop good ones.

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};

use crate::rig::{ADMIN, Answer, Rig};

const KIND: [(&str, &str); 1] = [("content-type", "application/x-ndjson")];

async fn send(rig: &Rig, body: impl Into<Body>) -> Answer {
    rig.call_with("POST", "/v1/messages", Some(ADMIN), &KIND, body).await
}

#[tokio::test]
async fn each_line_has_its_result_and_bad_ones_stop_nobody() {
    let rig = Rig::still();
    let lines = "{\"route\": \"email\", \"key\": \"a\", \"payload\": 1}\nnot json\n\n{\"route\": \"fax\", \"payload\": 1}\r\n\
                 {\"route\": \"email\", \"key\": \"a\", \"payload\": 1}\n{\"route\": \"email\", \"key\": \"a\", \"payload\": 2}\n\
                 {\"route\": \"sms\", \"payload\": 3}";
    let answer = send(&rig, lines).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/x-ndjson"));
    let results = answer.lines();
    let told: Vec<_> = results
        .iter()
        .map(|line| (line["line"].as_u64().unwrap(), line["problem"]["status"].clone()))
        .collect();
    let none = json!(null);
    assert_eq!(
        told,
        [(1, none.clone()), (2, json!(400)), (4, json!(422)), (5, none.clone()), (6, json!(409)), (7, none)]
    );
    assert_eq!((&results[0]["duplicate"], &results[3]["duplicate"]), (&json!(false), &json!(true)));
    assert_eq!(results[2]["problem"]["errors"][0]["field"], "route");
    assert_eq!(results[4]["problem"]["errors"][0]["field"], "key");
    assert_eq!(rig.get("/v1/messages").await.json()["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn lines_that_come_in_pieces_are_put_together() {
    let rig = Rig::still();
    let text: String = (0..1_234).map(|n| format!("{{\"route\": \"email\", \"payload\": {n}}}\n")).collect();
    let chunks: Vec<_> =
        text.as_bytes().chunks(97).map(|chunk| Ok::<_, Infallible>(Bytes::copy_from_slice(chunk))).collect();
    let answer = send(&rig, Body::from_stream(stream::iter(chunks))).await;
    let results = answer.lines();
    assert_eq!(results.len(), 1_234);
    assert!(results.iter().zip(1..).all(|(result, n)| result["line"] == n && result["id"].is_string()));
    assert_eq!(rig.get("/v1/stats").await.json()["total"]["waiting"], 1_234);
}

#[tokio::test]
async fn a_line_that_is_too_large_is_refused_and_those_around_it_are_kept() {
    let limits = redeliver_server::limits::Limits { body_bytes_max: 10_000, ..Default::default() };
    let rig = Rig::with(limits, Some(ADMIN));
    let good = "{\"route\": \"email\", \"payload\": 1}\n";
    let results = send(&rig, format!("{good}{good}\"{}", "x".repeat(30_000))).await.lines();
    let statuses = |results: &[Value]| -> Vec<Value> {
        results.iter().map(|line| line["problem"]["status"].clone()).collect()
    };
    assert_eq!(statuses(&results), [json!(null), json!(null), json!(413)]);
    // However it comes: none of it is kept, and the next line begins where it should.
    let text = format!("{good}\"{}\n{good}\n{}\n{good}", "x".repeat(30_000), "y".repeat(10_001));
    for bytes in [1_000, 9_999, 64_000] {
        let chunks =
            text.as_bytes().chunks(bytes).map(|chunk| Ok::<_, Infallible>(Bytes::copy_from_slice(chunk)));
        let chunks = Body::from_stream(stream::iter(chunks.collect::<Vec<_>>()));
        let results = send(&rig, chunks).await.lines();
        assert_eq!(
            statuses(&results),
            [json!(null), json!(413), json!(null), json!(413), json!(null)],
            "{bytes}"
        );
        let numbers: Vec<&Value> = results.iter().map(|result| &result["line"]).collect();
        assert_eq!(json!(numbers), json!([1, 2, 3, 5, 6]), "{bytes}");
    }
    let results = send(&rig, format!("\"{}\"\n{good}", "x".repeat(9_000))).await.lines();
    assert_eq!(results.len(), 2, "a long line is a bad line, and the next one is read");
}

#[tokio::test]
async fn an_empty_body_has_no_results_and_a_header_begins_the_keys_of_many() {
    let rig = Rig::still();
    let answer = send(&rig, "").await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, ""));
    let headers = [("content-type", "application/x-ndjson"), ("idempotency-key", "k")];
    let line = "{\"route\": \"email\", \"payload\": 1}";
    for duplicate in [false, true] {
        let answer = rig.call_with("POST", "/v1/messages", Some(ADMIN), &headers, line).await;
        let told = &answer.lines()[0];
        assert_eq!((&told["key"], &told["duplicate"]), (&json!("k/1"), &json!(duplicate)));
    }
}

#[tokio::test]
async fn a_large_line_takes_room_of_its_own_while_it_comes() {
    let rig = Rig::still();
    let line = format!("{{\"route\": \"email\", \"payload\": \"{}\"}}\n", "x".repeat(3 * 1024 * 1024));
    let chunks = || {
        let chunks =
            line.as_bytes().chunks(64 * 1024).map(|chunk| Ok::<_, Infallible>(Bytes::copy_from_slice(chunk)));
        Body::from_stream(stream::iter(chunks.collect::<Vec<_>>()))
    };
    assert!(send(&rig, chunks()).await.lines()[0]["id"].is_string());
    let most = rig.server.room.take(rig.server.limits.accepting_bytes_max - 4 * 1024 * 1024).unwrap();
    assert_eq!(send(&rig, chunks()).await.lines()[0]["problem"]["status"], 429);
    drop(most);
    assert!(send(&rig, chunks()).await.lines()[0]["id"].is_string());
}
