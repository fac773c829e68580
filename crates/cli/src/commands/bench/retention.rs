//! A busy route with a short retention: whether the tables stay as large as they are, or grow without end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use redeliver_core::Route;
use redeliver_core::accept::NewMessage;
use redeliver_engine::Engine;
use redeliver_engine::intake::Sink;
use redeliver_engine::stop::{Stopper, stop_pair};

use super::carrier::Carrier;
use super::report::{Report, Row};
use super::rig::{Place, Rig, message, route};
use crate::commands::print;
use crate::drive::drive;

/// Messages a second, and how many of them one call brings.
const PER_S: usize = 5_000;
const AT_ONCE: usize = 100;
/// How long messages stay after their end, and how long their keys stay after that.
const RETENTION: Duration = Duration::from_secs(60);
/// How often the rows are counted.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// What is there at one moment.
struct Seen {
    accepted: usize,
    delivered: usize,
    rows: u64,
    bytes: u64,
}

/// A steady stream for a number of minutes. Prints the rows every ten seconds; the ratio at the end is the rows of the last
/// look beside those of the look when messages had been deleted for half of the time.
pub(super) async fn retention(minutes: u64, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let route = Route { retention: RETENTION, key_retention: Some(RETENTION), ..route() };
    let rig = Rig::on(place.fresh().await?, Arc::new(Carrier::noting()), route)?;
    let (stopper, stop) = stop_pair();
    let accepted = Arc::new(AtomicUsize::new(0));
    let lasts = Duration::from_secs(60 * minutes);
    let work = async {
        let result = tokio::try_join!(
            produce(&rig.engine, &accepted, lasts),
            watch(&rig, &accepted, lasts, place, report.is_json())
        );
        Stopper::stop(&stopper);
        result
    };
    let (driven, worked) = tokio::join!(drive(&rig.engine, &stopper, stop), work);
    driven?;
    let ((), seen) = worked?;
    let times = Row::times("retention", &rig.carrier.late_ms());
    let n = accepted.load(Ordering::Relaxed);
    let rate = Some((n as f64 / lasts.as_secs_f64()).round());
    let first_pruned = (RETENTION.as_secs() / LOOK_EVERY.as_secs()) as usize;
    let middle = seen.get((first_pruned + seen.len()) / 2).map(|seen| seen.rows as f64);
    let last = seen.last().map(|seen| seen.rows as f64);
    let ratio = middle.zip(last).map(|(middle, last)| (last / middle.max(1.0) * 1_000.0).round() / 1_000.0);
    report.add(Row { n, rate, ratio, ..times })
}

async fn produce(engine: &Engine, accepted: &AtomicUsize, lasts: Duration) -> anyhow::Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < lasts {
        let done = accepted.load(Ordering::Relaxed);
        let due = begun.elapsed().as_secs_f64() * PER_S as f64;
        if (done as f64) > due {
            let early_s = (done as f64 - due) / PER_S as f64;
            engine.clock().sleep(Duration::from_secs_f64(early_s)).await;
            continue;
        }
        let batch = (done..done + AT_ONCE)
            .map(|n| NewMessage { key: Some(format!("message-{n}").into()), ..message(None) })
            .collect();
        engine.accept(batch).await?;
        accepted.fetch_add(AT_ONCE, Ordering::Relaxed);
    }
    Ok(())
}

async fn watch(
    rig: &Rig,
    accepted: &AtomicUsize,
    lasts: Duration,
    place: &Place,
    is_json: bool,
) -> anyhow::Result<Vec<Seen>> {
    let begun = Instant::now();
    let mut all: Vec<Seen> = Vec::new();
    while begun.elapsed() < lasts {
        let next = LOOK_EVERY * (all.len() as u32 + 1);
        rig.engine.clock().sleep(next.saturating_sub(begun.elapsed())).await;
        let counts = rig.engine.store().counts(rig.engine.clock().now()).await?;
        let seen = Seen {
            accepted: accepted.load(Ordering::Relaxed),
            delivered: rig.carrier.delivered(),
            rows: counts.iter().map(|count| count.count).sum(),
            bytes: bytes(place).await?,
        };
        let (at_s, mib) = (begun.elapsed().as_secs(), seen.bytes as f64 / f64::from(1 << 20));
        let Seen { accepted, delivered, rows, .. } = seen;
        if is_json {
            print(&format!(
                "{{\"job\":\"retention\",\"at_s\":{at_s},\"accepted\":{accepted},\"delivered\":{delivered},\
                 \"rows\":{rows},\"mib\":{mib:.1}}}\n"
            ))?;
        } else {
            print(&format!(
                "{at_s:>5} s: {accepted:>9} accepted, {delivered:>9} delivered, {rows:>8} rows, {mib:>8.1} MiB\n"
            ))?;
        }
        all.push(seen);
    }
    Ok(all)
}

/// How large the store is.
async fn bytes(place: &Place) -> anyhow::Result<u64> {
    let file = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    Ok(match place {
        Place::Memory => 0,
        Place::Sqlite(path) => file(path),
        Place::Postgres(_) => match place.database().await? {
            Some(database) => database.database_bytes().await?,
            None => 0,
        },
    })
}
