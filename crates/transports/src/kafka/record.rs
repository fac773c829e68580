//! A message as it stands in a topic: its key, its headers, and its bytes as they are.

use rdkafka::message::{Header, OwnedHeaders};
use redeliver_core::Content;
use redeliver_engine::transport::Envelope;

/// By what a receiver tells one try from another.
pub const NAME_HEADER: &str = "x-redeliver-attempt-id";
/// Says that this very try may have arrived before.
pub const REPEAT_HEADER: &str = "x-redeliver-possible-duplicate";
const ID_HEADER: &str = "id";
const ATTEMPT_HEADER: &str = "attempt_id";
const PRIORITY_HEADER: &str = "priority";
const CONTENT_TYPE_HEADER: &str = "content-type";
/// Why a message was given up.
const REASON_HEADER: &str = "x-dead-reason";
/// How often it was tried.
const ATTEMPTS_HEADER: &str = "x-attempts";
/// What it has been through.
const HISTORY_HEADER: &str = "x-history";
/// Headers that a message has from us, whatever it says itself.
const OURS: [&str; 9] = [
    NAME_HEADER,
    REPEAT_HEADER,
    ID_HEADER,
    ATTEMPT_HEADER,
    PRIORITY_HEADER,
    CONTENT_TYPE_HEADER,
    REASON_HEADER,
    ATTEMPTS_HEADER,
    HISTORY_HEADER,
];
/// The longest name of a topic.
const TOPIC_BYTES_MAX: usize = 249;

/// A message as it is written to a topic.
pub(super) struct Record<'a> {
    pub(super) topic: &'a str,
    pub(super) key: Option<&'a str>,
    pub(super) headers: OwnedHeaders,
    pub(super) bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// What a message becomes; an error says why it never can.
    pub(super) fn of(envelope: &Envelope<'a>, key_attribute: &str) -> Result<Self, String> {
        let topic = envelope.target.filter(|target| !target.is_empty());
        let topic = topic.ok_or("neither the message nor its route names a topic")?;
        check_topic(topic)?;
        let key = envelope.content.attributes.get(key_attribute).map(String::as_str);
        Ok(Self { topic, key, headers: headers(envelope), bytes: &envelope.content.bytes })
    }
}

/// What is wrong with a topic's name, if anything is.
pub fn check_topic(name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match name.len() <= TOPIC_BYTES_MAX && name.bytes().all(fits) && !matches!(name, "" | "." | "..") {
        true => Ok(()),
        false => Err(format!("a topic has 1 to {TOPIC_BYTES_MAX} letters, digits, \".\", \"_\" and \"-\"")),
    }
}

fn headers(envelope: &Envelope<'_>) -> OwnedHeaders {
    let (message, content) = (envelope.message, envelope.content);
    let own = content.headers.iter().filter(|(name, _)| !OURS.contains(&name.as_str()));
    let mut all = OwnedHeaders::new_with_capacity(content.headers.len() + OURS.len());
    for (name, bytes) in own {
        all = all.insert(Header { key: name, value: Some(bytes.as_ref()) });
    }
    let name = envelope.attempt_id().to_string();
    all = put(all, ID_HEADER, &message.id.to_string());
    all = put(all, ATTEMPT_HEADER, &name);
    all = put(all, PRIORITY_HEADER, message.lane.name());
    all = put(all, NAME_HEADER, &name);
    if let Some(content_type) = &content.content_type {
        all = put(all, CONTENT_TYPE_HEADER, content_type);
    }
    if let Some(reason) = content.attributes.get("dead_reason").filter(|_| message.is_dead_letter) {
        all = put(all, REASON_HEADER, reason);
        all = put(all, ATTEMPTS_HEADER, content.attributes.get("dead_attempts").map_or("0", String::as_str));
        all = put(all, HISTORY_HEADER, &history(content));
    }
    if envelope.may_be_repeated() {
        all = put(all, REPEAT_HEADER, "true");
    }
    all
}

fn put(headers: OwnedHeaders, key: &str, value: &str) -> OwnedHeaders {
    headers.insert(Header { key, value: Some(value) })
}

/// What a dead message has been through, as a JSON object: which one it was, on which route, and its last error.
fn history(content: &Content) -> String {
    let names = ["dead_message", "dead_route", "dead_attempts", "dead_code", "dead_error"];
    let known = names.iter().filter_map(|name| {
        let value = content.attributes.get(*name)?;
        Some((name.trim_start_matches("dead_").to_owned(), serde_json::Value::from(value.as_str())))
    });
    serde_json::Value::Object(known.collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_a_name_that_kafka_takes() {
        for name in ["notifications.retry.low", "A_b-9", &"x".repeat(TOPIC_BYTES_MAX)] {
            assert!(check_topic(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "a b", "a/b", "a\0b", "ä", "{priority}", &"x".repeat(TOPIC_BYTES_MAX + 1)]
        {
            assert!(check_topic(name).is_err(), "{name}");
        }
    }
}
