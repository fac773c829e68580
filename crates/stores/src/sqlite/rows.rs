//! Rows and messages, one into the other. Columns come in the order in which the migration declares them.

use std::sync::Arc;

use bytes::Bytes;
use redeliver_core::attempt::{AttemptRecord, Verdict};
use redeliver_core::gate::GateKey;
use redeliver_core::{Content, DeadReason, InstanceId, Lane, Lease, Message, MessageId, State, Timestamp};
use redeliver_engine::access::{Digest, Role};
use rusqlite::types::{FromSqlError, Type, ValueRef};
use rusqlite::{Row, Statement, ToSql};
use uuid::Uuid;

use super::errors::Fault;
use crate::encode::{
    attributes_from_text, failure_from_text, failure_to_text, headers_from_bytes, recipients_from_text,
    recipients_to_text,
};
use crate::standing::{Names, STATES, Standing};

/// How many columns a message has, its number aside.
pub(super) const MESSAGE_COLUMNS: usize = 39;

/// Where a row has its number.
pub(super) const NUMBER: usize = 38;

/// The column that was added after the number.
const FIRST_SENT_AT: usize = NUMBER + 1;

/// Behind that is what is selected beside the row: its content.
pub(super) const CONTENT: usize = FIRST_SENT_AT + 1;

/// The word of a state's number.
pub(super) fn state_word(number: i64) -> Result<&'static str, Fault> {
    at(&STATES, number).ok_or_else(|| odd("state", number))
}

/// The lane of a number.
pub(super) fn lane(number: i64) -> Result<Lane, Fault> {
    at(&Lane::ALL, number).ok_or_else(|| odd("lane", number))
}

/// The role of a number.
pub(super) fn role(number: i64) -> Result<Role, Fault> {
    at(&Role::ALL, number).ok_or_else(|| odd("role", number))
}

/// The reason of a number.
pub(super) fn dead_reason(number: i64) -> Result<DeadReason, Fault> {
    at(&DeadReason::ALL, number).ok_or_else(|| odd("dead_reason", number))
}

/// Gives `?1` to `?39` of a statement a message's columns.
pub(super) fn bind_message(
    statement: &mut Statement<'_>,
    id: &[u8; 16],
    message: &Message,
) -> Result<(), Fault> {
    let standing = Standing::of(message);
    let last_error = message.last_error.as_ref().map(failure_to_text).transpose()?;
    let recipients = recipients_to_text(&message.recipients)?;
    let columns: [&dyn ToSql; MESSAGE_COLUMNS] = [
        id,
        &&*message.workspace,
        &&*message.route,
        &(message.lane as u8),
        &standing.state,
        &message.due_at.as_ms(),
        &standing.ready_at,
        &standing.suspect_at,
        &(message.fence as i64),
        &message.attempts,
        &message.losses,
        &standing.parked_for,
        &standing.instance,
        &standing.claim,
        &standing.lease_until,
        &standing.started_at,
        &standing.cancel_requested,
        &standing.handed_off_at,
        &standing.report_by,
        &standing.ended_at,
        &standing.put_away_at,
        &standing.receipt,
        &standing.dead_reason,
        &standing.dismissed_at,
        &standing.cancelled_for,
        &message.key.as_deref(),
        &message.scheduled_for.as_ms(),
        &message.created_at.as_ms(),
        &message.expires_at.map(Timestamp::as_ms),
        &message.generation,
        &message.attempts_before,
        &message.max_attempts,
        &message.unconfirmed,
        &message.possible_duplicates,
        &message.settled_claim.map(|claim| claim as i64),
        &last_error,
        &recipients,
        &message.is_dead_letter,
        &message.first_sent_at.map(Timestamp::as_ms),
    ];
    bind(statement, columns)
}

