//! A message that was given up is corrected on its page: a form, the difference, and only then the sending.

use axum::http::StatusCode;
use redeliver_core::accept::NewMessage;
use redeliver_core::email::Email;
use redeliver_core::{Content, MessageId, State};
use redeliver_engine::access::Role;
use redeliver_engine::store::Store;

use crate::reader::{Answer, Reader};
use crate::stage::{Stage, TRIES_MAX, mail};

/// What the fields of the form on a page have, as a browser would send them.
fn filled(page: &Answer) -> Vec<(String, String)> {
    let plain = |text: &str| {
        let marks = [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
        marks.iter().fold(text.to_owned(), |text, (mark, plain)| text.replace(mark, plain))
    };
    let form = page.body.split("<form").find(|form| form.contains("name=\"version\"")).expect("the form");
    let mut fields = Vec::new();
    let value = |tag: &str, name: &str| {
        let after = tag.split_once('>')?.0.split_once(&format!(" {name}=\""))?.1;
        Some(plain(after.split_once('"')?.0))
    };
    for input in form.split("<input").skip(1) {
        fields.push((value(input, "name").unwrap(), value(input, "value").unwrap()));
    }
    // Whoever presses Enter presses the first button.
    let button = form.split("<button").nth(1).unwrap();
    fields.extend(value(button, "name").zip(value(button, "value")));
    for area in form.split("<textarea ").skip(1) {
        let name = area.split_once("name=\"").unwrap().1.split_once('"').unwrap().0.to_owned();
        let text = area.split_once(">\n").unwrap().1.split_once("</textarea>").unwrap().0;
        fields.push((name, plain(text).replace('\n', "\r\n")));
    }
    if let Some((_, options)) = form.split_once("<select id=\"route\"") {
        let chosen = options.split("<option ").find(|option| option.contains(" selected")).unwrap();
        fields.push(("route".to_owned(), chosen.split('"').nth(1).unwrap().to_owned()));
    }
    fields
}

async fn send(reader: &mut Reader, path: &str, fields: &[(String, String)]) -> Answer {
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    reader.post(path, &fields).await
}

fn set(fields: &mut [(String, String)], name: &str, text: &str) {
    fields.iter_mut().find(|(known, _)| known == name).expect("the field is there").1 = text.to_owned();
}

async fn email(stage: &Stage, id: &MessageId) -> Email {
    Email::of_content(&stage.store.content(id.clone()).await.unwrap().unwrap()).unwrap().unwrap()
}

#[tokio::test]
async fn a_wrong_address_is_corrected_after_the_difference_was_seen() {
    let stage = Stage::new();
    let id = stage.failed("Invoice").await;
    let mut reader = stage.reader(Role::Operator, None).await;
    let page = format!("/admin/messages/{id}");
    let form = format!("{page}/edit");
    assert!(reader.get(&page).await.says(&format!("href=\"{form}\"")));
    let mut fields = filled(&reader.get(&form).await);
    set(&mut fields, "to", "Ada Lovelace <ada@example.com>\r\nbob@example.org");
    let plan = send(&mut reader, &form, &fields).await;
    assert_eq!(plan.status, StatusCode::OK);
    assert!(plan.says("<dt>To</dt>") && plan.says("ada@example.com") && plan.says("ada@example.org"));
    assert!(!plan.says("<dt>Text</dt>"), "what nobody touched is not otherwise");
    assert!(matches!(stage.get(&id).await.state, State::Dead { .. }), "nothing has happened yet");
    let sent = send(&mut reader, &form, &filled(&plan)).await;
    assert_eq!(sent.location(), page);
    assert!(matches!(stage.get(&id).await.state, State::Waiting { .. }));
    let to: Vec<String> = email(&stage, &id).await.to.into_iter().map(|mailbox| mailbox.address).collect();
    assert_eq!(to, ["ada@example.com", "bob@example.org"]);
    let after = reader.get(&page).await;
    assert!(after.says("Corrected by operator, sent again") && after.says("Corrections"));
    assert!(after.says("ada@example.org"), "what it said is not lost");
    assert_eq!(stage.deeds(&id).await, [("operator".to_owned(), "edit")]);
    assert!(reader.get("/admin/audit").await.says("<small>email.to</small>"));
    let again = send(&mut reader, &form, &filled(&plan)).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "the other window shows what was");
}

