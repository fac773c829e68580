//! What a row means as a message, and what a message's change means for its row. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use redeliver_core::status::Status;
use redeliver_core::{
    AttemptId, Change, Content, Failure, InstanceId, Lane, Lease, Message, MessageId, State, Timestamp,
};
use redeliver_engine::store::{Filter, StatusAt, StoreError};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::adopted::{Micros, Row, Tally};
use crate::mapping::Mapping;
use crate::notes::Note;

/// What marks the fence of a row that nobody has claimed; a claimed row's is its lock's end.
const UNCLAIMED: u64 = 1 << 62;

/// A claim that this process made: the lock that it was given, and the one that it has now.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) claim: u64,
    pub(super) instance: InstanceId,
    pub(super) locked_until: Micros,
}

/// The id of a row as a message.
pub(super) fn message_id(mapping: &Mapping, id: &str) -> MessageId {
    MessageId::Row(format!("{}:{id}", mapping.name).into())
}

/// The row as a message; `None` if its word means nothing to us.
pub(super) fn message(
    mapping: &Mapping,
    row: &Row,
    note: Option<&Note>,
    hold: Option<&Hold>,
) -> Option<Message> {
    let attempts = u32::try_from(row.attempts.max(0)).unwrap_or(u32::MAX);
    let due_at = row.next_attempt_at.map(time);
    let queued_at = row.last_queued_at.map(time);
    // Its next try says nothing of what was: a row that has died may still have one that never comes.
    let seen_at = queued_at.unwrap_or(Timestamp::UNKNOWN);
    // What is noted of a try says nothing about the next one.
    let note_of_try = note.filter(|note| note.attempt == attempts.saturating_add(1));
    let ended_at = note_of_try.and_then(|note| note.ended_at_ms).map_or(seen_at, Timestamp::from_ms);
    let fence = fence(mapping, row, hold);
    let words = &mapping.words;
    let is = |word: &Option<String>| word.as_ref() == Some(&row.status);
    let state = if row.status == words.failed {
        State::Waiting { parked_for: None }
    } else if row.status == words.retry_queued {
        let ours = hold.filter(|hold| row.locked_until == Some(hold.locked_until));
        State::Claimed(Lease {
            instance: ours.map_or(InstanceId(0), |hold| hold.instance),
            claim: fence,
            until_at: row.locked_until.map_or(Timestamp::MAX, time),
            started_at: None,
            cancel_requested: false,
        })
    } else if row.status == words.pending {
        let report_by = mapping.report_within.and_then(|within| Some(queued_at?.plus(within)));
        State::HandedOff { since: seen_at, report_by }
    } else if row.status == words.sent {
        State::Delivered { at: seen_at, receipt: None }
    } else if row.status == words.dead || is(&words.dismissed) {
        let reason = Mapping::reason(row.dead_reason.as_deref());
        State::Dead { at: ended_at, reason, dismissed_at: is(&words.dismissed).then_some(ended_at) }
    } else if is(&words.cancelled) {
        State::Cancelled { at: ended_at, reason: "operator".into() }
    } else {
        return None;
    };
    Some(Message {
        id: message_id(mapping, &row.id),
        workspace: mapping.workspace.clone(),
        route: mapping.route.clone(),
        lane: Lane::Medium,
        key: row.key.as_deref().map(Arc::from),
        state,
        due_at: due_at.unwrap_or(Timestamp::MAX),
        scheduled_for: due_at.unwrap_or(seen_at),
        created_at: row.created_at.map_or(seen_at, time),
        first_sent_at: note.and_then(|note| note.first_sent_at_ms).map(Timestamp::from_ms),
        expires_at: None,
        generation: note.map_or(0, |note| note.generation),
        attempts,
        attempts_before: 0,
        max_attempts: None,
        losses: 0,
        unconfirmed: note_of_try.map_or(0, |note| note.unconfirmed),
        possible_duplicates: note.map_or(0, |note| note.possible_duplicates),
        fence,
        settled_claim: None,
        last_error: row.last_error.as_ref().map(Failure::new),
        recipients: Vec::new(),
        is_dead_letter: false,
    })
}

/// When a message came to an end that its row has no column for.
pub(super) fn ended_at(state: &State) -> Option<Timestamp> {
    match state {
        State::Dead { at, .. } | State::Cancelled { at, .. } => Some(*at),
        State::Waiting { .. } | State::Claimed(_) | State::HandedOff { .. } | State::Delivered { .. } => None,
    }
}

/// What ids of rows are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Ids {
    Numbers,
    Texts,
}

/// What a row carries: which mail it is, and nothing of the mail.
pub(super) fn content(mapping: &Mapping, ids: Ids, row: &Row) -> Content {
    of_json(&Value::Object(named(mapping, ids, row)))
}

