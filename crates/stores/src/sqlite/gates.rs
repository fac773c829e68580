//! Gates that aren't simply open, and the messages that wait for them.

use redeliver_core::gate::{GateKey, GateRecord};
use redeliver_engine::store::GateChange;
use rusqlite::{Connection, params};

use super::apply::write_audit;
use super::errors::Fault;
use super::limit;
use super::rows::{number, text, time};
use crate::encode::{from_text, to_text};

pub(super) fn parked(db: &Connection) -> Result<Vec<GateKey>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/parked.sql"))?;
    let keys = get.query_map([], |row| Ok(GateKey::from_text(row.get_ref(0)?.as_str()?)))?;
    Ok(keys.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn release(db: &Connection, gate: &GateKey, count_max: usize) -> Result<usize, Fault> {
    let mut release = db.prepare_cached(include_str!("sql/release.sql"))?;
    Ok(release.execute(params![gate.as_str(), limit(count_max)])?)
}

pub(super) fn gates(db: &Connection) -> Result<Vec<GateRecord>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/gates.sql"))?;
    let mut found = get.query([])?;
    let mut gates = Vec::new();
    while let Some(row) = found.next()? {
        gates.push(GateRecord {
            key: GateKey::from_text(&text(row, 0)?.unwrap_or_default()),
            version: number(row, 1)?,
            since: time(row, 2)?,
            reason: text(row, 3)?.unwrap_or_default(),
            closed: from_text("gate", &text(row, 4)?.unwrap_or_default())?,
        });
    }
    Ok(gates)
}

pub(super) fn put_gate(db: &Connection, change: &GateChange) -> Result<bool, Fault> {
    let key = change.key.as_str();
    let version = change.expected_version as i64;
    let put = match (&change.record, version) {
        (Some(record), 0) => {
            let closed = to_text("gate", &record.closed)?;
            let mut insert = db.prepare_cached(include_str!("sql/put_gate_first.sql"))?;
            insert.execute(params![key, record.since.as_ms(), &*record.reason, closed])? == 1
        }
        (Some(record), _) => {
            let closed = to_text("gate", &record.closed)?;
            let mut update = db.prepare_cached(include_str!("sql/put_gate.sql"))?;
            update.execute(params![key, version, record.since.as_ms(), &*record.reason, closed])? == 1
        }
        (None, 0) => !db.prepare_cached(include_str!("sql/has_gate.sql"))?.exists([key])?,
        (None, _) => {
            db.prepare_cached(include_str!("sql/open_gate.sql"))?.execute(params![key, version])? == 1
        }
    };
    if let Some(audit) = change.audit.as_ref().filter(|_| put) {
        write_audit(db, audit)?;
    }
    Ok(put)
}
