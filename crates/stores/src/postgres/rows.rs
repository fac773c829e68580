//! Rows and messages, one into the other. Columns come in the order in which the migration declares them.

use std::sync::Arc;

use bytes::Bytes;
use redeliver_core::attempt::{AttemptRecord, Verdict};
use redeliver_core::gate::GateKey;
use redeliver_core::{Content, DeadReason, InstanceId, Lane, Lease, Message, MessageId, State, Timestamp};
use redeliver_engine::access::{Digest, Role};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use super::errors::{Fault, odd};
use crate::encode::{attributes_from_text, failure_from_text, headers_from_bytes, recipients_from_text};
use crate::standing::{Names, STATES};

/// How many columns a message has, and so where what is selected beside it begins.
pub(super) const MESSAGE_COLUMNS: usize = 39;

/// The word of a state's number.
pub(super) fn state_word(number: i16) -> Result<&'static str, Fault> {
    at(&STATES, number).ok_or_else(|| odd("state", number))
}

/// The lane of a number.
pub(super) fn lane(number: i16) -> Result<Lane, Fault> {
    at(&Lane::ALL, number).ok_or_else(|| odd("lane", number))
}

/// The role of a number.
pub(super) fn role(number: i16) -> Result<Role, Fault> {
    at(&Role::ALL, number).ok_or_else(|| odd("role", number))
}

/// The reason of a number.
pub(super) fn dead_reason(number: i16) -> Result<DeadReason, Fault> {
    at(&DeadReason::ALL, number).ok_or_else(|| odd("dead_reason", number))
}

/// The message in a row that begins with its columns. `names` spares it names that the last row had too.
pub(super) fn message(row: &Row, names: &mut Names) -> Result<Message, Fault> {
    Ok(Message {
        id: id(row, 0)?,
        workspace: names.workspace(get(row, 1)?),
        route: names.route(get(row, 2)?),
        lane: lane(get(row, 3)?)?,
        state: state(row)?,
        due_at: time(row, 5)?,
        fence: number(row, 8)?,
        attempts: count(row, 9)?,
        losses: count(row, 10)?,
        key: text_if_any(row, 25)?,
        scheduled_for: time(row, 26)?,
        created_at: time(row, 27)?,
        expires_at: time_if_any(row, 28)?,
        generation: count(row, 29)?,
        attempts_before: count(row, 30)?,
        max_attempts: get::<Option<i32>>(row, 31)?.map(|count| count as u32),
        unconfirmed: count(row, 32)?,
        possible_duplicates: count(row, 33)?,
        settled_claim: get::<Option<i64>>(row, 34)?.map(|claim| claim as u64),
        last_error: get::<Option<&str>>(row, 35)?.map(failure_from_text).transpose()?,
        recipients: get::<Option<&str>>(row, 36)?.map(recipients_from_text).transpose()?.unwrap_or_default(),
        is_dead_letter: get(row, 37)?,
        first_sent_at: time_if_any(row, 38)?,
    })
}

/// The messages in rows that begin with their columns.
pub(super) fn messages(rows: &[Row]) -> Result<Vec<Message>, Fault> {
    let mut names = Names::default();
    rows.iter().map(|row| message(row, &mut names)).collect()
}

fn state(row: &Row) -> Result<State, Fault> {
    Ok(match get::<i16>(row, 4)? {
        0 => State::Waiting { parked_for: get::<Option<&str>>(row, 11)?.map(GateKey::from_text) },
        1 => State::Claimed(Lease {
            instance: InstanceId(number(row, 12)?),
            claim: number(row, 13)?,
            until_at: time(row, 14)?,
            started_at: time_if_any(row, 15)?,
            cancel_requested: get(row, 16)?,
        }),
        2 => State::HandedOff { since: time(row, 17)?, report_by: time_if_any(row, 18)? },
        3 => State::Delivered { at: time(row, 19)?, receipt: text_if_any(row, 21)? },
        4 => State::Dead {
            at: time(row, 19)?,
            reason: dead_reason(get(row, 22)?)?,
            dismissed_at: time_if_any(row, 23)?,
        },
        5 => State::Cancelled { at: time(row, 19)?, reason: text(row, 24)? },
        other => return Err(odd("state", other)),
    })
}

