//! Deletes what has been put away for long enough. Keys outlive their messages.

use std::sync::Arc;

use redeliver_core::Timestamp;
use redeliver_engine::store::{PruneRequest, Pruned};
use rusqlite::{Connection, Row, params};

use super::errors::Fault;
use super::limit;

pub(super) fn prune(db: &Connection, request: &PruneRequest) -> Result<Pruned, Fault> {
    let gone = put_away(db, request)?;
    let key_expires_at = request.key_retention.map(|span| request.now.plus(span));
    let mut delete_message = db.prepare_cached(include_str!("sql/delete_message.sql"))?;
    let mut delete_content = db.prepare_cached(include_str!("sql/delete_content.sql"))?;
    let mut delete_attempts = db.prepare_cached(include_str!("sql/delete_attempts.sql"))?;
    let mut delete_edits = db.prepare_cached(include_str!("sql/delete_edits.sql"))?;
    for message in &gone {
        delete_message.execute([message.number])?;
        delete_content.execute([message.number])?;
        delete_attempts.execute([message.id])?;
        delete_edits.execute([message.id])?;
        end_key(db, message, key_expires_at)?;
    }
    let mut prune_keys = db.prepare_cached(include_str!("sql/prune_keys.sql"))?;
    let keys = prune_keys.execute(params![request.now.as_ms(), limit(request.limit)])?;
    Ok(Pruned { messages: gone.len(), keys })
}

/// What a key remembers of its message, and how to find the key.
struct Gone {
    number: i64,
    id: [u8; 16],
    workspace: Arc<str>,
    key: Option<Arc<str>>,
    state: i64,
    attempts_before: u32,
    attempts: u32,
    generation: u32,
    possible_duplicates: u32,
    fence: i64,
}

fn put_away(db: &Connection, request: &PruneRequest) -> Result<Vec<Gone>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/prune.sql"))?;
    let read = |row: &Row<'_>| {
        Ok(Gone {
            number: row.get(0)?,
            id: row.get(1)?,
            workspace: row.get(2)?,
            key: row.get(3)?,
            state: row.get(4)?,
            attempts_before: row.get(5)?,
            attempts: row.get(6)?,
            generation: row.get(7)?,
            possible_duplicates: row.get(8)?,
            fence: row.get(9)?,
        })
    };
    let found =
        get.query_map(params![&*request.route, request.before.as_ms(), limit(request.limit)], read)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn end_key(db: &Connection, gone: &Gone, expires_at: Option<Timestamp>) -> Result<(), Fault> {
    let Some(key) = &gone.key else { return Ok(()) };
    let mut end = db.prepare_cached(include_str!("sql/end_key.sql"))?;
    end.execute(params![
        &**key,
        &*gone.workspace,
        gone.id,
        gone.state,
        gone.attempts_before,
        gone.attempts,
        gone.generation,
        gone.possible_duplicates,
        gone.fence,
        expires_at.map(Timestamp::as_ms)
    ])?;
    Ok(())
}
