//! `/admin/messages/{id}/edit`: correct what made a message hopeless, see the difference, and send it again.

use std::collections::BTreeMap;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use redeliver_core::edit::Difference;
use redeliver_core::email::{Email, Mailbox};
use redeliver_core::operate::Action;
use redeliver_core::{Content, Message};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::emails::{Carried, Heading, content, visible, written};
use super::flash::{self, Flash};
use super::form::Form;
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::page::{Answer, page};
use super::refusal::Refusal;
use super::{Console, link};
use crate::api::messages::edit::{Asked, Payload, wanted};
use crate::api::messages::find;
use crate::input::Id;
use crate::problem::{FieldProblem, Problem};

/// Characters of a difference that are shown, at most.
const SHOWN_CHARS_MAX: usize = 5_000;

/// One field of the form.
struct Field {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    text: String,
    rows: usize,
}

/// What is different in one field, as people read it.
pub(super) struct Row {
    pub(super) field: String,
    pub(super) before: String,
    pub(super) after: String,
}

#[derive(Template)]
#[template(path = "edit.html")]
struct Page {
    frame: Frame,
    href: String,
    subject: String,
    version: u64,
    routes: Vec<(String, bool)>,
    fields: Vec<Field>,
    problems: Vec<String>,
    is_mail: bool,
    is_unsure: bool,
    csrf: String,
}

#[derive(Template)]
#[template(path = "edit_plan.html")]
struct Plan {
    frame: Frame,
    href: String,
    subject: String,
    rows: Vec<Row>,
    fields: Vec<(String, String)>,
    is_unsure: bool,
    csrf: String,
}

/// What the page is about.
struct Subject {
    message: Message,
    content: Content,
    email: Option<Email>,
    heading: String,
}

impl Subject {
    async fn find(console: &Console, visitor: &Visitor, id: Result<Id, Problem>) -> Result<Self, Problem> {
        let Id(id) = id?;
        let message = find(&console.server, &visitor.caller, &id).await?;
        let engine = &console.server.engine;
        let content = content(engine, &id).await?;
        let email = Email::of_content(&content).and_then(Result::ok);
        let heading =
            Heading::of(&message, &content, &Carried::of(engine, &message, &content).await?).subject;
        Ok(Self { message, content, email, heading })
    }
}

/// `GET /admin/messages/{id}/edit`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    id: Result<Id, Problem>,
) -> Answer {
    let subject = Subject::find(&console, &visitor, id).await?;
    let shown = fields(&subject);
    form(&console, &visitor, &subject, subject.message.fence, &subject.message.route, shown, Vec::new())
}

/// `POST /admin/messages/{id}/edit`: what would be different; with `sure`, the correction; with `again`, the form as it was
/// filled in.
pub(super) async fn send(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Extension(said): Extension<Form>,
    id: Result<Id, Problem>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let subject = Subject::find(&console, &visitor, id).await?;
    let (server, name) = (&console.server, &visitor.caller.name);
    let looked_over = asked(&subject, &said)
        .map_err(Problem::invalid)
        .and_then(|asked| wanted(server, &subject.message, &subject.content, asked));
    let wanted = match looked_over {
        Ok(wanted) => wanted,
        Err(problem) if !problem.errors.is_empty() => {
            let words = |wrong: &FieldProblem| visible(&format!("{} {}", wrong.field, wrong.problem));
            let problems = problem.errors.iter().map(words).collect();
            let again = form_as_typed(&console, &visitor, &subject, &said, problems)?;
            return Ok((StatusCode::UNPROCESSABLE_ENTITY, again).into_response());
        }
        Err(problem) => return Err(problem.into()),
    };
    if said.text("again") == "yes" {
        return Ok(form_as_typed(&console, &visitor, &subject, &said, Vec::new())?.into_response());
    }
    let planned = server.engine.plan_edit(&subject.message, &subject.content, wanted, name).await?;
    if said.text("sure") != "yes" {
        let differences = planned.edit.as_ref().map(|record| rows(&record.differences)).unwrap_or_default();
        return Ok(plan(&console, &visitor, &subject, &said, differences)?.into_response());
    }
    let id = server.engine.edit(planned).await?.id;
    let back = link::message(&id);
    let value = Flash { action: Action::Retry, id }.value();
    let cookie = console.secure.set(&headers, flash::COOKIE, &value, flash::AGE);
    Ok((AppendHeaders([cookie]), Redirect::to(&back)).into_response())
}

/// The form as somebody has filled it in.
fn form_as_typed(
    console: &Console,
    visitor: &Visitor,
    subject: &Subject,
    said: &Form,
    problems: Vec<String>,
) -> Answer {
    let shown = fields(subject).into_iter().map(|field| as_typed(field, said)).collect();
    let version = said.text("version").parse().unwrap_or_default();
    form(console, visitor, subject, version, said.text("route"), shown, problems)
}

