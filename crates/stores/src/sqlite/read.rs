//! Answers questions. Writes nothing.

use std::sync::Arc;

use redeliver_core::attempt::AttemptRecord;
use redeliver_core::change::Audit;
use redeliver_core::{Content, Message, MessageId, Timestamp};
use redeliver_engine::store::{Count, Filter};
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
    let limit = limit(filter.limit);
    let state = match filter.state.map(state_number) {
        Some(None) => return Ok(Vec::new()),
        Some(state) => state,
        None => None,
    };
    if let Some(key) = &filter.key {
        let sql = include_str!("sql/list_by_key.sql");
        return messages(
            db,
            sql,
            params![after, workspace, route, state, filter.with_dismissed, limit, &**key],
        );
    }
    // Where few of many are wanted, a small index has them.
    let few = match filter.state {
        Some("claimed") => Some(include_str!("sql/list_claimed.sql")),
        Some("handed_off") => Some(include_str!("sql/list_handed_off.sql")),
        Some("dead") if !filter.with_dismissed => Some(include_str!("sql/list_dead.sql")),
        _ => None,
    };
    match few {
        Some(sql) => messages(db, sql, params![after, workspace, route, limit]),
        None => messages(
            db,
            include_str!("sql/list.sql"),
            params![after, workspace, route, state, filter.with_dismissed, limit],
        ),
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
    const ACTIONS: [&str; 8] =
        ["retry", "cancel", "dismiss", "restore", "pause", "resume", "hold", "release"];
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
