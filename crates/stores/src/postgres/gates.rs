//! Gates that aren't simply open, and the messages that wait for them.

use redeliver_core::gate::{GateKey, GateRecord};
use redeliver_engine::store::GateChange;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::apply::write_audit;
use super::columns::without_nul;
use super::errors::Fault;
use super::limit;
use super::line::Line;
use super::rows::{get, number, text, time};
use crate::encode::{from_text, to_text};

pub(super) async fn parked(db: &Client) -> Result<Vec<GateKey>, Fault> {
    let found = db.query_typed(include_str!("sql/parked.sql"), &[]).await?;
    found.iter().map(|row| Ok(GateKey::from_text(get(row, 0)?))).collect()
}

pub(super) async fn release(db: &Client, gate: &GateKey, count_max: usize) -> Result<usize, Fault> {
    let params = [(&gate.as_str() as _, Type::TEXT), (&limit(count_max) as _, Type::INT8)];
    let released = db.query_typed_one(include_str!("sql/release.sql"), &params).await?;
    Ok(usize::try_from(get::<i64>(&released, 0)?).unwrap_or(0))
}

pub(super) async fn gates(db: &Client) -> Result<Vec<GateRecord>, Fault> {
    let found = db.query_typed(include_str!("sql/gates.sql"), &[]).await?;
    let gate = |row: &tokio_postgres::Row| {
        Ok(GateRecord {
            key: GateKey::from_text(get(row, 0)?),
            version: number(row, 1)?,
            since: time(row, 2)?,
            reason: text(row, 3)?,
            closed: from_text("gate", get(row, 4)?)?,
        })
    };
    found.iter().map(gate).collect()
}

pub(super) async fn put_gate(db: &mut Line<'_>, change: &GateChange) -> Result<bool, Fault> {
    let transaction = db.begin().await?;
    let put = put(transaction.client(), change).await?;
    if let Some(audit) = change.audit.as_ref().filter(|_| put) {
        write_audit(transaction.client(), &[audit]).await?;
    }
    transaction.commit().await?;
    Ok(put)
}

async fn put(db: &Client, change: &GateChange) -> Result<bool, Fault> {
    let key = (&change.key.as_str() as _, Type::TEXT);
    let version = (&(change.expected_version as i64) as _, Type::INT8);
    let Some(record) = &change.record else {
        return Ok(match change.expected_version {
            0 => db.query_typed_opt(include_str!("sql/has_gate.sql"), &[key]).await?.is_none(),
            _ => db.execute_typed(include_str!("sql/open_gate.sql"), &[key, version]).await? == 1,
        });
    };
    let since = (&record.since.as_ms() as _, Type::INT8);
    let reason = (&without_nul(&record.reason) as _, Type::TEXT);
    let closed = (&to_text("gate", &record.closed)? as _, Type::TEXT);
    let written = match change.expected_version {
        0 => {
            let params = [key, since, reason, closed];
            db.execute_typed(include_str!("sql/put_gate_first.sql"), &params).await?
        }
        _ => {
            let params = [key, version, since, reason, closed];
            db.execute_typed(include_str!("sql/put_gate.sql"), &params).await?
        }
    };
    Ok(written == 1)
}
