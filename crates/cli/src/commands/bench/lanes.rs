//! How late critical messages are while a flood of low ones is due, beside an engine that has nothing else to do.

use std::sync::Arc;
use std::time::Duration;

use redeliver_core::accept::NewMessage;
use redeliver_core::{Lane, Route, Timestamp};
use redeliver_engine::intake::Sink;

use super::carrier::Carrier;
use super::report::{Report, Row};
use super::rig::{BATCH, Place, Rig, message, route};

/// Critical messages a second, and for how long.
const CRITICAL_PER_S: usize = 200;
const CRITICAL_SECONDS: usize = 6;
/// How long each carrying takes, so that permits are short while the flood lasts.
const LATENCY: Duration = Duration::from_millis(10);
/// Messages in the air at once: what a route has that says nothing.
const CONCURRENCY_MAX: usize = 256;

/// The same critical messages twice: alone, then with `flood` low ones due from the start.
pub(super) async fn lanes(flood: usize, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let idle = critical_beside("lanes_idle", 0, place, report).await?;
    let flooded = critical_beside("lanes", flood, place, report).await?;
    let ratio =
        idle.p99_ms.zip(flooded.p99_ms).map(|(idle, flooded)| (flooded / idle * 100.0).round() / 100.0);
    report.add(idle)?;
    report.add(Row { ratio, ..flooded })
}

async fn critical_beside(
    job: &'static str,
    flood: usize,
    place: &Place,
    report: &Report,
) -> anyhow::Result<Row> {
    let n = CRITICAL_PER_S * CRITICAL_SECONDS;
    let carrier = Arc::new(Carrier::noting_only(Lane::Critical, LATENCY));
    let route = Route { concurrency_max: CONCURRENCY_MAX, ..route() };
    let rig = Rig::on(place.fresh().await?, carrier, route)?;
    let bar = report.bar(job, n + flood);
    let of = |lane, due_at| NewMessage { lane, ..message(Some(due_at)) };
    let mut left = flood;
    while left > 0 {
        let size = BATCH.min(left);
        let now = rig.engine.clock().now();
        rig.engine.accept((0..size).map(|_| of(Lane::Low, now)).collect()).await?;
        left -= size;
    }
    place.settle();
    let first = rig.engine.clock().now().plus(Duration::from_secs(1));
    let due_at = |n: usize| Timestamp::from_ms(first.as_ms() + (n * 1_000 / CRITICAL_PER_S) as i64);
    rig.engine.accept((0..n).map(|n| of(Lane::Critical, due_at(n))).collect()).await?;
    rig.run_until_delivered(n + flood, |done| bar.set_position(done as u64)).await?;
    bar.finish_and_clear();
    Ok(Row::times(job, &rig.carrier.late_ms()))
}
