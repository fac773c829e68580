//! Which engines live, and what time it is for all of them.

use std::time::Duration;

use redeliver_core::{InstanceId, Timestamp};
use redeliver_engine::clock::{Clock, FollowedClock};
use redeliver_engine::store::{About, LEASES_COUNTED_MAX, Living};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::columns::without_nul;
use super::errors::Fault;
use super::rows::{get, number, text_if_any, time, time_if_any};

/// How far this machine's time of day may be from the database's before somebody should know.
const SKEW_MS_MAX: i64 = 1_000;

pub(super) async fn beat(
    db: &Client,
    clock: &FollowedClock,
    instance: InstanceId,
    now: Timestamp,
    silent_max: Duration,
) -> Result<(), Fault> {
    let params = [
        (&(instance.0 as i64) as _, Type::INT8),
        (&now.plus(silent_max).as_ms() as _, Type::INT8),
        (&now.as_ms() as _, Type::INT8),
    ];
    let asked_at = clock.uptime();
    let row = db.query_typed_one(include_str!("sql/beat.sql"), &params).await?;
    follow(clock, time(&row, 0)?, asked_at);
    Ok(())
}

/// Sets the clock by the database's.
pub(super) async fn set_clock(db: &Client, clock: &FollowedClock) -> Result<(), Fault> {
    let asked_at = clock.uptime();
    let row = db.query_typed_one(include_str!("sql/clock.sql"), &[]).await?;
    follow(clock, time(&row, 0)?, asked_at);
    Ok(())
}

fn follow(clock: &FollowedClock, said: Timestamp, asked_at: Duration) {
    let ahead_ms = clock.follow(said, asked_at);
    if ahead_ms.abs() > SKEW_MS_MAX {
        tracing::warn!(
            ahead_ms,
            "this machine's clock differs from the database's, which is the one that counts; set it right"
        );
    }
}

pub(super) async fn leave(db: &Client, instance: InstanceId) -> Result<(), Fault> {
    db.execute_typed(include_str!("sql/leave.sql"), &[(&(instance.0 as i64) as _, Type::INT8)]).await?;
    Ok(())
}

pub(super) async fn introduce(db: &Client, instance: InstanceId, about: &About) -> Result<(), Fault> {
    let params = [
        (&(instance.0 as i64) as _, Type::INT8),
        (&without_nul(&about.name) as _, Type::TEXT),
        (&&*about.version as _, Type::TEXT),
        (&about.started_at.as_ms() as _, Type::INT8),
    ];
    db.execute_typed(include_str!("sql/introduce.sql"), &params).await?;
    Ok(())
}

/// Those that live, as far as was heard by now, in the order in which they started.
pub(super) async fn living(db: &Client, now: Timestamp) -> Result<Vec<Living>, Fault> {
    let params = [(&now.as_ms() as _, Type::INT8), (&(LEASES_COUNTED_MAX as i64) as _, Type::INT8)];
    let found = db.query_typed(include_str!("sql/living.sql"), &params).await?;
    let living = |row: &tokio_postgres::Row| {
        let said = text_if_any(row, 1)?.zip(text_if_any(row, 2)?).zip(time_if_any(row, 3)?);
        Ok(Living {
            id: InstanceId(number(row, 0)?),
            about: said.map(|((name, version), started_at)| About { name, version, started_at }),
            beat_at: time_if_any(row, 4)?,
            leases: number(row, 5)?,
        })
    };
    found.iter().map(living).collect()
}

/// How many live, as far as was heard by now.
pub(super) async fn alive(db: &Client, now: Timestamp) -> Result<u64, Fault> {
    let sql = include_str!("sql/instances.sql");
    let row = db.query_typed_one(sql, &[(&now.as_ms() as _, Type::INT8)]).await?;
    Ok(get::<i64>(&row, 0)?.unsigned_abs())
}
