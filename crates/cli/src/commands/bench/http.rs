//! Accepting over HTTP, from many connections at once, beside the same number of callers within the process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use redeliver_engine::intake::Sink;
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::stop::{Stopper, stop_pair};
use redeliver_server::auth::secret::AdminKey;
use redeliver_server::limits::Limits;
use redeliver_server::metrics::Metrics;
use redeliver_server::{Durability, Server, router, serve};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::carrier::Carrier;
use super::report::{Report, Row};
use super::rig::{BODY_BYTES, Place, Rig, message};
use super::wrk;
use crate::args::BenchArgs;

/// Connections, and callers within the process.
const CONNECTIONS: usize = 64;
pub(super) const KEY: &str = "a-key-for-this-benchmark-only";

/// One by one over HTTP from sixty-four connections, held against sixty-four callers of the engine itself.
pub(super) async fn accept_http(args: &BenchArgs, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let each = args.messages / 5 / CONNECTIONS;
    let without = in_process(each, place).await?;
    let rig = Rig::new(place.fresh().await?, Carrier::default())?;
    let served = Served::begin(&rig).await?;
    let address = served.address;
    let measured = match args.wrk {
        true => wrk::post(address, CONNECTIONS, KEY, &body()).await?,
        false => by_ourselves(address, each, report).await?,
    };
    served.end().await?;
    let Measured { n, rate, times } = measured;
    let rated = Row::rate("accept_http", n, rate, Some(without));
    report.add(Row { p50_ms: times.p50_ms, p99_ms: times.p99_ms, max_ms: times.max_ms, ..rated })
}

/// The whole face of a server over an engine, on a port of its own.
pub(super) struct Served {
    pub(super) address: SocketAddr,
    stopper: Stopper,
    serving: JoinHandle<()>,
}

impl Served {
    pub(super) async fn begin(rig: &Rig) -> anyhow::Result<Self> {
        let key = AdminKey::new(KEY).map_err(|why| anyhow::anyhow!("the benchmark's key: {why}"))?;
        let server = Server::new(
            Arc::clone(&rig.engine),
            Arc::new(MemoryStore::default()),
            Some(key),
            Durability::Full,
            Limits::default(),
            Metrics::install(),
        );
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen on this machine")?;
        let address = listener.local_addr().context("cannot tell on which port")?;
        let (stopper, stop) = stop_pair();
        let limits = Arc::clone(&server.limits);
        let serving = tokio::spawn(serve::serve(listener, router(server), limits, stop));
        Ok(Self { address, stopper, serving })
    }

    pub(super) async fn end(self) -> anyhow::Result<()> {
        self.stopper.stop();
        self.serving.await.context("the server did not end well")
    }
}

/// What a client saw.
pub(super) struct Measured {
    /// Messages that were accepted.
    pub(super) n: usize,
    /// Messages a second.
    pub(super) rate: f64,
    /// How long each took.
    pub(super) times: Row,
}

/// Clients in this process, which has that much less for the server.
async fn by_ourselves(address: SocketAddr, each: usize, report: &Report) -> anyhow::Result<Measured> {
    let bar = report.bar("accept_http", each * CONNECTIONS);
    let begun = Instant::now();
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let bar = bar.clone();
            tokio::spawn(async move { post(address, each, || bar.inc(1)).await })
        })
        .collect();
    let mut times_ms = Vec::new();
    for client in clients {
        times_ms.extend(client.await??);
    }
    let rate = times_ms.len() as f64 / begun.elapsed().as_secs_f64();
    bar.finish_and_clear();
    times_ms.sort_by(f64::total_cmp);
    Ok(Measured { n: times_ms.len(), rate, times: Row::times("accept_http", &times_ms) })
}

/// The engine's own rate, with as many callers.
async fn in_process(each: usize, place: &Place) -> anyhow::Result<f64> {
    let rig = Rig::new(place.fresh().await?, Carrier::default())?;
    let begun = Instant::now();
    let callers: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let engine = Arc::clone(&rig.engine);
            tokio::spawn(async move {
                for _ in 0..each {
                    engine.accept(vec![message(None)]).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok((each * CONNECTIONS) as f64 / begun.elapsed().as_secs_f64())
}

/// Posts so many messages over one connection; how long each took, in milliseconds.
async fn post(address: SocketAddr, count: usize, mut done: impl FnMut()) -> anyhow::Result<Vec<f64>> {
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    stream.get_ref().set_nodelay(true)?;
    let body = body();
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut times_ms = Vec::with_capacity(count);
    for _ in 0..count {
        let asked = Instant::now();
        stream.write_all(request.as_bytes()).await?;
        answered(&mut stream).await?;
        times_ms.push(asked.elapsed().as_secs_f64() * 1_000.0);
        done();
    }
    Ok(times_ms)
}

/// What is posted.
fn body() -> String {
    format!(r#"{{"route":"bench","target":"somewhere","payload":"{}"}}"#, "x".repeat(BODY_BYTES))
}

/// Reads one answer, which must be a 201.
async fn answered(stream: &mut BufReader<TcpStream>) -> anyhow::Result<()> {
    let (mut line, mut first, mut bytes) = (String::new(), true, 0);
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            bail!("the server hung up");
        }
        if first && !line.starts_with("HTTP/1.1 201") {
            bail!("the server said: {}", line.trim());
        }
        first = false;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            bytes = value.trim().parse().context("the server's content-length")?;
        }
    }
    let mut body = vec![0; bytes];
    stream.read_exact(&mut body).await?;
    Ok(())
}
