//! The limits of destinations: which slots are taken, and which engine has how many permits.

use redeliver_core::Timestamp;
use redeliver_core::limit::{Grant, Others, Timeline};
use redeliver_engine::store::{LIMITS_KEPT_FOR, LimitRequest};
use tokio_postgres::types::Type;

use super::columns::without_nul;
use super::errors::Fault;
use super::line::Line;
use super::rows::{get, number};

/// The row of the destination is locked from the first statement on: those who ask at once take turns.
pub(super) async fn draw_limit(db: &mut Line<'_>, request: &LimitRequest) -> Result<Grant, Fault> {
    let transaction = db.begin().await?;
    let name = without_nul(&request.destination);
    let destination = || (&name as _, Type::TEXT);
    let instance = request.instance.0 as i64;
    let row = transaction.query_typed_one(include_str!("sql/lock_limit.sql"), &[destination()]).await?;
    let known = Timeline { free_at_us: get(&row, 0)?, gap_us: get(&row, 1)? };
    let mut others = Others::default();
    if request.ask.limits.at_once_max.is_some() {
        let now = request.ask.now.as_ms();
        let params = [destination(), (&instance as _, Type::INT8), (&now as _, Type::INT8)];
        let row = transaction.query_typed_one(include_str!("sql/limit_shares.sql"), &params).await?;
        let count = |column| Ok::<_, Fault>(usize::try_from(number(&row, column)?).unwrap_or(usize::MAX));
        others = Others { held: count(0)?, sharing: count(1)?, wanting: count(2)? };
        if number(&row, 3)? >= request.turn {
            return Ok(Grant::default());
        }
    }
    let mut timeline = known;
    let grant = timeline.grant(&request.ask, others);
    if timeline != known {
        let free_at = (&timeline.free_at_us as _, Type::INT8);
        let params = [destination(), free_at, (&timeline.gap_us as _, Type::INT8)];
        transaction.execute_typed(include_str!("sql/put_limit.sql"), &params).await?;
    }
    if request.ask.limits.at_once_max.is_some() {
        let params = [
            destination(),
            (&instance as _, Type::INT8),
            (&(grant.held as i64) as _, Type::INT8),
            (&(request.turn as i64) as _, Type::INT8),
            (&request.until_at.as_ms() as _, Type::INT8),
            (&request.ask.wants_until(&grant).as_ms() as _, Type::INT8),
        ];
        transaction.execute_typed(include_str!("sql/put_limit_share.sql"), &params).await?;
    }
    transaction.commit().await?;
    Ok(grant)
}

pub(super) async fn forget_limits(db: &mut Line<'_>, now: Timestamp) -> Result<usize, Fault> {
    let transaction = db.begin().await?;
    let before = now.minus(LIMITS_KEPT_FOR).as_ms();
    let params = [(&before as _, Type::INT8), (&now.as_ms() as _, Type::INT8)];
    transaction.execute_typed(include_str!("sql/forget_limit_shares.sql"), &params).await?;
    let before_us = [(&before.saturating_mul(1_000) as _, Type::INT8)];
    let gone = transaction.execute_typed(include_str!("sql/forget_limits.sql"), &before_us).await?;
    transaction.commit().await?;
    Ok(usize::try_from(gone).unwrap_or(usize::MAX))
}
