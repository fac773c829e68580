//! The pages about all messages, one message's content, routes, deeds and keys, and what is done there.

use axum::http::StatusCode;
use redeliver_core::State;
use redeliver_core::accept::NewMessage;
use redeliver_core::email::{Email, Mailbox};
use redeliver_core::gate::Scope;
use redeliver_core::operate::Action;
use redeliver_engine::access::{Access, Role};
use redeliver_engine::store::{About, Store};

use crate::reader::{Answer, Reader};
use crate::stage::{Stage, TRIES_MAX, mail, sms};

fn has(answer: &Answer) -> [bool; 3] {
    ["Reminder", "Invoice", "Tour"].map(|subject| answer.says(&format!(">{subject}<")))
}

#[tokio::test]
async fn messages_are_found_by_whatever_is_known_of_them() {
    let stage = Stage::new();
    stage.pending("Reminder").await;
    stage.failed("Invoice").await;
    stage.accept(NewMessage { key: Some("tour-1".into()), workspace: "acme".into(), ..mail("Tour") }).await;
    stage.accept(sms()).await;
    let mut reader = stage.reader(Role::Viewer, None).await;
    for (query, found) in [
        ("", [true, true, true]),
        ("?status=dead", [false, true, false]),
        ("?status=retrying", [true, false, false]),
        ("?route=email&status=", [true, true, true]),
        ("?route=sms", [false, false, false]),
        ("?priority=low", [false, false, false]),
        ("?workspace=acme", [false, false, true]),
        ("?key=tour-1", [false, false, true]),
        ("?recipient=ADA%40", [true, true, true]),
        ("?recipient=grace%40", [false, false, false]),
        ("?error=Mailbox+Full", [false, true, false]),
        ("?error=451", [true, false, false]),
        ("?since=1h", [true, true, true]),
        ("?before=1h", [false, false, false]),
        ("?since=2020-01-01T00%3A00%3A00Z&before=2021-01-01T00%3A00%3A00Z", [false, false, false]),
    ] {
        let page = reader.get(&format!("/admin/messages{query}")).await;
        assert_eq!((page.status, has(&page)), (StatusCode::OK, found), "{query}");
    }
    assert!(reader.get("/admin/messages?route=sms").await.says("class=\"badge alarm\""), "what is no mail");
    assert!(reader.get("/admin/messages?priority=low").await.says("No matching messages"));
    for query in ["?status=x", "?since=x", "?sort=to", "?after=x"] {
        let page = reader.get(&format!("/admin/messages{query}")).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
    }
    let mut acme = stage.reader(Role::Viewer, Some("acme")).await;
    assert_eq!(has(&acme.get("/admin/messages").await), [false, false, true]);
    assert_eq!(has(&acme.get("/admin/messages?workspace=default").await), [false; 3]);
}

#[tokio::test]
async fn a_filter_keeps_all_that_was_asked_for() {
    let stage = Stage::new();
    stage.failed("Invoice").await;
    let mut reader = stage.reader(Role::Viewer, None).await;
    let query =
        "?status=dead&since=2020-01-01+09%3A00&before=2021-01-01&fingerprint=0123456789abcdef&error=full";
    let page = reader.get(&format!("/admin/messages{query}")).await;
    assert_eq!(page.status, StatusCode::OK);
    let form = page.body.split_once("id=\"filter\"").unwrap().1.split_once("</form>").unwrap().0;
    for field in [
        "name=\"since\" value=\"2020-01-01 09:00\"",
        "name=\"before\" value=\"2021-01-01\"",
        "name=\"fingerprint\" value=\"0123456789abcdef\"",
        "name=\"error\" value=\"full\"",
        "<option value=\"dead\" selected>",
    ] {
        assert!(form.contains(field), "{field} in {form}");
    }
}

#[tokio::test]
async fn whoever_has_no_messages_yet_is_told_how_to_begin() {
    let stage = Stage::new();
    let page = stage.reader(Role::Viewer, None).await.get("/admin/messages").await;
    assert!(page.says("No messages yet") && page.says("redeliver send --route email"));
}

