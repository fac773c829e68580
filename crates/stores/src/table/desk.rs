//! Where a sender takes the rows that were handed off to it.
//!
//! A sender's lock stands in `LockedUntil` of a pending row, so that no scheduler's claim can be taken for it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use redeliver_core::attempt::{AttemptRecord, Verdict};
use redeliver_core::{AttemptId, Change, Content, Failure, MessageId, Outcome, Timestamp};
use redeliver_engine::sender::{Desk, Handed, Taken};
use redeliver_engine::store::{Applied, StoreError};
use serde_json::Value;

use super::standing::{Free, for_sender, message, message_id, micros, time};
use super::{TableStore, lock};
use crate::adopted::{Judged, Micros, Rewrite, Row};
use crate::mails;
use crate::notes::Note;

const SECOND_US: Micros = 1_000_000;

impl TableStore {
    /// Whether the mails of this table can be read at all.
    pub async fn check_mails(&self) -> Result<(), StoreError> {
        self.rows.mail(None).await.map(drop)
    }

    /// Notes that a sender vanished with this row, which it had taken at `taken_at`: its mail may go out again.
    async fn note_lost(
        &self,
        row: &Row,
        note: Option<Note>,
        taken_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Note, StoreError> {
        let mut note = note.unwrap_or_default();
        note.first_sent_at_ms = note.first_sent_at_ms.or(taken_at.map(Timestamp::as_ms));
        let attempt = u32::try_from(row.attempts.max(0)).unwrap_or(u32::MAX).saturating_add(1);
        note.possible_duplicates += 1;
        note.add(&AttemptRecord {
            generation: note.generation,
            attempt,
            verdict: Verdict::Lost,
            at: now,
            due_at: None,
            claimed_at: None,
            sent_at: None,
            instance: None,
            failure: Some(Failure::new("the sender vanished while it had the mail")),
        });
        let id = message_id(&self.mapping, &row.id).to_string();
        self.notes.keep(vec![(id, note.clone())], Vec::new()).await?;
        Ok(note)
    }
}

/// When a sender took a row that it locked for this long, to the second. The lock's end is the only trace that it leaves if
/// it vanishes, and a mail has the same date at every try: so it is reckoned from there from the first.
fn taken_at(locked_until: Micros, lease_ms: i64) -> Timestamp {
    Timestamp::from_ms(time(locked_until - SECOND_US).as_ms() - lease_ms)
}

#[async_trait]
impl Desk for TableStore {
    fn read(&self, content: &Content) -> Result<Handed, String> {
        let column = &self.mapping.columns.id;
        let said: Value = serde_json::from_slice(&content.bytes).map_err(|_| "it is no JSON".to_owned())?;
        let id = match &said[column.as_str()] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err(format!("it has no {column}"));
            }
        };
        if !self.rows.is_id(&id) {
            return Err(format!("its {column} is none of the table's"));
        }
        let header = content.headers.iter().find(|(name, _)| name == AttemptId::HEADER);
        let attempt = header.map(|(_, bytes)| String::from_utf8_lossy(bytes).parse()).transpose()?;
        Ok(Handed { id: message_id(&self.mapping, &id), attempt })
    }

    async fn content(&self, id: &MessageId) -> Result<Result<Content, Outcome>, StoreError> {
        let id = self.row_id(id).map(str::to_owned);
        let asked = match id {
            Some(_) => self.rows.mail(id).await,
            None => Ok(None),
        };
        match asked {
            // Of other rows there is an answer: it is this one that nobody can read, now or later.
            Err(StoreError::Unfit(why)) if self.check_mails().await.is_ok() => {
                let failure = Failure::new(format!("the mail of this row cannot be read: {why}"));
                Ok(Err(Outcome::Failed(failure.with_code("INVALID_MAIL"))))
            }
            asked => Ok(mails::content(asked?.as_ref())),
        }
    }

    async fn take(&self, handed: &Handed, now: Timestamp, until_at: Timestamp) -> Result<Taken, StoreError> {
        let Some(id) = self.row_id(&handed.id) else { return Ok(Taken::Idle("there is no such row")) };
        let name = handed.id.to_string();
        let mut note = self.notes.recall(vec![name.clone()]).await?.remove(&name);
        let lease_ms = until_at.as_ms() - now.as_ms();
        // Whole seconds come back from every column as they were written.
        let until = Some(micros(until_at).div_euclid(SECOND_US) * SECOND_US + SECOND_US);
        let seen: Arc<Mutex<Option<(Free, Row)>>> = Arc::default();
        let (mapping, told, noted, attempt) =
            (Arc::clone(&self.mapping), Arc::clone(&seen), note.clone(), handed.attempt.clone());
        let judge = move |rows: &[Row]| {
            let Some(row) = rows.first() else { return Judged::default() };
            let free = for_sender(&mapping, row, noted.as_ref(), attempt.as_ref(), now);
            *lock(&told) = Some((free, row.clone()));
            let now = Row { status: mapping.words.pending.clone(), locked_until: until, ..row.clone() };
            let rewrites = match free {
                Free::Yes => vec![Rewrite { was: row.clone(), now }],
                Free::LockedUntil(_) | Free::No(_) => Vec::new(),
            };
            Judged { rewrites, answers: Vec::new() }
        };
        self.rows.rewrite(vec![id.to_owned()], Arc::new(judge)).await?;
        let seen = lock(&seen).take();
        let was = match seen {
            None => return Ok(Taken::Idle("there is no such row")),
            Some((Free::No(why), _)) => return Ok(Taken::Idle(why)),
            Some((Free::LockedUntil(at), _)) => return Ok(Taken::Locked(time(at))),
            Some((Free::Yes, was)) => was,
        };
        if was.status == self.mapping.words.pending && was.locked_until.is_some() {
            let taken_at = was.locked_until.map(|until| taken_at(until, lease_ms));
            note = Some(self.note_lost(&was, note, taken_at, now).await?);
        }
        let row = Row { status: self.mapping.words.pending.clone(), locked_until: until, ..was };
        let taken = message(&self.mapping, &row, note.as_ref(), None);
        let Some(mut taken) = taken else { return Ok(Taken::Idle("there is no such row")) };
        taken.first_sent_at = taken.first_sent_at.or(until.map(|until| taken_at(until, lease_ms)));
        Ok(Taken::Ours(Box::new(taken)))
    }

    async fn record(&self, change: Change) -> Result<Applied, StoreError> {
        Ok(self.apply(vec![change]).await?.pop().unwrap_or(Applied::Superseded(None)))
    }
}
