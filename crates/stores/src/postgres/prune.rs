//! Deletes what has been put away for long enough, and keeps the tables small. Keys outlive their messages.

use std::sync::atomic::{AtomicI64, Ordering};

use redeliver_core::Timestamp;
use redeliver_engine::store::{PruneRequest, Pruned};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::columns::Param;
use super::errors::Fault;
use super::line::Line;
use super::rows::get;
use super::{limit, partitions};

/// Tallies from which on they are folded, and as many as are folded at once.
const TALLIES_MANY: i64 = 1_000;
const TALLIES_FOLDED_MAX: i64 = 20_000;

/// How often the days of history are looked at.
const DAYS_INTERVAL_MS: i64 = 10 * 60 * 1_000;

/// When the days of history were last looked at, by the time that calls bring with them.
#[derive(Default)]
pub(super) struct LastLook(AtomicI64);

impl LastLook {
    fn is_due(&self, now: Timestamp) -> bool {
        let last = self.0.load(Ordering::Relaxed);
        let is_due = (now.as_ms() - last).abs() >= DAYS_INTERVAL_MS;
        is_due && self.0.compare_exchange(last, now.as_ms(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

pub(super) async fn prune(
    db: &mut Line<'_>,
    request: &PruneRequest,
    last: &LastLook,
) -> Result<Pruned, Fault> {
    let lone = db.lone().await?;
    let messages = prune_messages(&lone, request).await?;
    lone.finish().await?;
    let params = [(&request.now.as_ms() as _, Type::INT8), (&limit(request.limit) as _, Type::INT8)];
    let keys = say(db, include_str!("sql/prune_keys.sql"), &params).await?;
    let params = [(&TALLIES_MANY as _, Type::INT8), (&TALLIES_FOLDED_MAX as _, Type::INT8)];
    say(db, include_str!("sql/fold_tallies.sql"), &params).await?;
    if last.is_due(request.now)
        && let Err(fault) = partitions::keep_days(db, request.now, request.before).await
    {
        // Rows of a day without a table are kept all the same.
        tracing::warn!(error = %fault, "cannot look after the days of history");
    }
    Ok(Pruned { messages, keys: usize::try_from(keys).unwrap_or(usize::MAX) })
}

async fn say(db: &mut Line<'_>, sql: &str, params: &[Param<'_>]) -> Result<u64, Fault> {
    let db = db.lone().await?;
    let count = db.execute_typed(sql, params).await?;
    db.finish().await?;
    Ok(count)
}

async fn prune_messages(db: &Client, request: &PruneRequest) -> Result<usize, Fault> {
    let key_expires_at = request.key_retention.map(|span| request.now.plus(span).as_ms());
    let params = [
        (&&*request.route as _, Type::TEXT),
        (&request.before.as_ms() as _, Type::INT8),
        (&limit(request.limit) as _, Type::INT8),
        (&key_expires_at as _, Type::INT8),
    ];
    let row = db.query_typed_one(include_str!("sql/prune.sql"), &params).await?;
    Ok(usize::try_from(get::<i64>(&row, 0)?).unwrap_or(0))
}
