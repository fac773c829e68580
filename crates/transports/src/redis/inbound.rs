//! Takes what comes to a stream into the store: messages, the same JSON as over HTTP, or the reports of outside workers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use redeliver_core::{Name, identity};
use redeliver_engine::aside;
use redeliver_engine::bring::{Bring, Input};
use redeliver_engine::clock::Clock;
use redeliver_engine::hear::Hear;
use redeliver_engine::intake::{Intake, IntakeError, Sink};
use redeliver_engine::stop::Stop;
use serde::Serialize;
use serde_json::value::RawValue;

use super::config::ServerConfig;
use super::reading::{Entry, Reading, ReadingConfig, Taker};

/// What comes to a stream.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Messages to be carried.
    Messages,
    /// The words of outside workers about what was handed off to them.
    Reports,
}

impl Takes {
    /// The words of the config.
    pub const WORDS: [(&str, Self); 2] = [("messages", Self::Messages), ("reports", Self::Reports)];
}

/// How a stream is taken from.
#[derive(Clone, Debug, PartialEq)]
pub struct RedisIntakeConfig {
    /// The server.
    pub server: ServerConfig,
    /// The stream.
    pub stream: String,
    /// What comes to it.
    pub takes: Takes,
    /// The group that shares it: every instance of ours is a member.
    pub group: String,
    /// The route on which input is kept, as dead, that nobody can make anything of.
    pub rejects: Name,
    /// The only workspace that what comes may be for; any if none.
    pub workspace: Option<Name>,
    /// Messages that are committed at once.
    pub batch_max: usize,
    /// The largest message.
    pub message_bytes_max: usize,
    /// Bytes of messages that are on their way into the store, about: fewer messages are read at once where they are large.
    pub in_hand_bytes_max: usize,
    /// How long nobody may have heard of an instance before others take what it was given.
    pub claim_after: Duration,
    /// Whether what was stored is deleted from the stream.
    pub delete: bool,
}

impl Default for RedisIntakeConfig {
    fn default() -> Self {
        let reading = ReadingConfig::default();
        Self {
            server: reading.server,
            stream: reading.stream,
            takes: Takes::Messages,
            group: reading.group,
            rejects: "".into(),
            workspace: None,
            batch_max: reading.batch_max,
            message_bytes_max: 16 * 1_048_576,
            in_hand_bytes_max: reading.in_hand_bytes_max,
            claim_after: reading.claim_after,
            delete: reading.delete,
        }
    }
}

impl RedisIntakeConfig {
    /// How its stream is read by a member of this name.
    pub fn reading(&self, consumer: &str) -> ReadingConfig {
        ReadingConfig {
            server: self.server.clone(),
            stream: self.stream.clone(),
            group: self.group.clone(),
            consumer: consumer.to_owned(),
            batch_max: self.batch_max,
            in_hand_bytes_max: self.in_hand_bytes_max,
            claim_after: self.claim_after,
            delete: self.delete,
        }
    }
}

/// Takes what comes to one stream.
pub struct RedisIntake {
    name: Name,
    stream: String,
    reading: Reading,
    brings: Brings,
}

/// What is made of its entries.
enum Brings {
    Messages(Bring),
    Reports(Hear),
}

impl RedisIntake {
    /// An intake from the stream of this config, as a member of this name. `bring` makes messages of what comes, or keeps what
    /// is no report. Nothing is connected yet; an error says what is
    /// wrong with the config.
    pub fn new(
        name: impl Into<Name>,
        config: &RedisIntakeConfig,
        consumer: &str,
        bring: Bring,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let name = name.into();
        let reading = Reading::new(Arc::clone(&name), config.reading(consumer), clock)?;
        let brings = match config.takes {
            Takes::Messages => Brings::Messages(bring),
            Takes::Reports => Brings::Reports(Hear::new(bring, config.workspace.clone())),
        };
        Ok(Self { name, stream: config.stream.clone(), reading, brings })
    }

    /// Where the entry of this id stands, as no other entry of any intake does.
    fn place(&self, id: &str) -> Arc<str> {
        identity::of_place("redis", &self.name, &format!("{}@{id}", self.stream))
    }
}

#[async_trait]
impl Intake for RedisIntake {
    async fn run(&self, sink: &dyn Sink, stop: Stop) -> Result<(), IntakeError> {
        self.reading.run(&Bringing { intake: self, sink }, stop).await;
        Ok(())
    }
}

/// Brings entries to the sink.
struct Bringing<'a> {
    intake: &'a RedisIntake,
    sink: &'a dyn Sink,
}

#[async_trait]
impl Taker for Bringing<'_> {
    async fn take(&self, entries: Vec<Entry>) {
        let fields = entries.iter().flat_map(|entry| &entry.fields);
        let bytes = fields.map(|(name, value)| name.len() + value.len()).sum();
        let input = |entry: &Entry| Input { bytes: document(entry), place: self.intake.place(&entry.id) };
        let inputs: Vec<Input> = aside::run(bytes, || entries.iter().map(input).collect());
        match &self.intake.brings {
            Brings::Messages(bring) => bring.bring(self.sink, &inputs).await,
            Brings::Reports(hear) => hear.hear(self.sink, &inputs).await,
        }
    }
}

/// Fields that stand for JSON, where each field of an entry is one of a message.
const JSON_FIELDS: [&str; 5] = ["payload", "email", "attributes", "attempts", "max_attempts"];

/// The JSON of an entry: that of its field `message`, of its only field, or an object of all its fields.
fn document(entry: &Entry) -> Bytes {
    if let Some(message) = entry.field("message") {
        return message.clone();
    }
    if let [(_, only)] = &entry.fields[..] {
        return only.clone();
    }
    let mut object = BTreeMap::new();
    for (name, value) in &entry.fields {
        let name = String::from_utf8_lossy(name);
        let text = || FieldValue::Text(String::from_utf8_lossy(value));
        let value = match JSON_FIELDS.contains(&&*name) {
            true => serde_json::from_slice(value).map_or_else(|_| text(), FieldValue::Json),
            false => text(),
        };
        object.insert(name, value);
    }
    // Texts under texts can always be written.
    serde_json::to_vec(&object).unwrap_or_default().into()
}

/// A field as it stands in the object: JSON as it was written, which costs no more memory than its text.
#[derive(Serialize)]
#[serde(untagged)]
enum FieldValue<'a> {
    Json(&'a RawValue),
    Text(Cow<'a, str>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_document_or_has_its_fields() {
        let check = |fields: &[(&'static str, &'static str)], json: &str| {
            let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
            let fields = fields.iter().map(|(name, value)| (bytes(name), bytes(value))).collect();
            assert_eq!(document(&Entry { id: "1-0".to_owned(), fields }), json);
        };
        check(&[("anything", "{\"route\":\"r\"}")], "{\"route\":\"r\"}");
        check(&[("trace", "x"), ("message", "{}")], "{}");
        check(
            &[("attempts", "1"), ("key", "7"), ("payload", "{\"a\":1}")],
            "{\"attempts\":1,\"key\":\"7\",\"payload\":{\"a\":1}}",
        );
        // As it was written: no number is rounded, and nothing is made of it but a text.
        check(
            &[("key", "7"), ("payload", " {\"b\":1.00000000000000000001, \"a\":[] }")],
            "{\"key\":\"7\",\"payload\":{\"b\":1.00000000000000000001, \"a\":[] }}",
        );
        check(&[("payload", "plain"), ("route", "r")], "{\"payload\":\"plain\",\"route\":\"r\"}");
        check(&[], "{}");
    }
}
