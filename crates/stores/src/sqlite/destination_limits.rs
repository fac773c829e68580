//! The limits of destinations: which slots are taken, and which engine has how many permits.

use redeliver_core::Timestamp;
use redeliver_core::limit::{Grant, Others, Timeline};
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
    let mut others = Others::default();
    if request.ask.limits.at_once_max.is_some() {
        let mut get = db.prepare_cached(include_str!("sql/limit_shares.sql"))?;
        let params = params![destination, instance, request.ask.now.as_ms()];
        let numbers: [i64; 4] =
            get.query_row(params, |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?;
        let [held, sharing, wanting, turn] = numbers.map(|number| usize::try_from(number).unwrap_or(0));
        others = Others { held, sharing, wanting };
        if turn as u64 >= request.turn {
            return Ok(Grant::default());
        }
    }
    let mut timeline = known.unwrap_or_default();
    let grant = timeline.grant(&request.ask, others);
    if known != Some(timeline) {
        let mut put = db.prepare_cached(include_str!("sql/put_limit.sql"))?;
        put.execute(params![destination, timeline.free_at_us, timeline.gap_us])?;
    }
    if request.ask.limits.at_once_max.is_some() {
        let mut put = db.prepare_cached(include_str!("sql/put_limit_share.sql"))?;
        let (held, turn) = (grant.held as i64, request.turn as i64);
        let wants_until = request.ask.wants_until(&grant).as_ms();
        put.execute(params![destination, instance, held, turn, request.until_at.as_ms(), wants_until])?;
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