/// What the word of a row's death carries: the row as the death leaves it.
pub(super) fn letter(
    mapping: &Mapping,
    ids: Ids,
    row: &Row,
    change: &Change,
    attributes: BTreeMap<String, String>,
) -> Content {
    let mut said = named(mapping, ids, row);
    let c = &mapping.columns;
    if let State::Dead { reason, .. } = &change.message.state {
        let name = c.dead_reason.clone().unwrap_or_else(|| "DeadReason".to_owned());
        said.insert(name, json!(Mapping::reason_word(*reason)));
    }
    said.insert(c.attempts.clone(), json!(change.message.attempts));
    if let Some(name) = &c.last_error {
        said.insert(name.clone(), json!(row.last_error));
    }
    Content { attributes, ..of_json(&Value::Object(said)) }
}

fn named(mapping: &Mapping, ids: Ids, row: &Row) -> serde_json::Map<String, Value> {
    let id = match (ids, row.id.parse::<i64>()) {
        (Ids::Numbers, Ok(number)) => json!(number),
        (Ids::Numbers, Err(_)) | (Ids::Texts, _) => json!(row.id),
    };
    let mut said = serde_json::Map::new();
    said.insert(mapping.columns.id.clone(), id);
    if let Some(name) = &mapping.columns.key {
        said.insert(name.clone(), json!(row.key));
    }
    said
}

fn of_json(value: &Value) -> Content {
    Content {
        content_type: Some("application/json".into()),
        ..Content::of_bytes(Bytes::from(value.to_string()))
    }
}

/// The number that a row must still have for a change to be written: its lock's end while it is claimed, otherwise a
/// digest of everything that anybody would change.
pub(super) fn fence(mapping: &Mapping, row: &Row, hold: Option<&Hold>) -> u64 {
    if row.status == mapping.words.retry_queued
        && let Some(locked_until) = row.locked_until
    {
        // A lock that its holder has moved on is still the same claim.
        let ours = hold.filter(|hold| hold.locked_until == locked_until);
        return ours.map_or(locked_until.max(0) as u64, |hold| hold.claim);
    }
    let seen = format!(
        "{}|{}|{:?}|{:?}|{:?}|{:?}",
        row.status, row.attempts, row.next_attempt_at, row.locked_until, row.last_queued_at, row.dead_reason
    );
    let digest = Sha256::digest(seen.as_bytes());
    let bits = digest.iter().take(7).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    UNCLAIMED | bits
}

/// Whether a sender may take a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Free {
    /// It may.
    Yes,
    /// Another sender has it until then.
    LockedUntil(Micros),
    /// There is nothing for it to do, for this reason.
    No(&'static str),
}

/// Whether a sender may take this row for this try, or for whichever it is at if that wasn't said. A claim is the
/// scheduler's, which has published before it writes so: its sender was quick.
pub(super) fn for_sender(
    mapping: &Mapping,
    row: &Row,
    note: Option<&Note>,
    attempt: Option<&AttemptId>,
    now: Timestamp,
) -> Free {
    let words = &mapping.words;
    if row.status == words.sent {
        return Free::No("it was sent before");
    }
    if row.status != words.pending && row.status != words.retry_queued {
        return Free::No("its row waits for nobody to send it");
    }
    let at = message(mapping, row, note, None).as_ref().map(AttemptId::of);
    if attempt.is_some_and(|attempt| at.as_ref() != Some(attempt)) {
        return Free::No("it is about another attempt");
    }
    match row.locked_until {
        Some(until) if row.status == words.pending && until > micros(now) => Free::LockedUntil(until),
        Some(_) | None => Free::Yes,
    }
}

/// The row as a change leaves it; an error if this table has no word for that.
pub(super) fn changed(mapping: &Mapping, row: &Row, change: &Change) -> Result<Row, StoreError> {
    let after = &change.message;
    let words = &mapping.words;
    let mut next = Row { locked_until: None, ..row.clone() };
    if after.attempts != u32::try_from(row.attempts.max(0)).unwrap_or(u32::MAX) {
        next.attempts = i64::from(after.attempts);
    }
    // A person's retry forgets the error; the application's row keeps it.
    if let Some(error) = &after.last_error
        && row.last_error.as_ref().map(Failure::new).as_ref() != Some(error)
    {
        next.last_error = Some(error.text.to_string());
    }
    match &after.state {
        State::Waiting { parked_for } => {
            next.status.clone_from(&words.failed);
            next.dead_reason = None;
            // There is no place in the row for a gate: it looks again at the next tick.
            let due_at = match parked_for {
                Some(_) => after.due_at.max(change.event.at.plus(mapping.retry_interval)),
                None => after.due_at,
            };
            if row.next_attempt_at.map(time) != Some(due_at) {
                next.next_attempt_at = Some(micros(due_at));
            }
        }
        State::HandedOff { .. } => {
            next.status.clone_from(&words.pending);
            next.last_queued_at = Some(micros(change.event.at));
        }
        State::Delivered { .. } => next.status.clone_from(&words.sent),
        State::Dead { reason, dismissed_at, .. } => {
            next.status = match dismissed_at {
                None => words.dead.clone(),
                Some(_) => word(mapping, words.dismissed.as_ref(), "dismissed")?,
            };
            // A sender's own reason stays as it wrote it.
            if Mapping::reason(row.dead_reason.as_deref()) != *reason || row.dead_reason.is_none() {
                next.dead_reason = Some(Mapping::reason_word(*reason).to_owned());
            }
        }
        State::Cancelled { .. } => next.status = word(mapping, words.cancelled.as_ref(), "cancelled")?,
        State::Claimed(_) => {
            return Err(StoreError::Unfit(format!(
                "{} is being published at this moment: look again in a moment",
                after.id
            )));
        }
    }
    Ok(next)
}

