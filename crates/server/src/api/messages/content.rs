//! What a message carries, as callers see it: in a few words, or in full for whoever may.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redeliver_core::Content;
use redeliver_core::email::{Email, Mailbox};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// What a message carries.
#[derive(Debug, Serialize, ToSchema)]
pub struct ContentView {
    /// `email` or `payload`.
    #[schema(pattern = "^(email|payload)$")]
    pub kind: &'static str,
    /// What the bytes are.
    pub content_type: Option<String>,
    /// How many bytes it is.
    pub bytes: u64,
    /// Where to, where the message says so itself.
    pub target: Option<String>,
    /// For gates, targets and filters.
    pub attributes: BTreeMap<String, String>,
    /// An e-mail's recipients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<String>>,
    /// An e-mail's subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The whole e-mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub email: Option<Value>,
    /// The whole payload, where it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// The whole payload, where it is anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
}

/// How much is shown of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Whom it is for, what it is about, how large it is.
    Summary,
    /// Everything.
    Full,
}

impl ContentView {
    /// A content as callers see it.
    pub fn of(content: &Content, shown: Shown) -> Self {
        let email = Email::of_content(content).and_then(Result::ok);
        let full = shown == Shown::Full;
        let is_json = content.content_type.as_deref() == Some("application/json");
        let payload = (full && email.is_none() && is_json)
            .then(|| serde_json::from_slice(&content.bytes).ok())
            .flatten();
        Self {
            kind: if email.is_some() { "email" } else { "payload" },
            content_type: content.content_type.as_ref().map(ToString::to_string),
            bytes: content.bytes.len() as u64,
            target: content.target.as_ref().map(ToString::to_string),
            attributes: content.attributes.clone(),
            to: email.as_ref().map(|email| addresses(&email.to)),
            subject: email.as_ref().map(|email| email.subject.clone()),
            payload_base64: (full && email.is_none() && payload.is_none())
                .then(|| STANDARD.encode(&content.bytes)),
            email: email.filter(|_| full).and_then(|email| serde_json::to_value(email).ok()),
            payload,
        }
    }
}

fn addresses(mailboxes: &[Mailbox]) -> Vec<String> {
    mailboxes.iter().map(|mailbox| mailbox.address.clone()).collect()
}