#[tokio::test]
async fn what_is_wrong_is_said_above_what_was_typed() {
    let stage = Stage::new();
    let id = stage.failed("Invoice").await;
    let mut reader = stage.reader(Role::Operator, None).await;
    let form = format!("/admin/messages/{id}/edit");
    let mut fields = filled(&reader.get(&form).await);
    for (name, text) in [("to", "nobody at all"), ("subject", ""), ("text", "")] {
        set(&mut fields, name, text);
    }
    let answer = send(&mut reader, &form, &fields).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(answer.says("role=\"alert\"") && answer.says("nobody at all"));
    let mut fields = filled(&reader.get(&form).await);
    set(&mut fields, "attributes", "no equals sign");
    assert!(send(&mut reader, &form, &fields).await.says("must be name=value"));
    let mut fields = filled(&reader.get(&form).await);
    set(&mut fields, "subject", "half done");
    fields.push(("again".to_owned(), "yes".to_owned()));
    let again = send(&mut reader, &form, &fields).await;
    assert!(again.status == StatusCode::OK && again.says("half done"), "what was typed is still there");
    let fields = filled(&reader.get(&form).await);
    let same = send(&mut reader, &form, &fields).await;
    assert_eq!(same.status, StatusCode::CONFLICT);
    assert!(same.says("Nothing would be different"));
}

#[tokio::test]
async fn a_payload_is_corrected_byte_for_byte_and_a_large_one_too() {
    let stage = Stage::new();
    let text = format!("{{\"a\":1,\r\n\"b\":\"{}\"}}", "x".repeat(100_000));
    let content =
        Content { content_type: Some("application/json".into()), ..Content::of_bytes(text.clone()) };
    let id = stage.accept(NewMessage { attempts: TRIES_MAX, ..NewMessage::new("sms", content) }).await;
    let mut reader = stage.reader(Role::Operator, None).await;
    let form = format!("/admin/messages/{id}/edit");
    let mut fields = filled(&reader.get(&form).await);
    let changed = text.replace("\"a\":1", "\"a\":2");
    set(&mut fields, "payload", &changed[1..]);
    assert!(send(&mut reader, &form, &fields).await.says("is no longer valid JSON"));
    set(&mut fields, "payload", &changed);
    set(&mut fields, "route", "email");
    fields.push(("sure".to_owned(), "yes".to_owned()));
    assert_eq!(send(&mut reader, &form, &fields).await.status, StatusCode::SEE_OTHER);
    assert_eq!(stage.store.content(id.clone()).await.unwrap().unwrap().bytes, changed);
    assert_eq!(&*stage.get(&id).await.route, "email");
}

#[tokio::test]
async fn whoever_only_looks_sees_that_something_was_corrected_and_not_what() {
    let stage = Stage::new();
    let id = stage.accept(NewMessage { attempts: TRIES_MAX, ..mail("the-first-subject") }).await;
    let mut operator = stage.reader(Role::Operator, None).await;
    let (page, form) = (format!("/admin/messages/{id}"), format!("/admin/messages/{id}/edit"));
    let mut fields = filled(&operator.get(&form).await);
    set(&mut fields, "subject", "another");
    fields.push(("sure".to_owned(), "yes".to_owned()));
    assert_eq!(send(&mut operator, &form, &fields).await.location(), page);
    let mut viewer = stage.reader(Role::Viewer, None).await;
    let seen = viewer.get(&page).await;
    assert!(seen.says("Corrected by operator") && seen.says("email.subject"));
    assert!(!seen.says("the-first-subject") && !seen.says("/edit\""));
    assert_eq!(viewer.get(&form).await.status, StatusCode::FORBIDDEN);
    let other = stage.reader(Role::Operator, Some("acme")).await.get(&form).await;
    assert_eq!(other.status, StatusCode::NOT_FOUND);
}
