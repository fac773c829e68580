//! A message as it goes over the wire: its address, its properties and headers, and its body as it is.

use std::sync::Arc;

use bytes::Bytes;
use redeliver_core::Content;
use redeliver_engine::transport::Envelope;

use super::amqp::properties::{PERSISTENT, Properties};
use super::amqp::table::{Field, STRING, Table};
use super::amqp::wire::{SHORT_BYTES_MAX, Short};
use super::amqp::{Address, NAME_HEADER};

/// Says that this very try may have arrived before.
pub const REPEAT_HEADER: &str = "x-redeliver-possible-duplicate";
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
}

impl Parcel {
    /// What a message becomes; an error says why it never can.
    pub(super) fn of(envelope: &Envelope<'_>, exchange: &Short) -> Result<Self, String> {
        let target = envelope.target.filter(|target| !target.is_empty());
        let target = target.ok_or("neither the message nor its route names a queue")?;
        let routing_key = Short::new(target)
            .ok_or_else(|| format!("a queue's name has at most {SHORT_BYTES_MAX} bytes"))?;
        let name: Arc<str> = envelope.attempt_id().to_string().into();
        let properties = properties(envelope, &name)?;
        let body = envelope.content.bytes.clone();
        let head = properties.head(body.len());
        Ok(Self { address: Address { exchange: exchange.clone(), routing_key }, name, head, body })
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
    table.0.push((NAME_HEADER.to_owned(), Field::string(Bytes::copy_from_slice(name.as_bytes()))));
    if envelope.may_be_repeated() {
        table.0.push((REPEAT_HEADER.to_owned(), Field::string("true")));
    }
    Ok(table)
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
    name == NAME_HEADER || name == REPEAT_HEADER
}

fn short(what: &str, text: &str) -> Result<Short, String> {
    Short::new(text).ok_or_else(|| format!("its {what} has more than {SHORT_BYTES_MAX} bytes"))
}
