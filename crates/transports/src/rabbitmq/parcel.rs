//! A message as it goes over the wire: its address, its properties and headers, and its body as it is.

use std::sync::Arc;

use bytes::Bytes;
use redeliver_core::Content;
use redeliver_engine::transport::Envelope;

use super::amqp::properties::{PERSISTENT, Properties};
use super::amqp::table::{Field, STRING, Table};
use super::amqp::wire::{SHORT_BYTES_MAX, Short};
use super::amqp::{Address, NAME_HEADER};
use super::retry_message;

/// Says that this very try may have arrived before.
pub const REPEAT_HEADER: &str = "x-redeliver-possible-duplicate";
/// How often a message has been retried, this time included.
const RETRY_COUNT_HEADER: &str = "x-retry-count";
/// How often it may be.
const MAX_RETRIES_HEADER: &str = "x-max-retries";
/// Why a message was given up.
const REASON_HEADER: &str = "x-dead-reason";
/// How often it was tried.
const ATTEMPTS_HEADER: &str = "x-attempts";
/// What it has been through.
const HISTORY_HEADER: &str = "x-history";
/// Headers that a message has from us, whatever it says itself.
const OURS: [&str; 7] = [
    NAME_HEADER,
    REPEAT_HEADER,
    RETRY_COUNT_HEADER,
    MAX_RETRIES_HEADER,
    REASON_HEADER,
    ATTEMPTS_HEADER,
    HISTORY_HEADER,
];
/// Headers that name more queues.
const COPY_HEADERS: [&str; 2] = ["CC", "BCC"];
/// Attributes that become properties begin like this: `amqp.priority`.
pub const PROPERTY: &str = "amqp.";
/// Attributes that tell the type of a header that is no string begin like this: `amqp.header.NAME`.
pub const HEADER_TYPE: &str = "amqp.header.";

/// A message as it goes over the wire.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) address: Address,
    /// By what it is known if it comes back.
    pub(super) name: Arc<str>,
    pub(super) head: Bytes,
    pub(super) body: Bytes,
    /// Whether it may go to more than one queue: by an exchange, or by the headers with which a sender names more queues.
    pub(super) may_have_copies: bool,
}

impl Parcel {
    /// What a message becomes; an error says why it never can.
    pub(super) fn of(envelope: &Envelope<'_>, exchange: &Short) -> Result<Self, String> {
        let target = envelope.target.filter(|target| !target.is_empty());
        let target = target.ok_or("neither the message nor its route names a queue")?;
        let routing_key = Short::new(target)
            .ok_or_else(|| format!("a queue's name has at most {SHORT_BYTES_MAX} bytes"))?;
        let name: Arc<str> = envelope.attempt_id().to_string().into();
        let review = retry_message::for_review(envelope.message, envelope.content);
        let mut properties = properties(envelope, &name)?;
        if review.is_some() {
            properties.content_type = Some(Short::cut(retry_message::CONTENT_TYPE));
        }
        let body = review.unwrap_or_else(|| envelope.content.bytes.clone());
        let head = properties.head(body.len());
        let may_have_copies = !exchange.as_str().is_empty()
            || envelope.content.headers.iter().any(|(name, _)| COPY_HEADERS.contains(&name.as_str()));
        let address = Address { exchange: exchange.clone(), routing_key };
        Ok(Self { address, name, head, body, may_have_copies })
    }
}

