//! Keys and sessions. A secret never comes this far.

use async_trait::async_trait;
use redeliver_core::Timestamp;
use redeliver_core::change::Audit;
use redeliver_engine::access::{Access, Digest, KeyRecord, SessionRecord};
use redeliver_engine::store::StoreError;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use super::Postgres;
use super::apply::write_audit;
use super::connections::{ask, transact};
use super::errors::Fault;
use super::line::Line;
use super::rows::{digest, get, role, text, text_if_any, time, time_if_any};

#[async_trait]
impl Access for Postgres {
    async fn add_key(&self, key: KeyRecord, audit: Audit) -> Result<bool, StoreError> {
        transact!(self, |db| add_key(db, &key, &audit))
    }

    async fn key(&self, id: &str) -> Result<Option<KeyRecord>, StoreError> {
        ask!(self, |db| find_key(db, id))
    }

    async fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        ask!(self, |db| keys(db))
    }

    async fn revoke_key(&self, id: &str, audit: Audit) -> Result<bool, StoreError> {
        transact!(self, |db| revoke_key(db, id, &audit))
    }

    async fn add_session(&self, session: SessionRecord) -> Result<(), StoreError> {
        ask!(self, |db| add_session(db, &session))
    }

    async fn session(&self, digest: Digest, now: Timestamp) -> Result<Option<SessionRecord>, StoreError> {
        ask!(self, |db| find_session(db, &digest, now))
    }

    async fn end_session(&self, digest: Digest, now: Timestamp) -> Result<(), StoreError> {
        ask!(self, |db| end_session(db, &digest, now))
    }
}

async fn add_key(db: &mut Line<'_>, key: &KeyRecord, audit: &Audit) -> Result<bool, Fault> {
    let params = [
        (&&*key.id as _, Type::TEXT),
        (&&*key.name as _, Type::TEXT),
        (&&key.digest[..] as _, Type::BYTEA),
        (&key.workspace.as_deref() as _, Type::TEXT),
        (&(key.role as i16) as _, Type::INT2),
        (&key.created_at.as_ms() as _, Type::INT8),
        (&key.revoked_at.map(Timestamp::as_ms) as _, Type::INT8),
    ];
    let transaction = db.begin().await?;
    let is_new = transaction.execute_typed(include_str!("sql/add_access_key.sql"), &params).await? == 1;
    if is_new {
        write_audit(transaction.client(), &[audit]).await?;
    }
    transaction.commit().await?;
    Ok(is_new)
}

async fn find_key(db: &Client, id: &str) -> Result<Option<KeyRecord>, Fault> {
    // No key has a NUL in it, and no text of the database can.
    let found = match id.contains('\0') {
        true => None,
        false => db.query_typed_opt(include_str!("sql/access_key.sql"), &[(&id as _, Type::TEXT)]).await?,
    };
    found.as_ref().map(key).transpose()
}

async fn keys(db: &Client) -> Result<Vec<KeyRecord>, Fault> {
    db.query_typed(include_str!("sql/access_keys.sql"), &[]).await?.iter().map(key).collect()
}

async fn revoke_key(db: &mut Line<'_>, id: &str, audit: &Audit) -> Result<bool, Fault> {
    let transaction = db.begin().await?;
    let params = [(&id as _, Type::TEXT), (&audit.at.as_ms() as _, Type::INT8)];
    let revoked = transaction.execute_typed(include_str!("sql/revoke_access_key.sql"), &params).await? == 1;
    if revoked {
        write_audit(transaction.client(), &[audit]).await?;
    }
    transaction.commit().await?;
    Ok(revoked)
}

async fn add_session(db: &Client, session: &SessionRecord) -> Result<(), Fault> {
    let params = [
        (&&session.digest[..] as _, Type::BYTEA),
        (&session.key.as_deref() as _, Type::TEXT),
        (&&*session.name as _, Type::TEXT),
        (&session.workspace.as_deref() as _, Type::TEXT),
        (&(session.role as i16) as _, Type::INT2),
        (&session.created_at.as_ms() as _, Type::INT8),
        (&session.expires_at.as_ms() as _, Type::INT8),
    ];
    db.execute_typed(include_str!("sql/add_session.sql"), &params).await?;
    Ok(())
}

async fn find_session(db: &Client, digest: &Digest, now: Timestamp) -> Result<Option<SessionRecord>, Fault> {
    let params = [(&&digest[..] as _, Type::BYTEA), (&now.as_ms() as _, Type::INT8)];
    let found = db.query_typed_opt(include_str!("sql/session.sql"), &params).await?;
    found.as_ref().map(session).transpose()
}

async fn end_session(db: &Client, digest: &Digest, now: Timestamp) -> Result<(), Fault> {
    let params = [(&&digest[..] as _, Type::BYTEA), (&now.as_ms() as _, Type::INT8)];
    db.execute_typed(include_str!("sql/end_session.sql"), &params).await?;
    Ok(())
}

fn key(row: &Row) -> Result<KeyRecord, Fault> {
    Ok(KeyRecord {
        id: text(row, 0)?,
        name: text(row, 1)?,
        digest: digest(row, 2)?,
        workspace: text_if_any(row, 3)?,
        role: role(get(row, 4)?)?,
        created_at: time(row, 5)?,
        revoked_at: time_if_any(row, 6)?,
    })
}

fn session(row: &Row) -> Result<SessionRecord, Fault> {
    Ok(SessionRecord {
        digest: digest(row, 0)?,
        key: text_if_any(row, 1)?,
        name: text(row, 2)?,
        workspace: text_if_any(row, 3)?,
        role: role(get(row, 4)?)?,
        created_at: time(row, 5)?,
        expires_at: time(row, 6)?,
    })
}
