//! Which engines live, and the latest time that any of them saw.

use std::time::Duration;

use redeliver_core::{InstanceId, Timestamp};
use redeliver_engine::store::{About, LEASES_COUNTED_MAX, Living};
use rusqlite::{Connection, OptionalExtension, params};

use super::errors::Fault;
use super::rows::{number, text, time_if_any};

pub(super) fn beat(
    db: &Connection,
    instance: InstanceId,
    now: Timestamp,
    silent_max: Duration,
) -> Result<(), Fault> {
    let mut beat = db.prepare_cached(include_str!("sql/beat.sql"))?;
    beat.execute(params![instance.0 as i64, now.plus(silent_max).as_ms(), now.as_ms()])?;
    db.prepare_cached(include_str!("sql/put_last_time.sql"))?.execute([now.as_ms()])?;
    Ok(())
}

pub(super) fn leave(db: &Connection, instance: InstanceId) -> Result<(), Fault> {
    db.prepare_cached(include_str!("sql/leave.sql"))?.execute([instance.0 as i64])?;
    Ok(())
}

pub(super) fn introduce(db: &Connection, instance: InstanceId, about: &About) -> Result<(), Fault> {
    let mut introduce = db.prepare_cached(include_str!("sql/introduce.sql"))?;
    let started_at = about.started_at.as_ms();
    introduce.execute(params![instance.0 as i64, &*about.name, &*about.version, started_at])?;
    Ok(())
}

/// Those that live, as far as was heard by now, in the order in which they started.
pub(super) fn living(db: &Connection, now: Timestamp) -> Result<Vec<Living>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/living.sql"))?;
    let mut found = get.query(params![now.as_ms(), LEASES_COUNTED_MAX as i64])?;
    let mut living = Vec::new();
    while let Some(row) = found.next()? {
        let said = text(row, 1)?.zip(text(row, 2)?).zip(time_if_any(row, 3)?);
        living.push(Living {
            id: InstanceId(number(row, 0)?),
            about: said.map(|((name, version), started_at)| About { name, version, started_at }),
            beat_at: time_if_any(row, 4)?,
            leases: number(row, 5)?,
        });
    }
    Ok(living)
}

/// How many live, as far as was heard by now.
pub(super) fn alive(db: &Connection, now: Timestamp) -> Result<u64, Fault> {
    let sql = include_str!("sql/instances.sql");
    Ok(db.query_row(sql, [now.as_ms()], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// Forgets the engines of earlier boots, so that their leases lapse at once.
pub(super) fn forget_all(db: &Connection) -> Result<(), Fault> {
    db.execute(include_str!("sql/forget_instances.sql"), [])?;
    Ok(())
}

/// The latest time that was persisted.
pub(super) fn last_time(db: &Connection) -> Result<Option<Timestamp>, Fault> {
    let value = db.query_row(include_str!("sql/last_time.sql"), [], |row| row.get(0)).optional()?;
    Ok(value.map(Timestamp::from_ms))
}
