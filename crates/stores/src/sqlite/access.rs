//! Keys and sessions. A secret never comes this far.

use std::sync::Arc;

use async_trait::async_trait;
use redeliver_core::Timestamp;
use redeliver_core::change::Audit;
use redeliver_engine::access::{Access, Digest, KeyRecord, Role, SessionRecord};
use redeliver_engine::store::StoreError;
use rusqlite::{Connection, Row, params};

use super::apply::write_audit;
use super::errors::Fault;
use super::rows::{digest, role, text, time, time_if_any};
use super::{Runs, SqliteOn};

#[async_trait]
impl<R: Runs> Access for SqliteOn<R> {
    async fn add_key(&self, key: KeyRecord, audit: Audit) -> Result<bool, StoreError> {
        self.runs.write(1, move |db| add_key(db, &key, &audit)).await
    }

    async fn key(&self, id: &str) -> Result<Option<KeyRecord>, StoreError> {
        let id = id.to_owned();
        self.runs.read(move |db| find_key(db, &id)).await
    }

    async fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.runs.read(keys).await
    }

    async fn revoke_key(&self, id: &str, audit: Audit) -> Result<bool, StoreError> {
        let id = id.to_owned();
        self.runs.write(1, move |db| revoke_key(db, &id, &audit)).await
    }

    async fn add_session(&self, session: SessionRecord) -> Result<(), StoreError> {
        self.runs.write(1, move |db| add_session(db, &session)).await
    }

    async fn session(&self, digest: Digest, now: Timestamp) -> Result<Option<SessionRecord>, StoreError> {
        self.runs.read(move |db| find_session(db, &digest, now)).await
    }

    async fn end_session(&self, digest: Digest, now: Timestamp) -> Result<(), StoreError> {
        self.runs.write(1, move |db| end_session(db, &digest, now)).await
    }
}

fn add_key(db: &Connection, key: &KeyRecord, audit: &Audit) -> Result<bool, Fault> {
    let mut insert = db.prepare_cached(include_str!("sql/add_access_key.sql"))?;
    let is_new = insert.execute(params![
        &*key.id,
        &*key.name,
        key.digest,
        key.workspace.as_deref(),
        key.role as u8,
        key.created_at.as_ms(),
        key.revoked_at.map(Timestamp::as_ms),
    ])? == 1;
    if is_new {
        write_audit(db, audit)?;
    }
    Ok(is_new)
}

fn find_key(db: &Connection, id: &str) -> Result<Option<KeyRecord>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/access_key.sql"))?;
    let mut found = get.query([id])?;
    found.next()?.map(key).transpose()
}

fn keys(db: &Connection) -> Result<Vec<KeyRecord>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/access_keys.sql"))?;
    let mut found = get.query([])?;
    let mut keys = Vec::new();
    while let Some(row) = found.next()? {
        keys.push(key(row)?);
    }
    Ok(keys)
}

fn revoke_key(db: &Connection, id: &str, audit: &Audit) -> Result<bool, Fault> {
    let mut update = db.prepare_cached(include_str!("sql/revoke_access_key.sql"))?;
    let revoked = update.execute(params![id, audit.at.as_ms()])? == 1;
    if revoked {
        write_audit(db, audit)?;
    }
    Ok(revoked)
}

fn add_session(db: &Connection, session: &SessionRecord) -> Result<(), Fault> {
    let mut insert = db.prepare_cached(include_str!("sql/add_session.sql"))?;
    insert.execute(params![
        session.digest,
        session.key.as_deref(),
        &*session.name,
        session.workspace.as_deref(),
        session.role as u8,
        session.created_at.as_ms(),
        session.expires_at.as_ms(),
    ])?;
    Ok(())
}

fn find_session(db: &Connection, digest: &Digest, now: Timestamp) -> Result<Option<SessionRecord>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/session.sql"))?;
    let mut found = get.query(params![digest, now.as_ms()])?;
    found.next()?.map(session).transpose()
}

fn end_session(db: &Connection, digest: &Digest, now: Timestamp) -> Result<(), Fault> {
    let mut delete = db.prepare_cached(include_str!("sql/end_session.sql"))?;
    delete.execute(params![digest, now.as_ms()])?;
    Ok(())
}

fn key(row: &Row<'_>) -> Result<KeyRecord, Fault> {
    Ok(KeyRecord {
        id: word(row, 0)?,
        name: word(row, 1)?,
        digest: digest(row, 2)?,
        workspace: text(row, 3)?,
        role: role_of(row, 4)?,
        created_at: time(row, 5)?,
        revoked_at: time_if_any(row, 6)?,
    })
}

fn session(row: &Row<'_>) -> Result<SessionRecord, Fault> {
    Ok(SessionRecord {
        digest: digest(row, 0)?,
        key: text(row, 1)?,
        name: word(row, 2)?,
        workspace: text(row, 3)?,
        role: role_of(row, 4)?,
        created_at: time(row, 5)?,
        expires_at: time(row, 6)?,
    })
}

fn word(row: &Row<'_>, column: usize) -> Result<Arc<str>, Fault> {
    Ok(text(row, column)?.unwrap_or_default())
}

fn role_of(row: &Row<'_>, column: usize) -> Result<Role, Fault> {
    role(row.get(column)?)
}
