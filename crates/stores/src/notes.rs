//! What is remembered of an application's rows beside their table: only of those for which there is something to say.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use redeliver_core::attempt::{AttemptRecord, Verdict};
use redeliver_core::change::Audit;
use redeliver_core::{Failure, InstanceId, Timestamp};
use redeliver_engine::store::StoreError;
use serde::{Deserialize, Serialize};

/// What a row's table has no column for.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Note {
    /// How often an operator started it over.
    #[serde(default)]
    pub generation: u32,
    /// Publishings of the try below that nobody confirmed, or whose publisher vanished.
    #[serde(default)]
    pub unconfirmed: u32,
    /// The number of that try.
    #[serde(default)]
    pub attempt: u32,
    /// Publishings, ever, that may have arrived without our knowing.
    #[serde(default)]
    pub possible_duplicates: u32,
    /// When its mail was first sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_sent_at_ms: Option<i64>,
    /// When it was given up or cancelled after as many tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at_ms: Option<i64>,
    /// Tries that did not simply succeed, oldest first.
    #[serde(default)]
    pub history: Vec<Noted>,
}

/// One try in a note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noted {
    generation: u32,
    attempt: u32,
    verdict: String,
    at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claimed_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sent_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

/// Tries that a note keeps, at most; the oldest go first.
const HISTORY_MAX: usize = 50;

impl Note {
    /// Adds a try.
    pub fn add(&mut self, record: &AttemptRecord) {
        let noted = Noted {
            generation: record.generation,
            attempt: record.attempt,
            verdict: record.verdict.name().to_owned(),
            at_ms: record.at.as_ms(),
            due_at_ms: record.due_at.map(Timestamp::as_ms),
            claimed_at_ms: record.claimed_at.map(Timestamp::as_ms),
            sent_at_ms: record.sent_at.map(Timestamp::as_ms),
            instance: record.instance.map(|instance| instance.0),
            failure: record.failure.clone(),
        };
        // Said twice, it is still one try.
        if self.history.last() != Some(&noted) {
            self.history.push(noted);
        }
        let over = self.history.len().saturating_sub(HISTORY_MAX);
        self.history.drain(..over);
    }

    /// The tries, oldest first.
    pub fn records(&self) -> Vec<AttemptRecord> {
        let record = |noted: &Noted| AttemptRecord {
            generation: noted.generation,
            attempt: noted.attempt,
            verdict: Verdict::ALL
                .into_iter()
                .find(|verdict| verdict.name() == noted.verdict)
                .unwrap_or(Verdict::Late),
            at: Timestamp::from_ms(noted.at_ms),
            due_at: noted.due_at_ms.map(Timestamp::from_ms),
            claimed_at: noted.claimed_at_ms.map(Timestamp::from_ms),
            sent_at: noted.sent_at_ms.map(Timestamp::from_ms),
            instance: noted.instance.map(InstanceId),
            failure: noted.failure.clone(),
        };
        self.history.iter().map(record).collect()
    }
}

/// Remembers notes by the ids of their rows. A call is one transaction.
#[async_trait]
pub trait Notes: Send + Sync + 'static {
    /// The notes that there are on these rows.
    async fn recall(&self, ids: Vec<String>) -> Result<HashMap<String, Note>, StoreError>;

    /// Keeps notes in place of those that there were, with what people did.
    async fn keep(&self, notes: Vec<(String, Note)>, deeds: Vec<Audit>) -> Result<(), StoreError>;
}

/// Notes that live as long as this value.
#[derive(Default)]
pub struct MemoryNotes(Mutex<HashMap<String, Note>>);

#[async_trait]
impl Notes for MemoryNotes {
    async fn recall(&self, ids: Vec<String>) -> Result<HashMap<String, Note>, StoreError> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(ids.into_iter().filter_map(|id| Some((id.clone(), notes.get(&id)?.clone()))).collect())
    }

    async fn keep(&self, notes: Vec<(String, Note)>, _: Vec<Audit>) -> Result<(), StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(notes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_from_before_tries_had_their_times_is_read() {
        let written =
            r#"{"generation":1,"history":[{"generation":0,"attempt":2,"verdict":"failed","at_ms":9}]}"#;
        let note: Note = serde_json::from_str(written).unwrap();
        let records = note.records();
        let [record] = &records[..] else { panic!("one try: {records:?}") };
        assert_eq!((record.attempt, record.at), (2, Timestamp::from_ms(9)));
        assert_eq!((record.due_at, record.claimed_at, record.sent_at), (None, None, None));
        let mut again = Note { history: Vec::new(), ..note.clone() };
        again.add(record);
        assert_eq!(
            serde_json::to_value(again).unwrap()["history"],
            serde_json::from_str::<serde_json::Value>(written).unwrap()["history"]
        );
    }
}