fn form(
    console: &Console,
    visitor: &Visitor,
    subject: &Subject,
    version: u64,
    route: &str,
    fields: Vec<Field>,
    problems: Vec<String>,
) -> Answer {
    let routes = console.server.engine.routes().filter(|known| known.table.is_none());
    page(&Page {
        frame: Frame::around(console, visitor, Place::Elsewhere),
        href: link::message(&subject.message.id),
        subject: subject.heading.clone(),
        version,
        routes: routes.map(|known| (known.name.to_string(), *known.name == *route)).collect(),
        fields,
        problems,
        is_mail: subject.email.is_some(),
        is_unsure: subject.message.possible_duplicates > 0,
        csrf: visitor.csrf.clone(),
    })
}

fn plan(console: &Console, visitor: &Visitor, subject: &Subject, said: &Form, rows: Vec<Row>) -> Answer {
    let names = fields(subject).into_iter().map(|field| field.name);
    let kept = names.chain(["version", "route"]).map(|name| (name.to_owned(), said.text(name).to_owned()));
    page(&Plan {
        frame: Frame::around(console, visitor, Place::Elsewhere),
        href: link::message(&subject.message.id),
        subject: subject.heading.clone(),
        rows,
        fields: kept.collect(),
        is_unsure: subject.message.possible_duplicates > 0,
        csrf: visitor.csrf.clone(),
    })
}

/// Differences as people read them.
pub(super) fn rows(differences: &[Difference]) -> Vec<Row> {
    let row = |different: &Difference| Row {
        field: visible(named(&different.field)),
        before: shown(&different.before),
        after: shown(&different.after),
    };
    differences.iter().map(row).collect()
}

