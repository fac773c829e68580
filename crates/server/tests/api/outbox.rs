//! The outbox under the paths and names of those who had one before.

use serde_json::json;

use crate::rig::Rig;

const MAIL: &str = r#""email": {"to": "ada@example.org", "subject": "Hi", "text": "x"}"#;

#[tokio::test]
async fn the_outbox_lists_what_is_pending_and_failed_newest_first() {
    let rig = Rig::still();
    let failed =
        rig.accept(&format!(r#"{{"route": "email", "attempts": 3, "error": "550 no", {MAIL}}}"#)).await;
    let pending =
        rig.accept(&format!(r#"{{"route": "email", "attempts": 1, "error": "451 later", {MAIL}}}"#)).await;
    let list = rig.get("/api/admin/outbox").await.json();
    let mails = list.as_array().unwrap();
    let ids: Vec<&str> = mails.iter().map(|mail| mail["id"].as_str().unwrap()).collect();
    assert!(ids.len() == 2 && ids.is_sorted_by(|a, b| a > b), "{ids:?}");
    let find = |id: &str| mails.iter().find(|mail| mail["id"] == id).unwrap();
    let mail = find(&pending);
    for (field, expected) in [
        ("toAddress", json!("ada@example.org")),
        ("subject", json!("Hi")),
        ("status", json!("pending")),
        ("attempts", json!(0)),
        ("maxAttempts", json!(2)),
        ("lastError", json!("451 later")),
    ] {
        assert_eq!(mail[field], expected, "{field}");
    }
    assert!(mail["nextRetryAt"].is_string() && mail["createdAt"].is_string());
    assert_eq!(find(&failed)["status"], "failed");
    let cards = rig.get("/api/admin/dashboard").await.json();
    assert_eq!((&cards["pendingEmailCount"], &cards["failedEmailCount"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn what_is_no_mail_is_neither_listed_nor_counted() {
    let rig = Rig::still();
    let mail = rig.accept(&format!(r#"{{"route": "email", {MAIL}}}"#)).await;
    rig.accept(r#"{"route": "sms", "payload": 1}"#).await;
    rig.accept(r#"{"route": "sms", "payload": 2, "attempts": 3}"#).await;
    let list = rig.get("/api/admin/outbox").await.json();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["id"]), (1, &json!(mail)));
    let cards = rig.get("/api/admin/dashboard").await.json();
    assert_eq!((&cards["pendingEmailCount"], &cards["failedEmailCount"]), (&json!(1), &json!(0)));
    assert_eq!(cards["dueEmailCount"], 1);
}

#[tokio::test]
async fn only_a_failed_mail_is_retried_or_put_away() {
    let rig = Rig::still();
    let dead = format!(r#"{{"route": "email", "attempts": 3, {MAIL}}}"#);
    let (one, two) = (rig.accept(&dead).await, rig.accept(&dead).await);
    let retry = async |id: &str| rig.post(&format!("/api/admin/outbox/{id}/retry"), "").await;
    let dismiss = async |id: &str| {
        rig.call("DELETE", &format!("/api/admin/outbox/{id}"), Some(crate::rig::ADMIN), "").await
    };
    let again = retry(&one).await;
    assert_eq!((again.status.as_u16(), &again.json()["status"]), (200, &json!("pending")));
    assert_eq!(retry(&one).await.status, 409);
    assert_eq!(dismiss(&one).await.status, 409);
    assert_eq!(dismiss(&two).await.status, 204);
    assert_eq!(dismiss(&two).await.status, 409);
    assert_eq!(retry("nobody").await.status, 404);
    assert_eq!(rig.get("/api/admin/dashboard").await.json()["failedEmailCount"], 0);
}
