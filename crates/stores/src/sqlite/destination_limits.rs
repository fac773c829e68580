//! The limits of destinations: which slots are taken, and which engine has how many permits.

use redeliver_core::Timestamp;
use redeliver_core::limit::{Grant, Timeline};
use redeliver_engine::store::{LIMITS_KEPT_FOR, LimitRequest};
use rusqlite::{Connection, OptionalExtension, params};

use super::errors::Fault;

pub(super) fn draw_limit(db: &Connection, request: &LimitRequest) -> Result<Grant, Fault> {
    let destination = &*request.destination;
    let instance = request.instance.0 as i64;
    let mut get = db.prepare_cached(include_str!("sql/lock_limit.sql"))?;
    let known = get
        .query_row([destination], |row| Ok(Timeline { free_at_us: row.get(0)?, gap_us: row.get(1)? }))
        .optional()?;
    let mut held_elsewhere = 0;
    if request.ask.limits.at_once_max.is_some() {
        let mut get = db.prepare_cached(include_str!("sql/limit_shares.sql"))?;
        let params = params![destination, instance, request.ask.now.as_ms()];
        let (held, turn): (i64, i64) = get.query_row(params, |row| Ok((row.get(0)?, row.get(1)?)))?;
        held_elsewhere = usize::try_from(held).unwrap_or(0);
        if turn.unsigned_abs() >= request.turn {
            return Ok(Grant::default());
        }
    }
    let mut timeline = known.unwrap_or_default();
    let grant = timeline.grant(&request.ask, held_elsewhere);
    if known != Some(timeline) {
        let mut put = db.prepare_cached(include_str!("sql/put_limit.sql"))?;
        put.execute(params![destination, timeline.free_at_us, timeline.gap_us])?;
    }
    if request.ask.limits.at_once_max.is_some() {
        let mut put = db.prepare_cached(include_str!("sql/put_limit_share.sql"))?;
        let until_at = request.until_at.as_ms();
        put.execute(params![destination, instance, grant.held as i64, request.turn as i64, until_at])?;
    }
    Ok(grant)
}

pub(super) fn forget_limits(db: &Connection, now: Timestamp) -> Result<usize, Fault> {
    let before = now.minus(LIMITS_KEPT_FOR).as_ms();
    let mut forget = db.prepare_cached(include_str!("sql/forget_limit_shares.sql"))?;
    forget.execute(params![before, now.as_ms()])?;
    let mut forget = db.prepare_cached(include_str!("sql/forget_limits.sql"))?;
    Ok(forget.execute([before.saturating_mul(1_000)])?)
}
