//! Who may do what, and to whose mails.

use axum::http::StatusCode;
use redeliver_core::accept::NewMessage;
use redeliver_engine::access::Role;

use crate::stage::{Stage, TRIES_MAX, mail};

#[tokio::test]
async fn everybody_looks_and_only_operators_and_admins_act() {
    let stage = Stage::new();
    for role in Role::ALL {
        let id = stage.failed("Invoice").await;
        let mut reader = stage.reader(role, None).await;
        let page = format!("/admin/messages/{id}");
        for path in ["/admin", "/admin/email-queue", &page] {
            let answer = reader.get(path).await;
            assert_eq!(answer.status, StatusCode::OK, "{path}");
            let has_buttons =
                answer.says(&format!("{page}/retry")) || answer.says(&format!("{page}/dismiss"));
            assert_eq!(
                has_buttons,
                role >= Role::Operator && path != "/admin",
                "{path} for a {}",
                role.name()
            );
        }
        let (status, deeds) = match role >= Role::Operator {
            true => (StatusCode::SEE_OTHER, vec!["retry", "restore", "dismiss"]),
            false => (StatusCode::FORBIDDEN, vec![]),
        };
        for deed in ["dismiss", "restore", "retry"] {
            assert_eq!(
                reader.press("/admin", &format!("{page}/{deed}"), "all").await.status,
                status,
                "{deed}"
            );
        }
        let done: Vec<&str> = stage.deeds(&id).await.into_iter().map(|(_, action)| action).collect();
        assert_eq!(done, deeds, "by a {}", role.name());
    }
}

#[tokio::test]
async fn nothing_is_changed_without_the_token_of_the_session() {
    let stage = Stage::new();
    let id = stage.failed("Invoice").await;
    let before = stage.get(&id).await;
    let mut reader = stage.reader(Role::Operator, None).await;
    let others = stage.reader(Role::Viewer, None).await.get("/admin").await.csrf();
    let own = reader.get("/admin").await.csrf();
    for deed in ["retry", "dismiss", "restore"] {
        let path = format!("/admin/messages/{id}/{deed}");
        for fields in
            [&[][..], &[("csrf", "")], &[("csrf", "0")], &[("csrf", others.as_str())], &[("CSRF", &own)]]
        {
            let answer = reader.post(&path, fields).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN);
            assert!(answer.says("The form belongs to another session"));
        }
        let foreign = reader.post_from(&path, &[("csrf", &own)], "cross-site").await;
        assert_eq!(foreign.status, StatusCode::FORBIDDEN, "even with the token");
    }
    assert_eq!(reader.post("/logout", &[]).await.status, StatusCode::FORBIDDEN);
    assert_eq!(stage.get(&id).await, before);
    assert!(stage.deeds(&id).await.is_empty());
}

#[tokio::test]
async fn another_workspaces_mail_is_not_there() {
    let stage = Stage::new();
    let theirs = NewMessage { workspace: "theirs".into(), attempts: TRIES_MAX, ..mail("Their secret") };
    let theirs = stage.accept(theirs).await;
    let ours = NewMessage { workspace: "ours".into(), attempts: TRIES_MAX, ..mail("Our invoice") };
    stage.accept(ours).await;
    let mut reader = stage.reader(Role::Operator, Some("ours")).await;
    let page = format!("/admin/messages/{theirs}");
    assert_eq!(reader.get(&page).await.status, StatusCode::NOT_FOUND);
    for deed in ["retry", "dismiss", "restore"] {
        assert_eq!(
            reader.press("/admin", &format!("{page}/{deed}"), "all").await.status,
            StatusCode::NOT_FOUND
        );
    }
    assert!(stage.deeds(&theirs).await.is_empty());
    let queue = reader.get("/admin/email-queue").await;
    assert!(queue.says("Our invoice") && !queue.says("Their secret") && !queue.says(&theirs.to_string()));
    let overview = reader.get("/admin").await;
    assert!(
        overview.says("<span class=\"number\">1</span>") && !overview.says("<span class=\"number\">2</span>")
    );
    assert!(overview.says("operator, workspace ours"));
    let everything = stage.reader(Role::Admin, None).await.get("/admin").await;
    assert!(everything.says("<span class=\"number\">2</span>"));
}

#[tokio::test]
async fn what_is_not_there_is_a_page_that_says_so() {
    let stage = Stage::new();
    let mut reader = stage.reader(Role::Operator, None).await;
    let missing = format!("/admin/messages/{}", redeliver_core::MessageId::own(1));
    for path in ["/admin/nothing", "/admin/messages/x", "/admin/messages/%3Cb%3E", &missing] {
        let answer = reader.get(path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert!(answer.says("<h1>There is no such thing</h1>"));
    }
    for path in
        ["/admin/email-queue?show=nonsense", "/admin/email-queue?after=x", "/admin/email-queue?sort=to"]
    {
        assert_eq!(reader.get(path).await.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
    }
}

#[tokio::test]
async fn nobody_listens_to_what_they_may_not_see() {
    let stage = Stage::new();
    let path = format!("/admin/live?message={}", stage.failed("Invoice").await);
    let mut other = stage.reader(Role::Viewer, Some("other")).await;
    assert_eq!(other.get(&path).await.status, StatusCode::NOT_FOUND);
    let mut stranger = crate::reader::Reader::new(&stage.router);
    assert_eq!(stranger.get(&path).await.location(), "/login");
}
