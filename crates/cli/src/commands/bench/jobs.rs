//! The jobs of the benchmark, in the order in which they are measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use redeliver_core::Timestamp;
use redeliver_engine::intake::Sink;
use redeliver_stores::postgres::bare::Bare;

use super::campaign::campaign;
use super::carrier::Carrier;
use super::ceiling::Ceiling;
use super::http::accept_http;
use super::lanes::lanes;
use super::lists::lists;
use super::pages::pages;
use super::report::{Report, Row};
use super::retention::retention;
use super::rig::{BATCH, Place, Rig, message, open};
use crate::args::BenchArgs;

/// Producers that accept one by one.
const PRODUCERS: usize = 16;
/// Messages a second in the lateness job, and for how long.
const LATENESS_PER_S: usize = 250;
const LATENESS_SECONDS: usize = 12;
/// Engines that share a database.
const INSTANCES: usize = 3;
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
    if wanted("drain") || wanted("backlog") || wanted("instances") {
        let drained = drain(args.messages, place, report).await?;
        if wanted("backlog") {
            backlog(args.messages, args.backlog, drained, place, report).await?;
        }
        if wanted("instances") {
            instances(args.messages, drained, place, report).await?;
        }
    }
    if wanted("retry_cycle") {
        retry_cycle(args.messages / 4, place, report).await?;
    }
    if wanted("lateness") {
        lateness(place, report).await?;
    }
    if wanted("lanes") {
        lanes(args.messages / 2, place, report).await?;
    }
    if wanted("lists") || wanted("stats") {
        lists(args.backlog, place, report).await?;
    }
    if wanted("pages") {
        pages(args.backlog, place, report).await?;
    }
    // Only if it is asked for: it is a campaign's figure, and no message's.
    if args.only.iter().any(|only| only == "campaign") {
        campaign(args.backlog, place, report).await?;
    }
    // Only if it is asked for: it takes minutes.
    if args.only.iter().any(|only| only == "retention") {
        retention(args.minutes, place, report).await?;
    }
    Ok(())
}

/// Batches of a thousand from one producer.
async fn accept_batch(n: usize, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let ceiling = match Ceiling::of(place).await? {
        Some(mut bare) => Some(bare.insert(n, BATCH).await?),
        None => None,
    };
    let rig = Rig::new(place.fresh().await?, Carrier::default())?;
    let bar = report.bar("accept_batch", n);
    let now = rig.engine.clock().now();
    let log = Log::of(place).await?;
    let begun = Instant::now();
    rig.fill(n, |_| now, |done| bar.set_position(done as u64)).await?;
    let rate = n as f64 / begun.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let wal_bytes = log.bytes_each(n).await?;
    report.add(Row { wal_bytes, ..Row::rate("accept_batch", n, rate, ceiling) })
}

/// One by one from sixteen producers, held against bare transactions of sixteen.
async fn accept_single(n: usize, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let ceiling = match Ceiling::of(place).await? {
        Some(mut bare) => Some(bare.insert(n, PRODUCERS).await?),
        None => None,
    };
    let rig = Rig::new(place.fresh().await?, Carrier::default())?;
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
    let ceiling = match Ceiling::of(place).await? {
        Some(mut bare) => {
            bare.insert(n, BATCH).await?;
            bare.settle();
            Some(bare.drain(BATCH).await?)
        }
        None => None,
    };
    let rig = Rig::new(place.fresh().await?, Carrier::default())?;
    let now = rig.engine.clock().now();
    rig.fill(n, |_| now, |_| {}).await?;
    let log = Log::of(place).await?;
    let rate = drained("drain", n, &[rig], place, report).await?;
    let wal_bytes = log.bytes_each(n).await?;
    report.add(Row { wal_bytes, ..Row::rate("drain", n, rate, ceiling) })?;
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
    let rig = Rig::new(place.fresh().await?, Carrier::default())?;
    let bar = report.bar("backlog: filling", behind);
    let later = rig.engine.clock().now().plus(Duration::from_secs(7 * 24 * 3_600));
    let due_at = |n: usize| later.plus(Duration::from_millis(n as u64));
    rig.fill(behind, due_at, |done| bar.set_position(done as u64)).await?;
    bar.finish_and_clear();
    let rigs = [rig];
    let rate = filled_and_drained("backlog", n, &rigs, place, report).await?;
    let row = Row::rate("backlog", n, rate, None);
    drop(rigs);
    let rig = Rig::new(place.fresh().await?, Carrier::default())?;
    let again = filled_and_drained("backlog: without", n, &[rig], place, report).await?;
    let ceiling = (without + again) / 2.0;
    report.add(Row { rss_mib: row.rss_mib, ..Row::rate("backlog", n, rate, Some(ceiling)) })
}