/// Gives `?1` to `?13` of `insert_new` what a message brings that waits as it came, with its last error as it is written.
pub(super) fn bind_new(
    statement: &mut Statement<'_>,
    id: &[u8; 16],
    message: &Message,
    last_error: Option<&str>,
) -> Result<(), Fault> {
    let columns: [&dyn ToSql; 13] = [
        id,
        &&*message.workspace,
        &&*message.route,
        &(message.lane as u8),
        &message.due_at.as_ms(),
        &message.attempts,
        &message.key.as_deref(),
        &message.scheduled_for.as_ms(),
        &message.created_at.as_ms(),
        &message.expires_at.map(Timestamp::as_ms),
        &message.attempts_before,
        &message.max_attempts,
        &last_error,
    ];
    bind(statement, columns)
}

fn bind<const N: usize>(statement: &mut Statement<'_>, columns: [&dyn ToSql; N]) -> Result<(), Fault> {
    for (column, number) in columns.into_iter().zip(1..) {
        statement.raw_bind_parameter(number, column)?;
    }
    Ok(())
}

/// The message in a row that begins with its columns. `names` spares it names that the last row had too.
pub(super) fn message(row: &Row<'_>, names: &mut Names) -> Result<Message, Fault> {
    Ok(Message {
        id: id(row, 0)?,
        workspace: names.workspace(row.get_ref(1)?.as_str().map_err(|e| bad(1, e))?),
        route: names.route(row.get_ref(2)?.as_str().map_err(|e| bad(2, e))?),
        lane: lane(row.get(3)?)?,
        state: state(row)?,
        due_at: time(row, 5)?,
        fence: number(row, 8)?,
        attempts: row.get(9)?,
        losses: row.get(10)?,
        key: text(row, 25)?,
        scheduled_for: time(row, 26)?,
        created_at: time(row, 27)?,
        expires_at: time_if_any(row, 28)?,
        generation: row.get(29)?,
        attempts_before: row.get(30)?,
        max_attempts: row.get(31)?,
        unconfirmed: row.get(32)?,
        possible_duplicates: row.get(33)?,
        settled_claim: row.get::<_, Option<i64>>(34)?.map(|claim| claim as u64),
        last_error: str_if_any(row, 35)?.map(failure_from_text).transpose()?,
        recipients: str_if_any(row, 36)?.map(recipients_from_text).transpose()?.unwrap_or_default(),
        is_dead_letter: row.get(37)?,
        first_sent_at: time_if_any(row, FIRST_SENT_AT)?,
    })
}

fn state(row: &Row<'_>) -> Result<State, Fault> {
    Ok(match row.get::<_, i64>(4)? {
        0 => State::Waiting { parked_for: str_if_any(row, 11)?.map(GateKey::from_text) },
        1 => State::Claimed(Lease {
            instance: InstanceId(number(row, 12)?),
            claim: number(row, 13)?,
            until_at: time(row, 14)?,
            started_at: time_if_any(row, 15)?,
            cancel_requested: row.get(16)?,
        }),
        2 => State::HandedOff { since: time(row, 17)?, report_by: time_if_any(row, 18)? },
        3 => State::Delivered { at: time(row, 19)?, receipt: text(row, 21)? },
        4 => State::Dead {
            at: time(row, 19)?,
            reason: dead_reason(row.get(22)?)?,
            dismissed_at: time_if_any(row, 23)?,
        },
        5 => State::Cancelled { at: time(row, 19)?, reason: text(row, 24)?.unwrap_or_default() },
        other => return Err(odd("state", other)),
    })
}

/// The content whose columns begin at `first`.
pub(super) fn content(row: &Row<'_>, first: usize) -> Result<Content, Fault> {
    Ok(Content {
        target: text(row, first)?,
        attributes: str_if_any(row, first + 1)?.map(attributes_from_text).transpose()?.unwrap_or_default(),
        headers: bytes_if_any(row, first + 2)?.map(headers_from_bytes).transpose()?.unwrap_or_default(),
        content_type: text(row, first + 3)?,
        bytes: bytes_if_any(row, first + 4)?.map(Bytes::copy_from_slice).unwrap_or_default(),
    })
}