fn word(mapping: &Mapping, word: Option<&String>, key: &str) -> Result<String, StoreError> {
    word.cloned().ok_or_else(|| {
        let name = &mapping.name;
        StoreError::Unfit(format!("table {name} has no word for this: set tables.{name}.words.{key} to one"))
    })
}

/// Whether a row shows that this very change was written before: the answer was lost, or its sender was quick.
pub(super) fn shows(mapping: &Mapping, row: &Row, change: &Change) -> bool {
    if change.settles.is_none() {
        return false;
    }
    match &change.message.state {
        // A pending row with a lock is with a sender that was quicker than this word of it.
        State::HandedOff { .. } if row.status == mapping.words.pending && row.locked_until.is_some() => {
            row.attempts.max(0) == i64::from(change.message.attempts)
        }
        State::HandedOff { .. } if mapping.columns.last_queued_at.is_some() => {
            row.last_queued_at == Some(micros(change.event.at))
        }
        _ => changed(mapping, row, change).is_ok_and(|next| {
            row.locked_until.is_none()
                && (&next.status, next.next_attempt_at, next.attempts)
                    == (&row.status, row.next_attempt_at, row.attempts)
        }),
    }
}

/// Milliseconds of microseconds.
pub(super) fn time(at: Micros) -> Timestamp {
    Timestamp::from_ms(at.div_euclid(1_000))
}

/// Microseconds of milliseconds.
pub(super) fn micros(at: Timestamp) -> Micros {
    at.as_ms().saturating_mul(1_000)
}

/// The words that a filter means, whether they must be due or not, and tried or not; `None` if it means none.
#[expect(
    clippy::type_complexity,
    reason = "three answers to one question, taken apart where they are asked for"
)]
pub(super) fn asked(
    mapping: &Mapping,
    filter: &Filter,
) -> Option<(Vec<String>, Option<(Timestamp, bool)>, Option<bool>)> {
    let words = &mapping.words;
    let of_state = |state: &str| -> Vec<String> {
        let dismissed = words.dismissed.iter().filter(|_| filter.with_dismissed).cloned();
        match state {
            "waiting" => vec![words.failed.clone()],
            "claimed" => vec![words.retry_queued.clone()],
            "handed_off" => vec![words.pending.clone()],
            "delivered" => vec![words.sent.clone()],
            "dead" => std::iter::once(words.dead.clone()).chain(dismissed).collect(),
            "cancelled" => words.cancelled.iter().cloned().collect(),
            _ => Vec::new(),
        }
    };
    let all = ["waiting", "claimed", "handed_off", "delivered", "dead", "cancelled"];
    let mut meant: Vec<String> = match filter.state {
        Some(state) => of_state(state),
        None => all.into_iter().flat_map(of_state).collect(),
    };
    let (mut due, mut tried) = (None, None);
    if let Some(StatusAt { status, now }) = filter.status {
        let state = match status {
            Status::Due => {
                due = Some((now, true));
                "waiting"
            }
            Status::Retrying | Status::Scheduled => {
                due = Some((now, false));
                tried = Some(status == Status::Retrying);
                "waiting"
            }
            // There is no place in a row for a gate.
            Status::Held => return None,
            Status::Sending => "claimed",
            Status::HandedOff => "handed_off",
            Status::Delivered => "delivered",
            Status::Dead => "dead",
            Status::Cancelled => "cancelled",
        };
        let of_status = of_state(state);
        meant.retain(|word| of_status.contains(word));
    }
    (!meant.is_empty()).then_some((meant, due, tried))
}

/// What rows with this word count as; `None` if they don't count.
pub(super) fn counted(mapping: &Mapping, tally: &Tally) -> Option<(&'static str, Option<&'static str>)> {
    let row = Row { status: tally.status.clone(), dead_reason: tally.dead_reason.clone(), ..Row::default() };
    match message(mapping, &row, None, None)?.state {
        State::Dead { dismissed_at: Some(_), .. } => None,
        State::Dead { reason, .. } => Some(("dead", Some(reason.name()))),
        state => Some((state.name(), None)),
    }
}
