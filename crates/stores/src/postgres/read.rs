//! Answers questions. Writes nothing.

use std::collections::HashMap;

use redeliver_core::attempt::AttemptRecord;
use redeliver_core::change::Audit;
use redeliver_core::status::Status;
use redeliver_core::{Content, Message, MessageId, Timestamp};
use redeliver_engine::store::{Count, Filter};
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::columns::Param;
use super::errors::{Fault, own};
use super::insert::content_with_id;
use super::limit;
use super::rows::{self, dead_reason, lane, number, state_word, text, time};
use crate::asked::{Wanted, action};

/// Due messages of a lane that are counted one by one. Where there are more, counts say this many.
pub(super) const DUE_COUNTED_MAX: i64 = 10_000;

pub(super) async fn get(db: &Client, id: &MessageId) -> Result<Option<Message>, Fault> {
    Ok(messages(db, include_str!("sql/get.sql"), &[(&own(id), Type::UUID)]).await?.pop())
}

pub(super) async fn get_many(db: &Client, ids: &[Uuid]) -> Result<HashMap<MessageId, Message>, Fault> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let found = messages(db, include_str!("sql/get_many.sql"), &[(&ids, Type::UUID_ARRAY)]).await?;
    Ok(found.into_iter().map(|message| (message.id.clone(), message)).collect())
}

pub(super) async fn content(db: &Client, id: &MessageId) -> Result<Option<Content>, Fault> {
    let found = db.query_typed_opt(include_str!("sql/content.sql"), &[(&own(id) as _, Type::UUID)]).await?;
    found.map(|row| rows::content(&row, 0)).transpose()
}

pub(super) async fn contents(db: &Client, ids: &[Uuid]) -> Result<HashMap<MessageId, Content>, Fault> {
    let found = db.query_typed(include_str!("sql/contents.sql"), &[(&ids as _, Type::UUID_ARRAY)]).await?;
    found.iter().map(content_with_id).collect()
}

pub(super) async fn attempts(db: &Client, id: &MessageId) -> Result<Vec<AttemptRecord>, Fault> {
    let found = db.query_typed(include_str!("sql/attempts.sql"), &[(&own(id) as _, Type::UUID)]).await?;
    found.iter().map(rows::attempt).collect()
}

/// The messages that a question about a time answers: `lapsed`, `overdue`, `expired`.
async fn by_time(db: &Client, sql: &str, now: Timestamp, count_max: usize) -> Result<Vec<Message>, Fault> {
    messages(db, sql, &[(&now.as_ms(), Type::INT8), (&limit(count_max), Type::INT8)]).await
}

pub(super) async fn lapsed(db: &Client, now: Timestamp, count_max: usize) -> Result<Vec<Message>, Fault> {
    by_time(db, include_str!("sql/lapsed.sql"), now, count_max).await
}

pub(super) async fn overdue(db: &Client, now: Timestamp, count_max: usize) -> Result<Vec<Message>, Fault> {
    by_time(db, include_str!("sql/overdue.sql"), now, count_max).await
}

pub(super) async fn expired(db: &Client, now: Timestamp, count_max: usize) -> Result<Vec<Message>, Fault> {
    by_time(db, include_str!("sql/expired.sql"), now, count_max).await
}

pub(super) async fn list(db: &Client, filter: &Filter) -> Result<Vec<Message>, Fault> {
    let Some(wanted) = Wanted::by(filter) else { return Ok(Vec::new()) };
    let after = (&filter.after.as_ref().and_then(own) as _, Type::UUID);
    let workspace = (&filter.workspace.as_deref() as _, Type::TEXT);
    let route = (&filter.route.as_deref() as _, Type::TEXT);
    let lane = (&filter.lane.map(|lane| lane as i16) as _, Type::INT2);
    let limit = (&limit(filter.limit) as _, Type::INT8);
    let state = (&wanted.state() as _, Type::INT2);
    let dismissed = (&filter.with_dismissed as _, Type::BOOL);
    if let Some(key) = &filter.key {
        let key = (&&**key as _, Type::TEXT);
        let params = [after, state, dismissed, limit, lane, workspace, route, key];
        let mut found = messages(db, include_str!("sql/list_by_key.sql"), &params).await?;
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
        Wanted::Due { now } => {
            let params = [after, workspace, route, limit, lane, (&now.as_ms() as _, Type::INT8)];
            return messages(db, include_str!("sql/list_due.sql"), &params).await;
        }
        Wanted::Waiting { now, tried } => {
            let (now, tried) = ((&now.as_ms() as _, Type::INT8), (&tried as _, Type::BOOL));
            let params = [after, workspace, route, limit, lane, now, tried];
            return messages(db, include_str!("sql/list_waiting.sql"), &params).await;
        }
        Wanted::State(_) | Wanted::Any => None,
    };
    if let Some(sql) = few {
        return messages(db, sql, &[after, workspace, route, limit, lane]).await;
    }
    let is_of_any_name = filter.workspace.is_none() && filter.route.is_none();
    if is_of_any_name && matches!(wanted, Wanted::State("delivered" | "cancelled")) {
        return messages(db, include_str!("sql/list_put_away.sql"), &[after, state, limit, lane]).await;
    }
    if is_of_any_name {
        return messages(db, include_str!("sql/list.sql"), &[after, state, dismissed, limit, lane]).await;
    }
    let params = [after, state, dismissed, limit, lane, workspace, route];
    messages(db, include_str!("sql/list_by_name.sql"), &params).await
}

pub(super) async fn counts(db: &Client, now: Timestamp) -> Result<Vec<Count>, Fault> {
    let params = [(&now.as_ms() as _, Type::INT8), (&DUE_COUNTED_MAX as _, Type::INT8)];
    let found = db.query_typed(include_str!("sql/counts.sql"), &params).await?;
    let mut counts = Vec::new();
    for row in &found {
        let reason = rows::get::<Option<i16>>(row, 3)?.map(dead_reason).transpose()?;
        counts.push(Count {
            route: text(row, 0)?,
            lane: lane(rows::get(row, 1)?)?,
            state: state_word(rows::get(row, 2)?)?,
            reason: reason.map(|reason| reason.name()),
            count: number(row, 4)?,
            due: number(row, 5)?,
            parked: number(row, 6)?,
        });
    }
    counts.sort();
    Ok(counts)
}

pub(super) async fn audit(db: &Client, count_max: usize) -> Result<Vec<Audit>, Fault> {
    let params = [(&limit(count_max) as _, Type::INT8)];
    let found = db.query_typed(include_str!("sql/audit.sql"), &params).await?;
    let deed = |row: &tokio_postgres::Row| {
        Ok(Audit {
            actor: text(row, 0)?,
            action: action(rows::get(row, 1)?),
            subject: text(row, 2)?,
            at: time(row, 3)?,
        })
    };
    found.iter().map(deed).collect()
}

async fn messages(db: &Client, sql: &str, params: &[Param<'_>]) -> Result<Vec<Message>, Fault> {
    rows::messages(&db.query_typed(sql, params).await?)
}
