//! The jobs of the benchmark, in the order in which they are measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redeliver_core::Timestamp;
use redeliver_engine::intake::Sink;

use super::carrier::Carrier;
use super::ceiling::Ceiling;
use super::http::accept_http;
use super::report::{Report, Row};
use super::rig::{BATCH, Place, Rig, message};
use crate::args::BenchArgs;

/// Producers that accept one by one.
const PRODUCERS: usize = 16;
/// Messages a second in the lateness job, and for how long.
const LATENESS_PER_S: usize = 250;
const LATENESS_SECONDS: usize = 12;
/// Failed tries before the good one in the retry cycle.
const RETRIES: u32 = 2;

/// Runs the jobs that were asked for.
pub(super) async fn run(args: &BenchArgs, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let wanted = |job: &str| args.only.is_empty() || args.only.iter().any(|only| only == job);
    if wanted("accept_batch") {
        accept_batch(args.messages, place, report).await?;
    }
    if wanted("accept_single") {
        accept_single(args.messages / 5, place, report).await?;
    }
    if wanted("accept_http") {
        accept_http(args, place, report).await?;
    }
    if wanted("drain") || wanted("backlog") {
        let drained = drain(args.messages, place, report).await?;
        if wanted("backlog") {
            backlog(args.messages, args.backlog, drained, place, report).await?;
        }
    }
    if wanted("retry_cycle") {
        retry_cycle(args.messages / 4, place, report).await?;
    }
    if wanted("lateness") {
        lateness(place, report).await?;
    }
    Ok(())
}

/// Batches of a thousand from one producer.
async fn accept_batch(n: usize, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let ceiling = Ceiling::of(place)?.map(|bare| bare.insert(n, BATCH)).transpose()?;
    let rig = Rig::new(place.fresh()?, Carrier::default())?;
    let bar = report.bar("accept_batch", n);
    let now = rig.engine.clock().now();
    let begun = Instant::now();
    rig.fill(n, |_| now, |done| bar.set_position(done as u64)).await?;
    let rate = n as f64 / begun.elapsed().as_secs_f64();
    bar.finish_and_clear();
    report.add(Row::rate("accept_batch", n, rate, ceiling))
}

/// One by one from sixteen producers, held against bare transactions of sixteen.
async fn accept_single(n: usize, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let ceiling = Ceiling::of(place)?.map(|bare| bare.insert(n, PRODUCERS)).transpose()?;
    let rig = Rig::new(place.fresh()?, Carrier::default())?;
    let each = n / PRODUCERS;
    let bar = report.bar("accept_single", each * PRODUCERS);
    let begun = Instant::now();
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|_| {
            let (engine, bar) = (Arc::clone(&rig.engine), bar.clone());
            tokio::spawn(async move {
                let mut times_ms = Vec::with_capacity(each);
                for _ in 0..each {
                    let asked = Instant::now();
                    engine.accept(vec![message(None)]).await?;
                    times_ms.push(asked.elapsed().as_secs_f64() * 1_000.0);
                    bar.inc(1);
                }
                anyhow::Ok(times_ms)
            })
        })
        .collect();
    let mut times_ms = Vec::new();
    for producer in producers {
        times_ms.extend(producer.await??);
    }
    let rate = times_ms.len() as f64 / begun.elapsed().as_secs_f64();
    bar.finish_and_clear();
    times_ms.sort_by(f64::total_cmp);
    let times = Row::times("accept_single", &times_ms);
    let rated = Row::rate("accept_single", times_ms.len(), rate, ceiling);
    report.add(Row { p50_ms: times.p50_ms, p99_ms: times.p99_ms, max_ms: times.max_ms, ..rated })
}

/// Everything is due: claim, carry, settle, until nothing is left.
async fn drain(n: usize, place: &Place, report: &mut Report) -> anyhow::Result<f64> {
    let ceiling = match Ceiling::of(place)? {
        Some(bare) => {
            bare.insert(n, BATCH)?;
            bare.settle();
            Some(bare.drain(BATCH)?)
        }
        None => None,
    };
    let rig = Rig::new(place.fresh()?, Carrier::default())?;
    let rate = drained("drain", n, &rig, place, report).await?;
    report.add(Row::rate("drain", n, rate, ceiling))?;
    Ok(rate)
}

/// The same drain, with many messages behind it that are due much later. It is held against the drain without them,
/// made once before and once after, because a small machine is not the same from one minute to the next.
async fn backlog(
    n: usize,
    behind: usize,
    without: f64,
    place: &Place,
    report: &mut Report,
) -> anyhow::Result<()> {
    let rig = Rig::new(place.fresh()?, Carrier::default())?;
    let bar = report.bar("backlog: filling", behind);
    let later = rig.engine.clock().now().plus(Duration::from_secs(7 * 24 * 3_600));
    let due_at = |n: usize| later.plus(Duration::from_millis(n as u64));
    rig.fill(behind, due_at, |done| bar.set_position(done as u64)).await?;
    bar.finish_and_clear();
    let rate = drained("backlog", n, &rig, place, report).await?;
    let row = Row::rate("backlog", n, rate, None);
    drop(rig);
    let rig = Rig::new(place.fresh()?, Carrier::default())?;
    let again = drained("backlog: without", n, &rig, place, report).await?;
    let ceiling = (without + again) / 2.0;
    report.add(Row { rss_mib: row.rss_mib, ..Row::rate("backlog", n, rate, Some(ceiling)) })
}

async fn drained(
    job: &'static str,
    n: usize,
    rig: &Rig,
    place: &Place,
    report: &Report,
) -> anyhow::Result<f64> {
    let now = rig.engine.clock().now();
    rig.fill(n, |_| now, |_| {}).await?;
    place.settle();
    let bar = report.bar(job, n);
    let begun = Instant::now();
    rig.run_until_delivered(n, |done| bar.set_position(done as u64)).await?;
    let rate = n as f64 / begun.elapsed().as_secs_f64();
    bar.finish_and_clear();
    Ok(rate)
}

/// Each message fails twice and is retried at once: three tries and two rows of history for each.
async fn retry_cycle(n: usize, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let rig = Rig::new(place.fresh()?, Carrier::failing(RETRIES))?;
    let rate = drained("retry_cycle", n, &rig, place, report).await?;
    report.add(Row::rate("retry_cycle", n, rate, None))
}

/// A steady stream of messages, each due at its own time: how late is each carried?
async fn lateness(place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let n = LATENESS_PER_S * LATENESS_SECONDS;
    let rig = Rig::new(place.fresh()?, Carrier::noting())?;
    let bar = report.bar("lateness", n);
    let first = rig.engine.clock().now().plus(Duration::from_secs(2));
    let due_at = |n: usize| Timestamp::from_ms(first.as_ms() + (n * 1_000 / LATENESS_PER_S) as i64);
    rig.fill(n, due_at, |_| {}).await?;
    rig.run_until_delivered(n, |done| bar.set_position(done as u64)).await?;
    bar.finish_and_clear();
    report.add(Row::times("lateness", &rig.carrier.late_ms()))
}
