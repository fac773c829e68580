//! What mails take of quotas and of their sender's time.

use redeliver_core::Timestamp;
use redeliver_core::quota::CounterKey;
use redeliver_engine::campaigns::{ReserveRequest, Reserved, Room};
use rusqlite::{Connection, OptionalExtension, params};

use super::errors::Fault;

pub(super) fn room(db: &Connection, request: &ReserveRequest) -> Result<Room, Fault> {
    Ok(Room { free_at: busy_until(db, request)?, full: first_full(db, request)? })
}

/// When the sender of a mail is free, if that is later.
fn busy_until(db: &Connection, request: &ReserveRequest) -> Result<Option<Timestamp>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/free_at.sql"))?;
    let sender = params![&*request.workspace, &*request.sender];
    let free_at = get.query_row(sender, |row| row.get::<_, i64>(0)).optional()?;
    Ok(free_at.map(Timestamp::from_ms).filter(|free_at| *free_at > request.now))
}

/// The first allowance of a mail that has no room left.
fn first_full(db: &Connection, request: &ReserveRequest) -> Result<Option<usize>, Fault> {
    let mut count = db.prepare_cached(include_str!("sql/quota.sql"))?;
    for (index, allowance) in request.allowances.iter().enumerate() {
        let key = &allowance.key;
        let ((period, newest), (_, oldest)) = (key.bucket.number(), key.bucket.oldest().number());
        let row = params![&*key.workspace, key.whose as u8, &*key.name, period, oldest, newest];
        let (used, before): (i64, u32) = count.query_row(row, |row| Ok((row.get(0)?, row.get(1)?)))?;
        if !allowance.admits(used as u64, before) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

pub(super) fn reserve(db: &Connection, request: &ReserveRequest) -> Result<Reserved, Fault> {
    if let Some(free_at) = busy_until(db, request)? {
        return Ok(Reserved::Busy(free_at));
    }
    if let Some(index) = first_full(db, request)? {
        return Ok(Reserved::Full(index));
    }
    let mut put = db.prepare_cached(include_str!("sql/put_quota.sql"))?;
    for allowance in &request.allowances {
        let key = &allowance.key;
        let (period, newest) = key.bucket.number();
        put.execute(params![&*key.workspace, key.whose as u8, &*key.name, period, newest])?;
    }
    let mut free = db.prepare_cached(include_str!("sql/put_free_at.sql"))?;
    free.execute(params![&*request.workspace, &*request.sender, request.free_at.as_ms()])?;
    Ok(Reserved::Yes)
}

pub(super) fn give_back(db: &Connection, keys: &[CounterKey]) -> Result<(), Fault> {
    let mut update = db.prepare_cached(include_str!("sql/give_back_quota.sql"))?;
    for key in keys {
        let (period, newest) = key.bucket.number();
        update.execute(params![&*key.workspace, key.whose as u8, &*key.name, period, newest])?;
    }
    Ok(())
}