/// The content whose columns begin at `first`; empty where there is none.
pub(super) fn content(row: &Row, first: usize) -> Result<Content, Fault> {
    Ok(Content {
        target: text_if_any(row, first)?,
        attributes: get::<Option<&str>>(row, first + 1)?
            .map(attributes_from_text)
            .transpose()?
            .unwrap_or_default(),
        headers: get::<Option<&[u8]>>(row, first + 2)?
            .map(headers_from_bytes)
            .transpose()?
            .unwrap_or_default(),
        content_type: text_if_any(row, first + 3)?,
        bytes: get::<Option<&[u8]>>(row, first + 4)?.map(Bytes::copy_from_slice).unwrap_or_default(),
    })
}

/// An attempt of a message's history.
pub(super) fn attempt(row: &Row) -> Result<AttemptRecord, Fault> {
    let verdict: i16 = get(row, 2)?;
    Ok(AttemptRecord {
        generation: count(row, 0)?,
        attempt: count(row, 1)?,
        verdict: at(&Verdict::ALL, verdict).ok_or_else(|| odd("verdict", verdict))?,
        at: time(row, 3)?,
        instance: get::<Option<i64>>(row, 4)?.map(|instance| InstanceId(instance as u64)),
        failure: get::<Option<&str>>(row, 5)?.map(failure_from_text).transpose()?,
        due_at: time_if_any(row, 6)?,
        claimed_at: time_if_any(row, 7)?,
        sent_at: time_if_any(row, 8)?,
    })
}

/// A value of any kind.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Fault> {
    Ok(row.try_get(column)?)
}

/// A message's id.
pub(super) fn id(row: &Row, column: usize) -> Result<MessageId, Fault> {
    Ok(MessageId::Own(get::<Uuid>(row, column)?))
}

/// A time.
pub(super) fn time(row: &Row, column: usize) -> Result<Timestamp, Fault> {
    Ok(Timestamp::from_ms(get(row, column)?))
}

/// A time, where there is one.
pub(super) fn time_if_any(row: &Row, column: usize) -> Result<Option<Timestamp>, Fault> {
    Ok(get::<Option<i64>>(row, column)?.map(Timestamp::from_ms))
}

/// A text that many may hold.
pub(super) fn text(row: &Row, column: usize) -> Result<Arc<str>, Fault> {
    Ok(get::<&str>(row, column)?.into())
}

/// A text that many may hold, where there is one.
pub(super) fn text_if_any(row: &Row, column: usize) -> Result<Option<Arc<str>>, Fault> {
    Ok(get::<Option<&str>>(row, column)?.map(Arc::from))
}

/// The digest of a secret.
pub(super) fn digest(row: &Row, column: usize) -> Result<Digest, Fault> {
    let bytes: &[u8] = get(row, column)?;
    bytes.try_into().map_err(|_| odd("digest", bytes.len()))
}

/// A number with all its 64 bits.
pub(super) fn number(row: &Row, column: usize) -> Result<u64, Fault> {
    Ok(get::<i64>(row, column)? as u64)
}

/// A count with all its 32 bits.
pub(super) fn count(row: &Row, column: usize) -> Result<u32, Fault> {
    Ok(get::<i32>(row, column)? as u32)
}

fn at<T: Copy>(all: &[T], number: i16) -> Option<T> {
    all.get(usize::try_from(number).ok()?).copied()
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
        assert_eq!(reasons, ["attempts_exhausted", "refused", "expired", "uncertain", "poison"]);
        let roles: Vec<_> = (0..4).map(|n| role(n).unwrap().name()).collect();
        assert_eq!(roles, ["viewer", "sender", "operator", "admin"]);
        assert!(lane(4).is_err() && dead_reason(-1).is_err() && state_word(6).is_err());
        for (word, number) in STATES.iter().zip(0..) {
            assert_eq!(state_number(word), Some(number));
            assert_eq!(state_word(number).unwrap(), *word);
        }
        assert_eq!(state_number("due"), None);
    }
}
