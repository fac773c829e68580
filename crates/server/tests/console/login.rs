//! Who comes in, and for how long.

use std::time::Duration;

use axum::http::{StatusCode, header};
use redeliver_core::MessageId;
use redeliver_core::change::Audit;
use redeliver_engine::access::{Access, Role};

use crate::reader::Reader;
use crate::stage::Stage;

#[tokio::test]
async fn strangers_are_led_to_the_login() {
    let stage = Stage::new();
    let message = format!("/admin/messages/{}", MessageId::own(1));
    for path in ["/", "/admin", "/admin/", "/admin/email-queue", "/admin/nothing", &message] {
        let answer = Reader::new(&stage.router).get(path).await;
        assert_eq!((answer.status, answer.location()), (StatusCode::SEE_OTHER, "/login"), "{path}");
    }
    for path in ["/logout", &format!("{message}/retry")] {
        let answer = Reader::new(&stage.router).post(path, &[]).await;
        assert_eq!((answer.status, answer.location()), (StatusCode::SEE_OTHER, "/login"), "{path}");
    }
}

#[tokio::test]
async fn a_key_opens_a_session_whose_cookie_no_script_and_no_other_site_can_use() {
    let stage = Stage::new();
    let key = stage.key("ada", Role::Operator, None).await;
    let mut reader = Reader::new(&stage.router);
    let answer = reader.log_in(&format!(" {} ", key.text)).await;
    assert_eq!((answer.status, answer.location()), (StatusCode::SEE_OTHER, "/admin"));
    let cookie = answer.headers.get(header::SET_COOKIE).unwrap().to_str().unwrap();
    let (token, rest) = cookie.strip_prefix("redeliver_session=").unwrap().split_once(';').unwrap();
    assert_eq!(token.len(), 64, "256 bits");
    assert_eq!(rest, " Path=/; HttpOnly; SameSite=Strict; Max-Age=43200");
    let overview = reader.get("/admin").await;
    assert!(overview.says("ada<small>operator"), "{}", overview.body);
    assert!(!overview.says(token) && !overview.says(&key.text));
    for path in ["/", "/login", "/admin/"] {
        assert_eq!(reader.get(path).await.location(), "/admin", "{path}");
    }
}

#[tokio::test]
async fn a_wrong_key_opens_nothing_and_is_never_repeated() {
    let stage = Stage::new();
    let key = stage.key("ada", Role::Operator, None).await;
    let almost = format!("{}0", key.text);
    for wrong in ["", "x", "rdk_nobody_knows", "<script>alert(1)</script>", &almost] {
        let mut reader = Reader::new(&stage.router);
        let answer = reader.log_in(wrong).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert!(answer.says("This key is unknown or revoked."));
        assert!(wrong.len() < 2 || !answer.says(wrong));
        assert!(reader.cookies.is_empty());
        assert_eq!(reader.get("/admin").await.location(), "/login");
    }
}

#[tokio::test]
async fn a_session_ends_when_its_owner_logs_out() {
    let stage = Stage::new();
    let mut reader = stage.reader(Role::Viewer, None).await;
    let stolen = reader.clone();
    let csrf = reader.get("/admin").await.csrf();
    assert_eq!(reader.post("/logout", &[("csrf", &csrf)]).await.location(), "/login");
    assert!(reader.cookies.is_empty());
    assert_eq!(stolen.clone().get("/admin").await.location(), "/login", "the cookie is worthless now");
}

#[tokio::test]
async fn a_session_ends_with_its_key() {
    let stage = Stage::new();
    let key = stage.key("ada", Role::Viewer, None).await;
    let mut reader = Reader::new(&stage.router);
    reader.log_in(&key.text).await;
    assert_eq!(reader.get("/admin").await.status, StatusCode::OK);
    let at = stage.engine.clock().now();
    let audit = Audit { actor: "root".into(), action: "revoke", subject: "ada".into(), at, detail: None };
    assert!(stage.store.revoke_key(&key.record.id, audit).await.unwrap());
    assert_eq!(reader.get("/admin").await.location(), "/login");
}

#[tokio::test]
async fn a_session_ends_after_twelve_hours() {
    let (stage, clock) = Stage::with_hand_on_clock();
    let mut reader = stage.reader(Role::Viewer, None).await;
    clock.advance(Duration::from_secs(12 * 3_600 - 1));
    assert_eq!(reader.get("/admin").await.status, StatusCode::OK);
    clock.advance(Duration::from_secs(1));
    assert_eq!(reader.get("/admin").await.location(), "/login");
}

#[tokio::test]
async fn nobody_is_led_away_by_what_an_address_says() {
    let stage = Stage::new();
    let key = stage.key("ada", Role::Viewer, None).await;
    for path in ["/login?next=//evil.example", "/login?redirect=https://evil.example"] {
        let answer =
            Reader::new(&stage.router).post(path, &[("key", &key.text), ("next", "//evil.example")]).await;
        assert_eq!(answer.location(), "/admin");
    }
}

#[tokio::test]
async fn another_sites_page_logs_nobody_in() {
    let stage = Stage::new();
    let key = stage.key("eve", Role::Viewer, None).await;
    let mut reader = Reader::new(&stage.router);
    for site in ["cross-site", "same-site"] {
        let answer = reader.post_from("/login", &[("key", &key.text)], site).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        assert!(reader.cookies.is_empty());
    }
}

#[tokio::test]
async fn a_form_has_a_limit() {
    let stage = Stage::new();
    let answer = Reader::new(&stage.router).log_in(&"x".repeat(40_000)).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(answer.says("<h1>The request is too large</h1>\n<p>At most 32768 bytes"), "a page, not JSON");
}

#[tokio::test]
async fn a_server_without_keys_says_how_to_make_one() {
    let stage = Stage::new();
    let page = Reader::new(&stage.router).get("/login").await;
    assert!(page.says("There is no key yet") && page.says("redeliver keys create"));
    assert!(!page.says("<input"));
}

#[tokio::test]
async fn assets_come_as_what_they_are() {
    let stage = Stage::new();
    for (path, kind) in [
        ("/assets/console.css", "text/css; charset=utf-8"),
        ("/assets/console.js", "text/javascript; charset=utf-8"),
        ("/assets/icon.svg", "image/svg+xml"),
    ] {
        let answer = Reader::new(&stage.router).get(path).await;
        assert_eq!(answer.headers.get(header::CONTENT_TYPE).unwrap(), kind);
        assert_eq!(answer.headers.get("x-content-type-options").unwrap(), "nosniff");
    }
}
