//! Whom a workspace writes to no more.

use redeliver_core::change::Audit;
use redeliver_core::{Name, Timestamp};
use redeliver_engine::campaigns::Suppression;
use rusqlite::{Connection, params};

use super::apply::write_audit;
use super::errors::Fault;
use super::limit;
use super::rows::{text, time};

pub(super) fn suppress(
    db: &Connection,
    workspace: &str,
    addresses: &[Suppression],
    at: Timestamp,
    audit: Option<&Audit>,
) -> Result<u64, Fault> {
    let mut add = db.prepare_cached(include_str!("sql/suppress.sql"))?;
    let mut new = 0;
    for Suppression { address, reason } in addresses {
        new += add.execute(params![workspace, address, &**reason, at.as_ms()])?;
    }
    if let Some(audit) = audit {
        write_audit(db, audit)?;
    }
    Ok(new as u64)
}

pub(super) fn unsuppress(
    db: &Connection,
    workspace: &str,
    address: &str,
    audit: &Audit,
) -> Result<bool, Fault> {
    let mut delete = db.prepare_cached(include_str!("sql/unsuppress.sql"))?;
    let was_there = delete.execute([workspace, address])? == 1;
    if was_there {
        write_audit(db, audit)?;
    }
    Ok(was_there)
}

pub(super) fn suppressed(db: &Connection, workspace: &str, address: &str) -> Result<Option<Name>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/suppressed.sql"))?;
    let mut found = get.query([workspace, address])?;
    let Some(row) = found.next()? else { return Ok(None) };
    text(row, 0)
}

pub(super) fn suppressions(
    db: &Connection,
    workspace: &str,
    after: &str,
    count_max: usize,
) -> Result<Vec<(Suppression, Timestamp)>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/suppressions.sql"))?;
    let mut found = get.query(params![workspace, after, limit(count_max)])?;
    let mut all = Vec::new();
    while let Some(row) = found.next()? {
        let reason = text(row, 1)?.unwrap_or_default();
        all.push((Suppression { address: row.get(0)?, reason }, time(row, 2)?));
    }
    Ok(all)
}