/// An attempt of a message's history.
pub(super) fn attempt(row: &Row<'_>) -> Result<AttemptRecord, Fault> {
    let verdict: i64 = row.get(2)?;
    Ok(AttemptRecord {
        generation: row.get(0)?,
        attempt: row.get(1)?,
        verdict: at(&Verdict::ALL, verdict).ok_or_else(|| odd("verdict", verdict))?,
        at: time(row, 3)?,
        instance: row.get::<_, Option<i64>>(4)?.map(|instance| InstanceId(instance as u64)),
        failure: str_if_any(row, 5)?.map(failure_from_text).transpose()?,
        due_at: time_if_any(row, 6)?,
        claimed_at: time_if_any(row, 7)?,
        sent_at: time_if_any(row, 8)?,
    })
}

/// A message's id.
pub(super) fn id(row: &Row<'_>, column: usize) -> Result<MessageId, Fault> {
    let bytes = row.get_ref(column)?.as_blob().map_err(|error| bad(column, error))?;
    let uuid = Uuid::from_slice(bytes).map_err(|error| bad(column, error))?;
    Ok(MessageId::Own(uuid))
}

/// A time.
pub(super) fn time(row: &Row<'_>, column: usize) -> Result<Timestamp, Fault> {
    Ok(Timestamp::from_ms(row.get(column)?))
}

/// A text that many may hold.
pub(super) fn text(row: &Row<'_>, column: usize) -> Result<Option<Arc<str>>, Fault> {
    Ok(str_if_any(row, column)?.map(Arc::from))
}

/// The digest of a secret.
pub(super) fn digest(row: &Row<'_>, column: usize) -> Result<Digest, Fault> {
    let bytes = row.get_ref(column)?.as_blob().map_err(|error| bad(column, error))?;
    bytes.try_into().map_err(|error| bad(column, error))
}

/// A number with all its 64 bits.
pub(super) fn number(row: &Row<'_>, column: usize) -> Result<u64, Fault> {
    Ok(row.get::<_, i64>(column)? as u64)
}

/// A time, where there is one.
pub(super) fn time_if_any(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, Fault> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_ms))
}

fn str_if_any<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>, Fault> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        value => value.as_str().map(Some).map_err(|error| bad(column, error)),
    }
}

fn bytes_if_any<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a [u8]>, Fault> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        value => value.as_blob().map(Some).map_err(|error| bad(column, error)),
    }
}

fn at<T: Copy>(all: &[T], number: i64) -> Option<T> {
    all.get(usize::try_from(number).ok()?).copied()
}

fn odd(column: &str, number: i64) -> Fault {
    bad(0, FromSqlError::Other(format!("{column} is {number}, which means nothing").into()))
}

fn bad(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> Fault {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Null, Box::new(error)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standing::state_number;

    #[test]
    fn the_numbers_in_the_database_never_change_their_meaning() {
        let lanes: Vec<_> = (0..4).map(|n| lane(n).unwrap().name()).collect();
        assert_eq!(lanes, ["critical", "high", "medium", "low"]);
        let reasons: Vec<_> = (0..5).map(|n| dead_reason(n).unwrap().name()).collect();
        let roles: Vec<_> = (0..4).map(|n| role(n).unwrap().name()).collect();
        assert_eq!(roles, ["viewer", "sender", "operator", "admin"]);
        assert_eq!(reasons, ["attempts_exhausted", "refused", "expired", "uncertain", "poison"]);
        assert!(lane(4).is_err() && dead_reason(-1).is_err() && state_word(6).is_err());
        for (word, number) in STATES.iter().zip(0..) {
            assert_eq!(state_number(word), Some(number));
            assert_eq!(state_word(i64::from(number)).unwrap(), *word);
        }
        assert_eq!(state_number("due"), None);
    }
}