/// Three instances on one database, held against one.
async fn instances(n: usize, without: f64, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let Place::Postgres(url) = place else { return Ok(()) };
    let carrier = Arc::new(Carrier::default());
    let mut rigs = vec![Rig::with(place.fresh().await?, Arc::clone(&carrier))?];
    while rigs.len() < INSTANCES {
        rigs.push(Rig::with(open(url).await?, Arc::clone(&carrier))?);
    }
    let rate = filled_and_drained("instances", n, &rigs, place, report).await?;
    drop(rigs);
    let rig = Rig::new(place.fresh().await?, Carrier::default())?;
    let again = filled_and_drained("instances: one", n, &[rig], place, report).await?;
    report.add(Row::rate("instances", n, rate, Some((without + again) / 2.0)))
}

async fn filled_and_drained(
    job: &'static str,
    n: usize,
    rigs: &[Rig],
    place: &Place,
    report: &Report,
) -> anyhow::Result<f64> {
    let now = rigs[0].engine.clock().now();
    rigs[0].fill(n, |_| now, |_| {}).await?;
    drained(job, n, rigs, place, report).await
}

/// How fast engines deliver what is due, between them.
async fn drained(
    job: &'static str,
    n: usize,
    rigs: &[Rig],
    place: &Place,
    report: &Report,
) -> anyhow::Result<f64> {
    place.settle();
    let bar = report.bar(job, n);
    let begun = Instant::now();
    let runs = rigs.iter().map(|rig| rig.run_until_delivered(n, |done| bar.set_position(done as u64)));
    try_join_all(runs).await?;
    let rate = n as f64 / begun.elapsed().as_secs_f64();
    bar.finish_and_clear();
    Ok(rate)
}

/// What a database has written to its log since this was made.
struct Log {
    database: Option<Bare>,
    from: u64,
}

impl Log {
    async fn of(place: &Place) -> anyhow::Result<Self> {
        let database = place.database().await?;
        let from = match &database {
            Some(database) => database.wal_bytes().await?,
            None => 0,
        };
        Ok(Self { database, from })
    }

    /// Bytes for each of so many messages.
    async fn bytes_each(&self, n: usize) -> anyhow::Result<Option<f64>> {
        let Some(database) = &self.database else { return Ok(None) };
        Ok(Some(((database.wal_bytes().await? - self.from) as f64 / n as f64).round()))
    }
}

/// Each message fails twice and is retried at once: three tries and two rows of history for each.
async fn retry_cycle(n: usize, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let rig = Rig::new(place.fresh().await?, Carrier::failing(RETRIES))?;
    let rate = filled_and_drained("retry_cycle", n, &[rig], place, report).await?;
    report.add(Row::rate("retry_cycle", n, rate, None))
}

/// A steady stream of messages, each due at its own time: how late is each carried?
async fn lateness(place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let n = LATENESS_PER_S * LATENESS_SECONDS;
    let rig = Rig::new(place.fresh().await?, Carrier::noting())?;
    // What other jobs have left to write is no part of this one.
    if let Some(database) = place.database().await? {
        database.checkpoint().await?;
    }
    let bar = report.bar("lateness", n);
    let first = rig.engine.clock().now().plus(Duration::from_secs(2));
    let due_at = |n: usize| Timestamp::from_ms(first.as_ms() + (n * 1_000 / LATENESS_PER_S) as i64);
    rig.fill(n, due_at, |_| {}).await?;
    rig.run_until_delivered(n, |done| bar.set_position(done as u64)).await?;
    bar.finish_and_clear();
    report.add(Row::times("lateness", &rig.carrier.late_ms()))
}
