//! What a message carries, as an operator may look at it. An e-mail's HTML is shown in a frame that may do nothing: it runs
//! no script, sends no form, and fetches nothing from anywhere.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use redeliver_core::Content;
use redeliver_core::email::Email;

use super::Console;
use super::emails::{email, visible};
use super::guard::Visitor;
use super::headers::OwnPolicy;
use super::refusal::Refusal;
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

/// What a message carries, as it is shown.
pub(super) struct Preview {
    pub(super) parts: Vec<Part>,
    pub(super) has_html: bool,
    pub(super) files: Vec<String>,
    pub(super) headers: Vec<(String, String)>,
}

impl Preview {
    /// What this content is made of.
    pub(super) fn of(content: &Content, email: Option<&Email>) -> Self {
        let parts = match email {
            Some(email) => email_parts(email),
            None => vec![payload(content)],
        };
        let file = |file: &redeliver_core::email::Attachment| {
            let bytes = file.base64.len() / 4 * 3;
            visible(&format!("{} ({}, about {bytes} bytes)", file.name, file.content_type))
        };
        let attribute = |(name, value): (&String, &String)| (visible(name), visible(value));
        Self {
            parts,
            has_html: email.is_some_and(|email| email.html.is_some()),
            files: email.map(|email| email.attachments.iter().map(file).collect()).unwrap_or_default(),
            headers: content.attributes.iter().map(attribute).collect(),
        }
    }
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
        (None, Err(_)) => "bytes that are no text".to_owned(),
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
    find(&console.server, &visitor.caller, &id).await?;
    let email = email(console.server.engine.store().as_ref(), &id).await?;
    let html = email.and_then(|email| email.html);
    let html = html.ok_or_else(|| Problem::not_found("this message carries no HTML"))?;
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
        let payload =
            |bytes: &[u8]| Preview::of(&Content::of_bytes(bytes.to_vec()), None).parts.remove(0).text;
        assert_eq!(payload(b"{\"a\":1}"), "{\n  \"a\": 1\n}");
        assert_eq!(payload(b"plain"), "plain");
        assert_eq!(payload(b"\xff\xfe"), "bytes that are no text");
        assert_eq!(payload("x".repeat(SHOWN_CHARS_MAX + 1).as_bytes()).chars().count(), SHOWN_CHARS_MAX + 1);
    }
}