#[tokio::test]
async fn the_overview_says_which_instances_live_to_those_who_see_all() {
    let stage = Stage::new();
    stage.engine.beat().await.unwrap();
    let about =
        About { name: "web-1 <b>".into(), version: "0.1.0".into(), started_at: stage.engine.clock().now() };
    stage.store.introduce(stage.engine.instance(), about).await.unwrap();
    let page = stage.reader(Role::Viewer, None).await.get("/admin").await;
    assert!(page.says("Live instances") && page.says("web-1 &#60;b&#62;") && page.says("this instance"));
    let other = stage.reader(Role::Viewer, Some("acme")).await.get("/admin").await;
    assert!(!other.says("Live instances"));
}

#[tokio::test]
async fn a_waiting_message_shows_what_comes_and_is_cancelled() {
    let stage = Stage::new();
    let id = stage.pending("Reminder").await;
    let mut reader = stage.reader(Role::Operator, None).await;
    let page = format!("/admin/messages/{id}");
    let before = reader.get(&page).await;
    assert!(
        before.says("Attempt 2 is next")
            && before.says(">Attempt 3<")
            && before.says(">Attempt 6, the last<")
    );
    assert_eq!(before.body.matches("class=\"ahead\"").count(), 4);
    let answer = reader.press(&page, &format!("{page}/cancel"), "message").await;
    assert_eq!(answer.location(), page);
    assert!(matches!(stage.get(&id).await.state, State::Cancelled { .. }));
    let after = reader.get(&page).await;
    assert!(after.says("Cancelled: the message will not be sent") && !after.says("class=\"ahead\""));
    assert_eq!(stage.deeds(&id).await, [("operator".to_owned(), "cancel")]);
}

