//! Answers questions. Writes nothing.

use std::sync::Arc;

use redeliver_core::attempt::AttemptRecord;
use redeliver_core::change::Audit;
use redeliver_core::status::Status;
use redeliver_core::{Content, Message, MessageId, Timestamp};
use redeliver_engine::store::{Count, Filter, StatusAt};
use rusqlite::{Connection, Params, params};

use super::errors::{Fault, own};
use super::limit;
use super::rows::{self, Names, dead_reason, lane, number, state_number, state_word, text, time};

pub(super) fn get(db: &Connection, id: &MessageId) -> Result<Option<Message>, Fault> {
    Ok(messages(db, include_str!("sql/get.sql"), [own(id)])?.pop())
}

pub(super) fn exists(db: &Connection, id: &[u8; 16]) -> Result<bool, Fault> {
    Ok(db.prepare_cached(include_str!("sql/get_fence.sql"))?.exists([id])?)
}

pub(super) fn content(db: &Connection, id: &MessageId) -> Result<Option<Content>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/content.sql"))?;
    let mut found = get.query([own(id)])?;
    found.next()?.map(|row| rows::content(row, 0)).transpose()
}

pub(super) fn attempts(db: &Connection, id: &MessageId) -> Result<Vec<AttemptRecord>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/attempts.sql"))?;
    let mut found = get.query([own(id)])?;
    let mut attempts = Vec::new();
    while let Some(row) = found.next()? {
        attempts.push(rows::attempt(row)?);
    }
    Ok(attempts)
}

pub(super) fn lapsed(db: &Connection, now: Timestamp, count_max: usize) -> Result<Vec<Message>, Fault> {
    messages(db, include_str!("sql/lapsed.sql"), params![now.as_ms(), limit(count_max)])
}

pub(super) fn overdue(db: &Connection, now: Timestamp, count_max: usize) -> Result<Vec<Message>, Fault> {
    messages(db, include_str!("sql/overdue.sql"), params![now.as_ms(), limit(count_max)])
}

pub(super) fn expired(db: &Connection, now: Timestamp, count_max: usize) -> Result<Vec<Message>, Fault> {
    messages(db, include_str!("sql/expired.sql"), params![now.as_ms(), limit(count_max)])
}

pub(super) fn list(db: &Connection, filter: &Filter) -> Result<Vec<Message>, Fault> {
    // No id of ours sorts behind this.
    const BEHIND_ALL: [u8; 17] = [255; 17];
    let after = filter.after.as_ref().and_then(own).map_or(&BEHIND_ALL[..], |id| id);
    let workspace = filter.workspace.as_deref();
    let route = filter.route.as_deref();
    let lane = filter.lane.map(|lane| lane as u8);
    let limit = limit(filter.limit);
    let Some(wanted) = Wanted::by(filter) else { return Ok(Vec::new()) };
    if let Some(key) = &filter.key {
        let sql = include_str!("sql/list_by_key.sql");
        let state = wanted.state();
        let few = params![after, workspace, route, state, filter.with_dismissed, limit, &**key, lane];
        let mut found = messages(db, sql, few)?;
        // A key has one message in each workspace, so that this leaves no page half empty.
        found.retain(|message| filter.status.is_none_or(|at| at.status == Status::of(message, at.now)));
        return Ok(found);
    }
    // Where few of many are wanted, a small index has them.
    let few = match wanted {
        Wanted::State("claimed") => Some(include_str!("sql/list_claimed.sql")),
        Wanted::State("handed_off") => Some(include_str!("sql/list_handed_off.sql")),
        Wanted::State("dead") if !filter.with_dismissed => Some(include_str!("sql/list_dead.sql")),
        Wanted::Parked => Some(include_str!("sql/list_parked.sql")),
        Wanted::Waiting { now, due, tried } => {
            let sql = include_str!("sql/list_waiting.sql");
            return messages(db, sql, params![after, workspace, route, limit, lane, now.as_ms(), due, tried]);
        }
        Wanted::State(_) | Wanted::Any => None,
    };
    match few {
        Some(sql) => messages(db, sql, params![after, workspace, route, limit, lane]),
        None => messages(
            db,
            include_str!("sql/list.sql"),
            params![after, workspace, route, wanted.state(), filter.with_dismissed, limit, lane],
        ),
    }
}

