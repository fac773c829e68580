//! Answers questions. Writes nothing.

use redeliver_core::attempt::AttemptRecord;
use redeliver_core::change::Audit;
use redeliver_core::edit::EditRecord;
use redeliver_core::status::Status;
use redeliver_core::{Content, Message, MessageId, Timestamp};
use redeliver_engine::store::{Count, Deed, DeedFilter, Filter};
use rusqlite::{Connection, Params, params};

use super::errors::{Fault, own};
use super::limit;
use super::rows::{self, dead_reason, lane, number, state_word, text, time};
use crate::asked::{Wanted, action};
use crate::encode::from_text;
use crate::standing::Names;

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

pub(super) fn edits(db: &Connection, id: &MessageId) -> Result<Vec<EditRecord>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/edits.sql"))?;
    let mut found = get.query([own(id)])?;
    let mut edits = Vec::new();
    while let Some(row) = found.next()? {
        edits.push(EditRecord {
            actor: text(row, 0)?.unwrap_or_default(),
            at: time(row, 1)?,
            generation: row.get(2)?,
            differences: from_text("edit", &row.get::<_, String>(3)?)?,
        });
    }
    Ok(edits)
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
    let waiting = |now: Timestamp, due: bool, tried: bool| {
        let sql = include_str!("sql/list_waiting.sql");
        messages(db, sql, params![after, workspace, route, limit, lane, now.as_ms(), due, tried])
    };
    // Where few of many are wanted, a small index has them.
    let few = match wanted {
        Wanted::State("claimed") => Some(include_str!("sql/list_claimed.sql")),
        Wanted::State("handed_off") => Some(include_str!("sql/list_handed_off.sql")),
        Wanted::State("dead") if !filter.with_dismissed => Some(include_str!("sql/list_dead.sql")),
        Wanted::Parked => Some(include_str!("sql/list_parked.sql")),
        Wanted::Due { now } => return waiting(now, true, false),
        Wanted::Waiting { now, tried } => return waiting(now, false, tried),
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
            old: [0; 3],
        });
    }
    counts.sort();
    Ok(counts)
}

/// By whatever of it leads to the fewest: a subject has few deeds, a person more, and a word many.
pub(super) fn deeds(db: &Connection, filter: &DeedFilter) -> Result<Vec<Deed>, Fault> {
    let DeedFilter { actor, action, subject, after, limit: most } = filter;
    let (after, most) =
        (after.map_or(i64::MAX, |after| i64::try_from(after).unwrap_or(i64::MAX)), limit(*most));
    match (subject, actor, action) {
        (Some(subject), _, _) => {
            let params = params![after, most, &**subject, actor.as_deref(), action.as_deref()];
            read_deeds(db, include_str!("sql/deeds_of_subject.sql"), params)
        }
        (None, Some(actor), _) => {
            let params = params![after, most, &**actor, action.as_deref()];
            read_deeds(db, include_str!("sql/deeds_of_actor.sql"), params)
        }
        (None, None, Some(action)) => {
            read_deeds(db, include_str!("sql/deeds_of_action.sql"), params![after, most, &**action])
        }
        (None, None, None) => read_deeds(db, include_str!("sql/deeds.sql"), params![after, most]),
    }
}

fn read_deeds(db: &Connection, sql: &str, params: impl Params) -> Result<Vec<Deed>, Fault> {
    let mut get = db.prepare_cached(sql)?;
    let mut found = get.query(params)?;
    let mut deeds = Vec::new();
    while let Some(row) = found.next()? {
        let audit = Audit {
            actor: text(row, 1)?.unwrap_or_default(),
            action: action(&text(row, 2)?.unwrap_or_default()),
            subject: text(row, 3)?.unwrap_or_default(),
            at: time(row, 4)?,
            detail: text(row, 5)?,
        };
        deeds.push(Deed { number: number(row, 0)?, audit });
    }
    Ok(deeds)
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