/// A field as the form calls it; others are called as the API does.
fn named(field: &str) -> &str {
    match field {
        "email.to" => "To",
        "email.cc" => "Cc",
        "email.bcc" => "Bcc",
        "email.from" => "From",
        "email.reply_to" => "Reply to",
        "email.subject" => "Subject",
        "email.text" => "Text",
        "email.html" => "HTML",
        "payload" => "Payload",
        "target" => "Target",
        "content_type" => "Content type",
        "route" => "Route",
        other => other,
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "—".to_owned(),
        Value::String(text) => text.replace("\r\n", "\n"),
        other => match people(other) {
            Some(people) => people,
            None => serde_json::to_string_pretty(other).unwrap_or_default(),
        },
    };
    let mut shown = visible(&text.chars().take(SHOWN_CHARS_MAX).collect::<String>());
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Addresses as people write them, a line each; `None` if this is something else.
fn people(value: &Value) -> Option<String> {
    let one = |value: &Value| Mailbox::deserialize(value).ok().map(|mailbox| written(&mailbox));
    match value {
        Value::Array(all) => Some(all.iter().map(one).collect::<Option<Vec<String>>>()?.join("\n")),
        other => one(other),
    }
}

/// The fields of a message that can be corrected here, as it has them.
fn fields(subject: &Subject) -> Vec<Field> {
    let field = |name, label, hint, text: String, rows| Field { name, label, hint, text, rows };
    let one = |mailbox: &Option<Mailbox>| mailbox.as_ref().map(line).unwrap_or_default();
    let all = |mailboxes: &[Mailbox]| mailboxes.iter().map(line).collect::<Vec<_>>().join("\n");
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let content = &subject.content;
    let mut fields = match &subject.email {
        Some(email) => vec![
            field(
                "to",
                "To",
                "one address per line, such as Ada Lovelace <ada@example.org>",
                all(&email.to),
                2,
            ),
            field("cc", "Cc", "", all(&email.cc), 1),
            field("bcc", "Bcc", "", all(&email.bcc), 1),
            field("from", "From", "empty for the route's sender", one(&email.from), 0),
            field("reply_to", "Reply to", "", one(&email.reply_to), 0),
            field("subject", "Subject", "", email.subject.clone(), 0),
            field("text", "Text", "", text(&email.text), 8),
            field("html", "HTML", "", text(&email.html), 8),
        ],
        None => {
            let kind = content.content_type.as_deref().unwrap_or_default().to_owned();
            let target = content.target.as_deref().unwrap_or_default().to_owned();
            let bytes = std::str::from_utf8(&content.bytes).ok();
            let payload = bytes.map(|text| field("payload", "Payload", "", text.to_owned(), 10));
            let target_hint = "queue, topic or stream, if the route leaves it open";
            [
                Some(field("target", "Target", target_hint, target, 0)),
                Some(field("content_type", "Content type", "", kind, 0)),
                payload,
            ]
            .into_iter()
            .flatten()
            .collect()
        }
    };
    let attributes = content.attributes.iter().map(|(name, value)| format!("{name}={value}"));
    let attributes = attributes.collect::<Vec<_>>().join("\n");
    fields.push(field("attributes", "Attributes", "name=value, one per line", attributes, 2));
    fields
}

/// An address as it is written in a line, to be read again.
fn line(mailbox: &Mailbox) -> String {
    match &mailbox.name {
        Some(name) => format!("{name} <{}>", mailbox.address),
        None => mailbox.address.clone(),
    }
}

fn as_typed(field: Field, said: &Form) -> Field {
    Field { text: said.text(field.name).to_owned(), ..field }
}

/// What somebody wants otherwise: the fields that no longer say what they were shown with.
fn asked(subject: &Subject, said: &Form) -> Result<Asked, Vec<FieldProblem>> {
    let wrong = |field: &str, problem: String| FieldProblem::new(field, problem);
    let mut problems = Vec::new();
    let mut asked = Asked { version: said.text("version").parse().ok(), ..Asked::default() };
    if asked.version.is_none() {
        problems.push(wrong("version", "is missing: load the page again".to_owned()));
    }
    asked.route = Some(said.text("route").to_owned()).filter(|route| **route != *subject.message.route);
    let mut email = Map::new();
    for field in fields(subject) {
        let Some(text) = otherwise(&field.text, said.text(field.name)) else { continue };
        let nothing = text.trim().is_empty();
        match field.name {
            "to" | "cc" | "bcc" => match mailboxes(&text) {
                Ok(mailboxes) => drop(email.insert(field.name.to_owned(), mailboxes)),
                Err(problem) => problems.push(wrong(field.name, problem)),
            },
            "from" | "reply_to" => match Mailbox::parse(&text) {
                _ if nothing => drop(email.insert(field.name.to_owned(), Value::Null)),
                Ok(mailbox) => drop(email.insert(field.name.to_owned(), json_of(&mailbox))),
                Err(problem) => problems.push(wrong(field.name, problem)),
            },
            "subject" => drop(email.insert("subject".to_owned(), text.into())),
            "text" | "html" => {
                let value = if text.is_empty() { Value::Null } else { text.into() };
                email.insert(field.name.to_owned(), value);
            }
            "attributes" => match attributes(subject, &text) {
                Ok(attributes) => asked.attributes = attributes,
                Err(problem) => problems.push(wrong("attributes", problem)),
            },
            "target" => asked.target = Some((!nothing).then(|| text.trim().into())),
            "content_type" => asked.content_type = Some((!nothing).then(|| text.trim().into())),
            "payload" => asked.payload = Some(Payload::Bytes(text.into_bytes())),
            _ => {}
        }
    }
    asked.email = Some(email).filter(|email| !email.is_empty());
    if let Some(Payload::Bytes(bytes)) = &asked.payload
        && serde_json::from_slice::<serde::de::IgnoredAny>(&subject.content.bytes).is_ok()
        && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_err()
    {
        problems.push(wrong("payload", "is no longer valid JSON".to_owned()));
    }
    if problems.is_empty() { Ok(asked) } else { Err(problems) }
}

/// What was typed, if it is otherwise than what was there. Browsers end lines by CR LF, whatever they were given.
fn otherwise(before: &str, typed: &str) -> Option<String> {
    let typed = typed.replace("\r\n", "\n");
    if typed == before.replace("\r\n", "\n") {
        return None;
    }
    Some(if before.contains("\r\n") { typed.replace('\n', "\r\n") } else { typed })
}

fn mailboxes(text: &str) -> Result<Value, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let read = lines.map(|line| Mailbox::parse(line).map(|mailbox| json_of(&mailbox)));
    read.collect::<Result<Vec<Value>, String>>().map(Value::from)
}

fn json_of(mailbox: &Mailbox) -> Value {
    serde_json::to_value(mailbox).unwrap_or_default()
}

fn attributes(subject: &Subject, text: &str) -> Result<BTreeMap<String, Option<String>>, String> {
    let mut wanted: BTreeMap<String, Option<String>> =
        subject.content.attributes.keys().map(|name| (name.clone(), None)).collect();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (name, value) = line.split_once('=').ok_or("must be name=value, one per line")?;
        wanted.insert(name.trim().to_owned(), Some(value.to_owned()));
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_a_browser_sent_back_as_it_was_is_not_otherwise() {
        let check = |before: &str, typed: &str, expected: Option<&str>| {
            assert_eq!(otherwise(before, typed).as_deref(), expected, "{before:?} {typed:?}");
        };
        check("a\nb", "a\r\nb", None);
        check("a\r\nb", "a\r\nb", None);
        check("a\nb", "a\r\nc", Some("a\nc"));
        check("a\r\nb", "a\r\nc", Some("a\r\nc"));
        check("", "", None);
    }

    #[test]
    fn an_address_that_is_shown_is_read_as_it_was() {
        for (address, name) in [("a@example.org", None), ("a@example.org", Some("Lovelace, Ada"))] {
            let mailbox = Mailbox { address: address.to_owned(), name: name.map(str::to_owned) };
            assert_eq!(Mailbox::parse(&line(&mailbox)), Ok(mailbox));
        }
    }
}