#[tokio::test]
async fn what_a_mail_carries_is_shown_to_operators_only_and_its_html_in_a_frame_of_its_own() {
    let stage = Stage::new();
    let email = Email { html: Some("<b>Hello</b>".to_owned()), ..email_of(&mail("Tour")) };
    let new = NewMessage { attempts: TRIES_MAX, ..NewMessage::new("email", email.to_content().unwrap()) };
    let id = stage.accept(new).await;
    let (page, body) = (format!("/admin/messages/{id}"), format!("/admin/messages/{id}/body"));
    let mut viewer = stage.reader(Role::Viewer, None).await;
    let seen = viewer.get(&page).await;
    assert!(!seen.says("Your booking is confirmed") && !seen.says("<iframe"));
    assert_eq!(viewer.get(&body).await.status, StatusCode::FORBIDDEN);
    let mut operator = stage.reader(Role::Operator, None).await;
    let seen = operator.get(&page).await;
    assert!(seen.says("Your booking is confirmed"));
    assert!(seen.says(&format!("<iframe src=\"{body}\" sandbox=\"\"")));
    let frame = operator.get(&body).await;
    assert_eq!((frame.status, frame.body.as_str()), (StatusCode::OK, "<b>Hello</b>"));
    let policy = frame.headers.get("content-security-policy").unwrap().to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'") && policy.contains("; sandbox;"), "{policy}");
    assert!(!policy.contains("script-src") && !policy.contains("http"), "{policy}");
    let plain = stage.pending("Reminder").await;
    assert_eq!(operator.get(&format!("/admin/messages/{plain}/body")).await.status, StatusCode::NOT_FOUND);
    let mut other = stage.reader(Role::Operator, Some("other")).await;
    assert_eq!(other.get(&body).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn operators_see_the_headers_by_which_others_know_a_mail() {
    let stage = Stage::new();
    let address = |text: &str| Some(Mailbox { address: text.to_owned(), name: None });
    let email = Email {
        from: address("desk@example.org"),
        reply_to: address("answers@example.org"),
        in_reply_to: Some("<first@example.org>".to_owned()),
        references: vec!["<first@example.org>".to_owned()],
        ..email_of(&mail("Tour"))
    };
    let new = NewMessage { attempts: TRIES_MAX, ..NewMessage::new("email", email.to_content().unwrap()) };
    let id = stage.accept(new).await;
    let seen = stage.reader(Role::Operator, None).await.get(&format!("/admin/messages/{id}")).await;
    for (name, text) in [
        ("Message-ID", format!("&#60;{id}@example.org&#62;")),
        ("Reply-To", "answers@example.org".to_owned()),
        ("In-Reply-To", "&#60;first@example.org&#62;".to_owned()),
        ("References", "&#60;first@example.org&#62;".to_owned()),
    ] {
        assert!(seen.says(&format!("<dt>{name}</dt><dd>{text}</dd>")), "{name} in {}", seen.body);
    }
}

fn email_of(new: &NewMessage) -> Email {
    Email::of_content(&new.content).unwrap().unwrap()
}

#[tokio::test]
async fn a_route_shows_when_it_tries_again_and_is_paused_and_resumed() {
    let stage = Stage::new();
    let mut reader = stage.reader(Role::Operator, None).await;
    let page = reader.get("/admin/routes").await;
    assert!(page.says("6 attempts, the last 2 h 30 min after the first"), "{}", page.body);
    assert_eq!(page.body.matches("<svg class=\"curve\"").count(), 2);
    assert_eq!(page.body.matches(">running<").count(), 2);
    let press = async |reader: &mut crate::reader::Reader, verb: &str| {
        let answer = reader.press("/admin/routes", &format!("/admin/routes/email/{verb}"), "").await;
        assert_eq!(answer.location(), "/admin/routes");
        reader.get("/admin/routes").await
    };
    let paused = press(&mut reader, "pause").await;
    assert!(paused.says(">paused<") && paused.says("paused by operator"));
    assert_eq!(stage.store.gates().await.unwrap().len(), 1);
    assert_eq!(press(&mut reader, "resume").await.body.matches(">running<").count(), 2);
    assert!(stage.store.gates().await.unwrap().is_empty());
    let deeds = reader.get("/admin/audit").await;
    assert!(deeds.says(">pause<") && deeds.says(">resume<") && deeds.says(">route:email<"));
    assert_eq!(reader.press("/admin", "/admin/routes/none/pause", "").await.status, StatusCode::NOT_FOUND);
    let mut viewer = stage.reader(Role::Viewer, None).await;
    assert!(!viewer.get("/admin/routes").await.says(">Pause<"));
    assert_eq!(viewer.press("/admin", "/admin/routes/email/pause", "").await.status, StatusCode::FORBIDDEN);
    let mut one = stage.reader(Role::Operator, Some("acme")).await;
    assert!(!one.get("/admin/routes").await.says(">Pause<"));
    assert_eq!(one.press("/admin", "/admin/routes/email/pause", "").await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_destination_that_is_stopped_is_released_by_whoever_reaches_all_workspaces() {
    let stage = Stage::new();
    stage.engine.pause(Scope::Destination, "mx.example.org", &"grace".into()).await.unwrap();
    let release = "/admin/stopped/destination/mx.example.org/release";
    let mut one = stage.reader(Role::Operator, Some("acme")).await;
    assert_eq!(one.press("/admin", release, "").await.status, StatusCode::FORBIDDEN);
    assert!(!stage.reader(Role::Viewer, None).await.get("/admin").await.says(release));
    let mut reader = stage.reader(Role::Operator, None).await;
    assert!(reader.get("/admin").await.says(release) && reader.get("/admin/routes").await.says(release));
    assert_eq!(reader.press("/admin/routes", release, "").await.location(), "/admin/routes");
    assert!(stage.store.gates().await.unwrap().is_empty());
    let elsewhere = "/admin/stopped/workspace/acme/release";
    assert_eq!(reader.press("/admin", elsewhere, "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn deeds_are_told_to_whoever_reaches_all_workspaces() {
    let stage = Stage::new();
    let id = stage.failed("Invoice").await;
    let mut reader = stage.reader(Role::Operator, None).await;
    reader.press("/admin/email-queue", &format!("/admin/messages/{id}/dismiss"), "all").await;
    let page = reader.get("/admin/audit").await;
    assert!(page.says(">dismiss<") && page.says(&format!("href=\"/admin/messages/{id}\"")));
    let mut one = stage.reader(Role::Operator, Some("acme")).await;
    assert_eq!(one.get("/admin/audit").await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_admin_makes_a_key_that_is_shown_once_and_revokes_it() {
    let stage = Stage::new();
    let mut admin = stage.reader(Role::Admin, None).await;
    let csrf = admin.get("/admin/keys").await.csrf();
    let fields = [("csrf", csrf.as_str()), ("name", "booking"), ("role", "sender"), ("workspace", "acme")];
    let made = admin.post("/admin/keys", &fields).await;
    let (_, text) = made.body.split_once("<pre id=\"made\"><code>").unwrap();
    let text = text.split_once('<').unwrap().0.to_owned();
    assert!(!admin.get("/admin/keys").await.says(&text), "once");
    let keys = stage.store.keys().await.unwrap();
    let key = keys.iter().find(|key| &*key.name == "booking").unwrap();
    assert_eq!((key.role, key.workspace.as_deref()), (Role::Sender, Some("acme")));
    assert_eq!(crate::reader::Reader::new(&stage.router).log_in(&text).await.location(), "/admin");
    let revoke = format!("/admin/keys/{}/revoke", key.id);
    assert_eq!(admin.press("/admin/keys", &revoke, "").await.location(), "/admin/keys");
    assert!(admin.get("/admin/keys").await.says(">revoked<"));
    assert_eq!(admin.press("/admin/keys", &revoke, "").await.status, StatusCode::NOT_FOUND);
    for (name, role) in [("", "sender"), ("x", "king")] {
        let answer = admin.post("/admin/keys", &[("csrf", &csrf), ("name", name), ("role", role)]).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let mut own = stage.reader(Role::Admin, Some("acme")).await;
    let csrf = own.get("/admin/keys").await.csrf();
    let beyond = [("csrf", csrf.as_str()), ("name", "x"), ("role", "viewer"), ("workspace", "other")];
    assert_eq!(own.post("/admin/keys", &beyond).await.status, StatusCode::FORBIDDEN);
    let mut operator = stage.reader(Role::Operator, None).await;
    assert!(!operator.get("/admin").await.says("/admin/keys"));
    assert_eq!(operator.get("/admin/keys").await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn some_or_all_that_match_are_dismissed_after_a_look_at_what_it_means() {
    let stage = Stage::new();
    let invoice = stage.failed("Invoice").await;
    stage.failed("Tour").await;
    stage.pending("Reminder").await;
    let mut reader = stage.reader(Role::Operator, None).await;
    let list = reader.get("/admin/messages?status=dead").await;
    assert!(list.says(&format!("form=\"chosen\" name=\"id\" value=\"{invoice}\"")));
    let csrf = list.csrf();
    let post = async |reader: &mut crate::reader::Reader, fields: &[(&str, &str)]| {
        let fields: Vec<(&str, &str)> =
            [("csrf", csrf.as_str()), ("action", "dismiss")].iter().chain(fields).copied().collect();
        reader.post("/admin/bulk", &fields).await
    };
    assert_eq!(
        post(&mut reader, &[("status", "dead")]).await.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "none chosen"
    );
    let id = invoice.to_string();
    assert!(post(&mut reader, &[("id", &id)]).await.says("<dd id=\"count\">1</dd>"));
    let plan = post(&mut reader, &[("status", "dead"), ("all", "yes")]).await;
    assert!(plan.says("<dd id=\"count\">2</dd>") && plan.says("Nothing has changed yet"));
    assert!(reader.get("/admin/bulk").await.says("No bulk operations"));
    let begun = post(&mut reader, &[("status", "dead"), ("all", "yes"), ("sure", "yes")]).await;
    let page = begun.location().to_owned();
    assert!(page.starts_with("/admin/bulk/"), "{page}");
    assert!(reader.get(&page).await.says(">running<"));
    stage.engine.bulk_tick().await.unwrap();
    let done = reader.get(&page).await;
    assert!(done.says(">done<") && done.says("id=\"done\">2</span>") && done.says("aria-label=\"2 of 2\""));
    assert!(reader.get("/admin/messages?status=dead").await.says("No matching messages"));
    assert!(reader.get("/admin/audit").await.says(&format!("href=\"{page}\"")));
    let late = reader.press(&page, &format!("{page}/stop"), "").await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    let mut viewer = stage.reader(Role::Viewer, None).await;
    assert!(!viewer.get("/admin/messages").await.says("id=\"chosen\""));
    let csrf = viewer.get("/admin").await.csrf();
    let fields = [("csrf", csrf.as_str()), ("action", "retry"), ("all", "yes")];
    assert_eq!(viewer.post("/admin/bulk", &fields).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn what_was_given_up_stands_together_by_its_error() {
    let stage = Stage::new();
    let mut reader = stage.reader(Role::Operator, None).await;
    assert!(reader.get("/admin/dead-letters").await.says("No dead messages"));
    stage.failed("Invoice").await;
    stage.failed("Tour").await;
    stage.accept(sms()).await;
    let page = reader.get("/admin/dead-letters").await;
    assert!(page.says(">452 4.2.2 mailbox full<") && page.says("<b>2</b>") && page.says("no error was told"));
    assert_eq!(page.body.matches("<svg class=\"spark\"").count(), 2);
    let (_, after) = page.body.split_once("name=\"fingerprint\" value=\"").unwrap();
    let fingerprint = after.split_once('"').unwrap().0.to_owned();
    let listed = reader.get(&format!("/admin/messages?status=dead&fingerprint={fingerprint}")).await;
    assert_eq!(has(&listed), [false, true, true]);
    assert!(listed.says("Only messages with an error like <b>452 4.2.2 mailbox full</b>"), "{}", listed.body);
    let csrf = page.csrf();
    let fields =
        [("csrf", csrf.as_str()), ("action", "dismiss"), ("all", "yes"), ("fingerprint", &fingerprint)];
    assert!(reader.post("/admin/bulk", &fields).await.says("<dd id=\"count\">2</dd>"));
    assert!(!stage.reader(Role::Viewer, None).await.get("/admin/dead-letters").await.says("<button name"));
}

#[tokio::test]
async fn what_people_did_is_read_page_by_page_and_by_who_what_and_to_what() {
    let stage = Stage::new();
    let mut reader = stage.reader(Role::Operator, None).await;
    let mut ids = Vec::new();
    for n in 0..60 {
        let id = stage.failed(&format!("Mail {n}")).await;
        let actor = if n < 3 { "bob" } else { "ann" };
        stage.engine.operate(&id, Action::Dismiss, &actor.into()).await.unwrap();
        ids.push(id.to_string());
    }
    let deeds = |page: &Answer| page.body.matches("<td class=\"deed\">").count();
    let first = reader.get("/admin/audit").await;
    let older = first.body.split_once("\" rel=\"next\"").unwrap().0.rsplit_once('"').unwrap().1;
    let second = reader.get(&older.replace("&#38;", "&")).await;
    // The first deed of all was to make the reader's key.
    assert_eq!((deeds(&first), deeds(&second)), (50, 11));
    assert!(first.says(&ids[59]) && !first.says(&ids[0]) && second.says(&ids[0]) && second.says(">create<"));
    let count =
        async |reader: &mut Reader, asked: &str| deeds(&reader.get(&format!("/admin/audit?{asked}")).await);
    assert_eq!(count(&mut reader, "actor=bob&action=&subject=").await, 3);
    assert_eq!(count(&mut reader, &format!("subject={}", ids[7])).await, 1);
    assert_eq!(count(&mut reader, &format!("subject={}&actor=bob", ids[7])).await, 0);
    assert_eq!(count(&mut reader, "action=create").await, 1);
    let of_ann = reader.get("/admin/audit?actor=ann").await;
    assert!(
        of_ann.says("/admin/audit?actor=ann&#38;after="),
        "the next page is of the same: {}",
        of_ann.body
    );
    assert!(reader.get("/admin/audit?action=bulk+retry").await.says("No matching actions"));
}
