//! What is done to many messages at once.

use redeliver_core::bulk::Bulk;
use redeliver_core::change::Audit;
use rusqlite::{Connection, Row, params};

use super::apply::write_audit;
use super::errors::Fault;
use super::limit;
use crate::asked::PAST_EVERY_ID;
use crate::encode::{from_text, to_text};

pub(super) fn put(db: &Connection, bulk: &Bulk, audit: Option<&Audit>) -> Result<bool, Fault> {
    let text = to_text("bulk", bulk)?;
    let is_put = match bulk.version {
        0 => db.prepare_cached(include_str!("sql/add_bulk.sql"))?.execute(params![&*bulk.id, text])?,
        version => {
            let mut put = db.prepare_cached(include_str!("sql/put_bulk.sql"))?;
            put.execute(params![&*bulk.id, text, version.cast_signed()])?
        }
    } == 1;
    if let (true, Some(audit)) = (is_put, audit) {
        write_audit(db, audit)?;
    }
    Ok(is_put)
}

pub(super) fn get(db: &Connection, id: &str) -> Result<Option<Bulk>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/bulk.sql"))?;
    let mut found = get.query([id])?;
    found.next()?.map(bulk).transpose()
}

pub(super) fn newest(db: &Connection, after: Option<&str>, count_max: usize) -> Result<Vec<Bulk>, Fault> {
    page(db, include_str!("sql/bulks.sql"), after, count_max)
}

pub(super) fn running(db: &Connection, after: Option<&str>, count_max: usize) -> Result<Vec<Bulk>, Fault> {
    page(db, include_str!("sql/running_bulks.sql"), after, count_max)
}

fn page(db: &Connection, sql: &str, after: Option<&str>, count_max: usize) -> Result<Vec<Bulk>, Fault> {
    let mut get = db.prepare_cached(sql)?;
    let mut found = get.query(params![after.unwrap_or(PAST_EVERY_ID), limit(count_max)])?;
    let mut bulks = Vec::new();
    while let Some(row) = found.next()? {
        bulks.push(bulk(row)?);
    }
    Ok(bulks)
}

fn bulk(row: &Row<'_>) -> Result<Bulk, Fault> {
    let (version, text): (i64, String) = (row.get(0)?, row.get(1)?);
    Ok(Bulk { version: version.cast_unsigned(), ..from_text("bulk", &text)? })
}
