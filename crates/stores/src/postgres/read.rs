//! Answers questions. Writes nothing.

use std::collections::HashMap;

use redeliver_core::attempt::AttemptRecord;
use redeliver_core::change::Audit;
use redeliver_core::edit::EditRecord;
use redeliver_core::{Content, Message, MessageId, Timestamp};
use redeliver_engine::store::{Count, Deed, DeedFilter};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::columns::Param;
use super::errors::{Fault, own};
use super::insert::content_with_id;
use super::limit;
use super::rows::{self, dead_reason, lane, number, state_word, text, text_if_any, time};
use crate::asked::action;
use crate::encode::from_text;

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

pub(super) async fn edits(db: &Client, id: &MessageId) -> Result<Vec<EditRecord>, Fault> {
    let found = db.query_typed(include_str!("sql/edits.sql"), &[(&own(id) as _, Type::UUID)]).await?;
    let edit = |row: &tokio_postgres::Row| {
        Ok(EditRecord {
            actor: text(row, 0)?,
            at: time(row, 1)?,
            generation: rows::count(row, 2)?,
            differences: from_text("edit", rows::get(row, 3)?)?,
        })
    };
    found.iter().map(edit).collect()
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
            old: [0; 3],
        });
    }
    counts.sort();
    Ok(counts)
}

/// By whatever of it leads to the fewest: a subject has few deeds, a person more, and a word many.
pub(super) async fn deeds(db: &Client, filter: &DeedFilter) -> Result<Vec<Deed>, Fault> {
    let DeedFilter { actor, action, subject, after, limit: most } = filter;
    // No text of the database can have a NUL; what somebody looks for may.
    if [actor, action, subject].into_iter().flatten().any(|text| text.contains('\0')) {
        return Ok(Vec::new());
    }
    let after = after.map_or(i64::MAX, |after| i64::try_from(after).unwrap_or(i64::MAX));
    let most = limit(*most);
    let [actor, action, subject] = [actor, action, subject].map(|text| text.as_deref());
    let (sql, texts): (_, &[&Option<&str>]) = match (subject, actor, action) {
        (Some(_), _, _) => (include_str!("sql/deeds_of_subject.sql"), &[&subject, &actor, &action]),
        (None, Some(_), _) => (include_str!("sql/deeds_of_actor.sql"), &[&actor, &action]),
        (None, None, Some(_)) => (include_str!("sql/deeds_of_action.sql"), &[&action]),
        (None, None, None) => (include_str!("sql/deeds.sql"), &[]),
    };
    let mut params: Vec<Param<'_>> = vec![(&after as _, Type::INT8), (&most as _, Type::INT8)];
    params.extend(texts.iter().map(|text| (*text as _, Type::TEXT)));
    db.query_typed(sql, &params).await?.iter().map(deed).collect()
}

fn deed(row: &Row) -> Result<Deed, Fault> {
    let audit = Audit {
        actor: text(row, 1)?,
        action: action(rows::get(row, 2)?),
        subject: text(row, 3)?,
        at: time(row, 4)?,
        detail: text_if_any(row, 5)?,
    };
    Ok(Deed { number: number(row, 0)?, audit })
}

async fn messages(db: &Client, sql: &str, params: &[Param<'_>]) -> Result<Vec<Message>, Fault> {
    rows::messages(&db.query_typed(sql, params).await?)
}
