//! A message as it stands in Redis: an entry with fields, or an object of JSON with the same names.

use std::borrow::Cow;

use ::redis::{Cmd, Value, cmd};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redeliver_core::trace;
use redeliver_engine::transport::Envelope;
use serde_json::{Map, Value as Json};

use super::config::{RedisConfig, Structure};

/// The longest name of a key that is sensible.
const KEY_BYTES_MAX: usize = 4_096;
/// Where a message stands that has headers of its own.
const HEADER: &str = "header.";

/// A message on its way: whose key it is, and what is said to the server.
pub(super) struct Parcel<'a> {
    pub(super) key: &'a str,
    pub(super) command: Cmd,
}

impl<'a> Parcel<'a> {
    /// What a message becomes; an error says why it never can.
    pub(super) fn of(envelope: &Envelope<'a>, config: &RedisConfig) -> Result<Self, String> {
        let key = envelope.target.filter(|target| !target.is_empty());
        let key = key.ok_or("neither the message nor its route names a stream")?;
        if key.len() > KEY_BYTES_MAX {
            return Err(format!("a name has at most {KEY_BYTES_MAX} bytes"));
        }
        let mut command = match config.structure {
            Structure::Stream => cmd("XADD"),
            Structure::List => cmd("RPUSH"),
            Structure::SortedSet => cmd("ZADD"),
        };
        command.arg(key);
        match config.structure {
            Structure::Stream => {
                if let Some(max) = config.entries_max {
                    command.arg("MAXLEN").arg("~").arg(max);
                }
                command.arg("*");
                for (name, value) in fields(envelope) {
                    command.arg(name.as_bytes()).arg(value.as_ref());
                }
                command.arg("payload").arg(envelope.content.bytes.as_ref());
            }
            Structure::List => {
                command.arg(object(envelope));
            }
            Structure::SortedSet => {
                command.arg(envelope.message.due_at.as_ms()).arg(object(envelope));
            }
        }
        Ok(Self { key, command })
    }
}

/// Whether an answer says that the server has the message.
pub(super) fn is_taken(structure: Structure, answer: &Value) -> bool {
    match structure {
        Structure::Stream => matches!(answer, Value::BulkString(_) | Value::SimpleString(_)),
        Structure::List | Structure::SortedSet => matches!(answer, Value::Int(_)),
    }
}

/// What is said of a message beside its bytes.
fn fields<'a>(envelope: &Envelope<'a>) -> Vec<(Cow<'a, str>, Cow<'a, [u8]>)> {
    let (message, content) = (envelope.message, envelope.content);
    let text = |text: String| Cow::Owned(text.into_bytes());
    let mut all: Vec<(Cow<'a, str>, Cow<'a, [u8]>)> = vec![
        ("id".into(), text(message.id.to_string())),
        ("attempt_id".into(), text(envelope.attempt_id().to_string())),
        ("priority".into(), message.lane.name().as_bytes().into()),
    ];
    if let Some(content_type) = &content.content_type {
        all.push(("content_type".into(), content_type.as_bytes().into()));
    }
    if !content.attributes.is_empty() {
        let attributes: Map<String, Json> = content
            .attributes
            .iter()
            .map(|(name, value)| (name.clone(), Json::from(value.as_str())))
            .collect();
        all.push(("attributes".into(), text(Json::Object(attributes).to_string())));
    }
    for (name, value) in &content.headers {
        let name = match trace::is_name(name) {
            true => trace::TRACEPARENT.into(),
            false => format!("{HEADER}{name}").into(),
        };
        all.push((name, value.as_ref().into()));
    }
    if envelope.may_be_repeated() {
        all.push(("possible_duplicate".into(), b"true".as_slice().into()));
    }
    all
}

/// The same as one object: JSON stands in it as it is, any other payload as `payload_base64`.
fn object(envelope: &Envelope<'_>) -> String {
    let mut object = Map::new();
    for (name, value) in fields(envelope) {
        let value = match &*name {
            "attributes" => serde_json::from_slice(&value).unwrap_or_default(),
            "possible_duplicate" => Json::from(true),
            _ => Json::from(String::from_utf8_lossy(&value)),
        };
        object.insert(name.into_owned(), value);
    }
    let bytes = &envelope.content.bytes;
    match serde_json::from_slice(bytes) {
        Ok(json) => object.insert("payload".to_owned(), json),
        Err(_) => object.insert("payload_base64".to_owned(), STANDARD.encode(bytes).into()),
    };
    Json::Object(object).to_string()
}
