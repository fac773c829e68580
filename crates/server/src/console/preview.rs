//! What a message carries, as an operator may look at it. An e-mail's HTML is shown in a frame that may do nothing: it runs
//! no script, sends no form, and fetches nothing from anywhere.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use redeliver_core::email::{Email, Mailbox, message_id};
use redeliver_core::{Content, Message};

use super::emails::{Carried, content, visible, written};
use super::guard::Visitor;
use super::headers::OwnPolicy;
use super::refusal::Refusal;
use super::{Console, link};
use crate::api::messages::find;
use crate::input::Id;
use crate::problem::Problem;

/// Characters of a text that are shown, at most.
const SHOWN_CHARS_MAX: usize = 20_000;

/// What a mail's HTML may do: be looked at.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'; \
    base-uri 'none'; form-action 'none'";

/// A part of what a message carries, as text.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) text: String,
}

/// A mail that is written when it goes out: what it is written from, and why it can't be, if it can't.
pub(super) struct Draft {
    pub(super) step: u32,
    pub(super) prospect: String,
    pub(super) campaign: String,
    pub(super) wrong: Option<String>,
}

/// What a message carries, as it is shown.
#[derive(Default)]
pub(super) struct Preview {
    pub(super) draft: Option<Draft>,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) parts: Vec<Part>,
    pub(super) has_html: bool,
    pub(super) files: Vec<String>,
    pub(super) attributes: Vec<(String, String)>,
}

impl Preview {
    /// What this content is made of.
    pub(super) fn of(message: &Message, content: &Content, carried: &Carried) -> Self {
        let attribute = |(name, value): (&String, &String)| (visible(name), visible(value));
        let attributes = content.attributes.iter().map(attribute).collect();
        let draft = match carried {
            Carried::Unwritten(unwritten) => Some(Draft {
                step: unwritten.of.step,
                prospect: visible(&unwritten.of.prospect),
                campaign: link::campaign(&unwritten.of.campaign),
                wrong: unwritten.written.as_ref().err().map(|wrong| visible(wrong)),
            }),
            Carried::Email(_) | Carried::Other => None,
        };
        match carried.email() {
            Some(email) => Self {
                draft,
                headers: headers(message, email),
                parts: email_parts(email),
                has_html: email.html.is_some(),
                files: email.attachments.iter().map(file).collect(),
                attributes,
            },
            None if draft.is_some() => Self { draft, attributes, ..Self::default() },
            None => Self { parts: vec![payload(content)], attributes, ..Self::default() },
        }
    }
}

/// The headers of a mail by which others know it, as far as they are known before it is sent.
fn headers(message: &Message, email: &Email) -> Vec<(&'static str, String)> {
    let all = |mailboxes: &[Mailbox]| {
        let all: Vec<String> = mailboxes.iter().map(written).collect();
        (!all.is_empty()).then(|| all.join(", "))
    };
    let id = email.from.as_ref().map(|from| message_id(&message.id, &from.address));
    let known = [
        ("From", email.from.as_ref().map(written)),
        ("Reply-To", email.reply_to.as_ref().map(written)),
        ("To", all(&email.to)),
        ("Cc", all(&email.cc)),
        ("Subject", Some(email.subject.clone())),
        ("Message-ID", id),
        ("In-Reply-To", email.in_reply_to.clone()),
        ("References", (!email.references.is_empty()).then(|| email.references.join(" "))),
    ];
    known.into_iter().filter_map(|(name, text)| Some((name, visible(&text?)))).collect()
}

fn file(file: &redeliver_core::email::Attachment) -> String {
    let bytes = file.base64.len() / 4 * 3;
    visible(&format!("{} ({}, about {bytes} bytes)", file.name, file.content_type))
}

fn email_parts(email: &Email) -> Vec<Part> {
    let text = email.text.as_ref().map(|text| Part { name: "Text".to_owned(), text: shown(text) });
    let ics = email.ics.as_ref().map(|ics| Part {
        name: visible(&format!("Invitation ({})", ics.method)),
        text: shown(&ics.content),
    });
    text.into_iter().chain(ics).collect()
}

fn payload(content: &Content) -> Part {
    let kind = content.content_type.as_deref().unwrap_or("no content type");
    let name = visible(&format!("Payload ({kind}, {} bytes)", content.bytes.len()));
    let json = serde_json::from_slice::<serde_json::Value>(&content.bytes).ok();
    let pretty = json.and_then(|value| serde_json::to_string_pretty(&value).ok());
    let text = match (pretty, std::str::from_utf8(&content.bytes)) {
        (Some(pretty), _) => shown(&pretty),
        (None, Ok(text)) => shown(text),
        (None, Err(_)) => "binary content".to_owned(),
    };
    Part { name, text }
}

fn shown(text: &str) -> String {
    let text = &text.replace("\r\n", "\n");
    let mut shown = visible(&text.chars().take(SHOWN_CHARS_MAX).collect::<String>());
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// `GET /admin/messages/{id}/body`: a mail's HTML as it is, for the frame that may do nothing.
pub(super) async fn body(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    id: Result<Id, Problem>,
) -> Result<Response, Refusal> {
    let Id(id) = id?;
    let message = find(&console.server, &visitor.caller, &id).await?;
    let engine = &console.server.engine;
    let carried = Carried::of(engine, &message, &content(engine, &id).await?).await?;
    let html = carried.email().and_then(|email| email.html.clone());
    let html = html.ok_or_else(|| Problem::not_found("this message has no HTML body"))?;
    let headers: [(HeaderName, HeaderValue); 3] = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN")),
    ];
    Ok((headers, Extension(OwnPolicy), html).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_mail_is_shown_as_what_it_is() {
        let payload = |bytes: &[u8]| payload(&Content::of_bytes(bytes.to_vec())).text;
        assert_eq!(payload(b"{\"a\":1}"), "{\n  \"a\": 1\n}");
        assert_eq!(payload(b"plain"), "plain");
        assert_eq!(payload(b"\xff\xfe"), "binary content");
        assert_eq!(payload("x".repeat(SHOWN_CHARS_MAX + 1).as_bytes()).chars().count(), SHOWN_CHARS_MAX + 1);
    }
}
