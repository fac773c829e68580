//! Writes what core decided, all of a change or nothing of it.

use redeliver_core::attempt::AttemptRecord;
use redeliver_core::change::Audit;
use redeliver_core::edit::EditRecord;
use redeliver_core::planted::{self, Bug};
use redeliver_core::{Change, MessageId, State, Timestamp};
use redeliver_engine::store::Applied;
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::errors::{Fault, own};
use super::insert::{insert_one, put_content};
use super::read;
use super::rows::bind_message;
use crate::encode::{campaign_of, failure_to_text, to_text};

pub(super) fn apply(db: &Connection, changes: &[Change]) -> Result<Vec<Applied>, Fault> {
    let mut writing = Writing {
        db,
        delivered: db.prepare_cached(include_str!("sql/apply_delivered.sql"))?,
        any: db.prepare_cached(include_str!("sql/apply.sql"))?,
    };
    changes.iter().map(|change| writing.apply(change)).collect()
}

/// The statements of the fast path, looked up once for all changes.
struct Writing<'a> {
    db: &'a Connection,
    delivered: CachedStatement<'a>,
    any: CachedStatement<'a>,
}

impl Writing<'_> {
    fn apply(&mut self, change: &Change) -> Result<Applied, Fault> {
        let Some(id) = own(&change.message.id) else { return Ok(Applied::Superseded(None)) };
        if !self.write_message(id, change)? {
            return superseded(self.db, change);
        }
        if let Some(record) = &change.attempt {
            write_attempt(self.db, include_str!("sql/insert_attempt.sql"), id, record)?;
        }
        if let Some(content) = &change.content {
            put_content(self.db, id, content)?;
        }
        if !change.ends.is_nothing() {
            count_ends(self.db, id, change)?;
        }
        if let Some(spawn) = &change.spawn {
            insert_one(self.db, spawn)?;
        }
        if let Some(record) = &change.edit {
            write_edit(self.db, id, record)?;
        }
        if let Some(audit) = &change.audit {
            write_audit(self.db, audit)?;
        }
        Ok(Applied::Applied)
    }

    /// Writes the message if it still has its fence.
    fn write_message(&mut self, id: &[u8; 16], change: &Change) -> Result<bool, Fault> {
        let message = &change.message;
        let expected_fence = if planted::is(Bug::ApplyIgnoresFence) {
            fence(self.db, id)?
        } else {
            change.expected_fence as i64
        };
        let written = match &message.state {
            // A delivery changes nothing else of a message.
            State::Delivered { at, receipt } if message.recipients.is_empty() && change.settles.is_some() => {
                self.delivered.execute(params![
                    id,
                    message.fence as i64,
                    message.attempts,
                    message.settled_claim.map(|claim| claim as i64),
                    at.as_ms(),
                    receipt.as_deref(),
                    expected_fence
                ])?
            }
            // The lease is its holder's: it may have been renewed or started since this change was made.
            State::Claimed(lease) => self
                .db
                .prepare_cached(include_str!("sql/apply_claimed.sql"))?
                .execute(params![id, message.fence as i64, lease.cancel_requested, expected_fence])?,
            State::Waiting { .. }
            | State::HandedOff { .. }
            | State::Delivered { .. }
            | State::Dead { .. }
            | State::Cancelled { .. } => {
                bind_message(&mut self.any, id, message)?;
                self.any.raw_bind_parameter(EXPECTED_FENCE, expected_fence)?;
                self.any.raw_execute()?
            }
        };
        Ok(written == 1)
    }
}

/// The place of the fence that a message must have, behind its columns.
const EXPECTED_FENCE: usize = super::rows::MESSAGE_COLUMNS + 1;

/// Counts anew how the mails of a campaign have ended, if the message is one.
fn count_ends(db: &Connection, id: &[u8; 16], change: &Change) -> Result<(), Fault> {
    let mut get = db.prepare_cached(include_str!("sql/attributes.sql"))?;
    let attributes: Option<Option<String>> = get.query_row([id], |row| row.get(0)).optional()?;
    let Some(campaign) = campaign_of(attributes.flatten().as_deref()) else { return Ok(()) };
    let moved = change.ends;
    db.prepare_cached(include_str!("sql/count_ends.sql"))?.execute(params![
        campaign,
        &*change.message.workspace,
        moved.dead,
        moved.dismissed,
        moved.cancelled
    ])?;
    Ok(())
}

/// What it means that a change found another fence.
fn superseded(db: &Connection, change: &Change) -> Result<Applied, Fault> {
    let current = read::get(db, &change.message.id)?;
    let settled_before =
        current.as_ref().is_some_and(|row| change.settles.is_some() && change.settles == row.settled_claim);
    Ok(if settled_before { Applied::AlreadyMine } else { Applied::Superseded(current.map(Box::new)) })
}

/// The fence as it stands, for the fault that ignores it.
fn fence(db: &Connection, id: &[u8; 16]) -> Result<i64, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/get_fence.sql"))?;
    Ok(get.query_row([id], |row| row.get(0)).optional()?.unwrap_or(0))
}

pub(super) fn note(db: &Connection, id: &MessageId, record: &AttemptRecord) -> Result<(), Fault> {
    let Some(id) = own(id) else { return Ok(()) };
    write_attempt(db, include_str!("sql/note.sql"), id, record)
}

fn write_attempt(db: &Connection, sql: &str, id: &[u8; 16], record: &AttemptRecord) -> Result<(), Fault> {
    db.prepare_cached(sql)?.execute(params![
        id,
        record.generation,
        record.attempt,
        record.verdict as u8,
        record.at.as_ms(),
        record.instance.map(|instance| instance.0 as i64),
        record.failure.as_ref().map(failure_to_text).transpose()?,
        record.due_at.map(Timestamp::as_ms),
        record.claimed_at.map(Timestamp::as_ms),
        record.sent_at.map(Timestamp::as_ms)
    ])?;
    Ok(())
}

fn write_edit(db: &Connection, id: &[u8; 16], record: &EditRecord) -> Result<(), Fault> {
    let mut insert = db.prepare_cached(include_str!("sql/insert_edit.sql"))?;
    insert.execute(params![
        id,
        &*record.actor,
        record.at.as_ms(),
        record.generation,
        to_text("edit", &record.differences)?
    ])?;
    Ok(())
}

pub(super) fn write_audit(db: &Connection, audit: &Audit) -> Result<(), Fault> {
    let mut insert = db.prepare_cached(include_str!("sql/insert_audit.sql"))?;
    insert.execute(params![
        &*audit.actor,
        audit.action,
        &*audit.subject,
        audit.at.as_ms(),
        audit.detail.as_deref()
    ])?;
    Ok(())
}