fn properties(envelope: &Envelope<'_>, name: &str) -> Result<Properties, String> {
    let content = envelope.content;
    let own = |key: &str| content.attributes.get(&format!("{PROPERTY}{key}"));
    let text = |key: &str| own(key).map(|text| short(key, text)).transpose();
    let content_type = content.content_type.as_deref().map(|text| short("content type", text)).transpose()?;
    Ok(Properties {
        content_type,
        content_encoding: text("content_encoding")?,
        headers: Some(headers(envelope, name)?),
        delivery_mode: Some(PERSISTENT),
        priority: own("priority").and_then(|text| text.parse().ok()),
        correlation_id: text("correlation_id")?,
        reply_to: text("reply_to")?,
        // A broker ends the channel of whoever says anything but a number.
        expiration: text("expiration")?.filter(|text| text.as_str().parse::<u32>().is_ok()),
        message_id: Some(text("message_id")?.unwrap_or_else(|| Short::cut(name))),
        timestamp: own("timestamp").and_then(|text| text.parse().ok()),
        kind: text("type")?,
        // It speaks of another connection, and a broker refuses whoever repeats it.
        user_id: None,
        app_id: text("app_id")?,
        cluster_id: None,
    })
}

fn headers(envelope: &Envelope<'_>, name: &str) -> Result<Table, String> {
    let mut table = Table::default();
    for (name, bytes) in envelope.content.headers.iter().filter(|(name, _)| !is_ours(name)) {
        if name.len() > SHORT_BYTES_MAX {
            return Err(format!("a header's name has at most {SHORT_BYTES_MAX} bytes"));
        }
        table.0.push((name.clone(), field(envelope.content, name, bytes)));
    }
    let attribute = |name: &str| envelope.content.attributes.get(name);
    if let Some(max) = attribute(retry_message::MAX_RETRIES) {
        let tries = if envelope.message.is_dead_letter {
            attribute("dead_attempts").and_then(|text| text.parse().ok()).unwrap_or(0)
        } else {
            i64::from(envelope.message.attempts)
        };
        table.0.push((RETRY_COUNT_HEADER.to_owned(), Field::number(tries)));
        table.0.push((MAX_RETRIES_HEADER.to_owned(), Field::number(max.parse().unwrap_or(0))));
    }
    if let Some(reason) = attribute("dead_reason").filter(|_| envelope.message.is_dead_letter) {
        let tries = attribute("dead_attempts").map_or("0", String::as_str);
        table.0.push((REASON_HEADER.to_owned(), Field::string(reason.clone())));
        table.0.push((ATTEMPTS_HEADER.to_owned(), Field::number(tries.parse().unwrap_or(0))));
        table.0.push((HISTORY_HEADER.to_owned(), Field::string(history(envelope.content))));
    }
    table.0.push((NAME_HEADER.to_owned(), Field::string(Bytes::copy_from_slice(name.as_bytes()))));
    if envelope.may_be_repeated() {
        table.0.push((REPEAT_HEADER.to_owned(), Field::string("true")));
    }
    Ok(table)
}

/// What a dead message has been through, as a JSON object: which one it was, on which route, its last error and its tries.
fn history(content: &Content) -> String {
    let names = ["dead_message", "dead_route", "dead_attempts", "dead_code", "dead_error"];
    let known = names.iter().filter_map(|name| {
        let value = content.attributes.get(*name)?;
        Some((name.trim_start_matches("dead_").to_owned(), serde_json::Value::from(value.as_str())))
    });
    let mut known: serde_json::Map<_, _> = known.collect();
    let tries = content.attributes.get("dead_history").and_then(|text| serde_json::from_str(text).ok());
    known.extend(tries.map(|tries| ("tries".to_owned(), tries)));
    serde_json::Value::Object(known).to_string()
}

/// A header as it came: a string, unless it was something else.
fn field(content: &Content, name: &str, bytes: &Bytes) -> Field {
    let kind = content.attributes.get(&format!("{HEADER_TYPE}{name}"));
    let kind = kind.and_then(|kind| kind.bytes().next()).unwrap_or(STRING);
    let field = Field { kind, bytes: bytes.clone() };
    if field.is_whole() { field } else { Field::string(bytes.clone()) }
}

/// Headers that say something about this carrying, whatever a message says itself.
fn is_ours(name: &str) -> bool {
    OURS.contains(&name)
}

fn short(what: &str, text: &str) -> Result<Short, String> {
    Short::new(text).ok_or_else(|| format!("its {what} has more than {SHORT_BYTES_MAX} bytes"))
}