/// What a filter's state and status come to in the terms of the table.
enum Wanted {
    Any,
    State(&'static str),
    Parked,
    Waiting { now: Timestamp, due: bool, tried: bool },
}

impl Wanted {
    /// `None` if nothing can be both.
    fn by(filter: &Filter) -> Option<Self> {
        let Some(StatusAt { status, now }) = filter.status else {
            let state = filter.state.filter(|state| state_number(state).is_some());
            return if filter.state == state { Some(state.map_or(Self::Any, Self::State)) } else { None };
        };
        let (state, wanted) = match status {
            Status::Scheduled => ("waiting", Self::Waiting { now, due: false, tried: false }),
            Status::Retrying => ("waiting", Self::Waiting { now, due: false, tried: true }),
            Status::Due => ("waiting", Self::Waiting { now, due: true, tried: false }),
            Status::Held => ("waiting", Self::Parked),
            Status::Sending => ("claimed", Self::State("claimed")),
            Status::HandedOff => ("handed_off", Self::State("handed_off")),
            Status::Delivered => ("delivered", Self::State("delivered")),
            Status::Dead => ("dead", Self::State("dead")),
            Status::Cancelled => ("cancelled", Self::State("cancelled")),
        };
        filter.state.is_none_or(|asked| asked == state).then_some(wanted)
    }

    /// The number of the only state that fits, if there is only one.
    fn state(&self) -> Option<i64> {
        match self {
            Self::Any => None,
            Self::State(word) => state_number(word),
            Self::Parked | Self::Waiting { .. } => state_number("waiting"),
        }
    }
}

pub(super) fn counts(db: &Connection, now: Timestamp) -> Result<Vec<Count>, Fault> {
    let mut count = db.prepare_cached(include_str!("sql/counts.sql"))?;
    let mut found = count.query([now.as_ms()])?;
    let mut counts = Vec::new();
    while let Some(row) = found.next()? {
        let reason = row.get::<_, Option<i64>>(3)?.map(dead_reason).transpose()?;
        counts.push(Count {
            route: text(row, 0)?.unwrap_or_default(),
            lane: lane(row.get(1)?)?,
            state: state_word(row.get(2)?)?,
            reason: reason.map(|reason| reason.name()),
            count: number(row, 4)?,
            due: number(row, 5)?,
            parked: number(row, 6)?,
        });
    }
    counts.sort();
    Ok(counts)
}

pub(super) fn audit(db: &Connection, count_max: usize) -> Result<Vec<Audit>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/audit.sql"))?;
    let mut found = get.query([limit(count_max)])?;
    let mut deeds = Vec::new();
    while let Some(row) = found.next()? {
        deeds.push(Audit {
            actor: text(row, 0)?.unwrap_or_default(),
            action: action(text(row, 1)?.unwrap_or_default()),
            subject: text(row, 2)?.unwrap_or_default(),
            at: time(row, 3)?,
        });
    }
    Ok(deeds)
}

/// The word for what somebody did; a later version may know more of them.
fn action(text: Arc<str>) -> &'static str {
    const ACTIONS: [&str; 10] = [
        "retry",
        "cancel",
        "dismiss",
        "restore",
        "pause",
        "resume",
        "hold",
        "release",
        "create_key",
        "revoke_key",
    ];
    ACTIONS.into_iter().find(|word| *word == &*text).unwrap_or("other")
}

fn messages(db: &Connection, sql: &str, params: impl Params) -> Result<Vec<Message>, Fault> {
    let mut get = db.prepare_cached(sql)?;
    let mut found = get.query(params)?;
    let mut names = Names::default();
    let mut messages = Vec::new();
    while let Some(row) = found.next()? {
        messages.push(rows::message(row, &mut names)?);
    }
    Ok(messages)
}
