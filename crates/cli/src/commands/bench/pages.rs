//! How long each page of the console takes to its first byte, over HTTP, with millions of messages behind it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use redeliver_core::accept::NewMessage;
use redeliver_core::bulk::{Bulk, Standing, Total, Which};
use redeliver_core::email::{Email, Mailbox};
use redeliver_core::operate::Action;
use redeliver_core::{Route, Timestamp};
use redeliver_engine::intake::Sink;
use redeliver_engine::store::Filter;
use redeliver_stores::Postgres;
use redeliver_stores::postgres::OpenOptions;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::campaign::enrolled;
use super::carrier::Carrier;
use super::http::{KEY, Served};
use super::report::{Report, Row};
use super::rig::{Opened, Place, Rig, route};

/// How often each page is asked for.
const LOOKS: usize = 20;
/// E-mails among the messages, so that the e-mail queue has something to show.
const EMAILS: usize = 200;

/// Prospects of the campaign that is looked at: more than a forecast within a page takes.
const PROSPECTS: usize = 10_000;

/// Every page, with so many messages that wait for their time and a share that is in each other state.
pub(super) async fn pages(n: usize, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let Place::Postgres(url) = place else { return Ok(()) };
    drop(place.fresh().await?);
    let Some(database) = place.database().await? else { return Ok(()) };
    let store = Arc::new(Postgres::open(url.expose(), OpenOptions::default()).await?);
    let opened = Opened { store: Arc::clone(&store) as _, clock: store.clock() };
    let bar = report.bar("pages: filling", n);
    database.fill(n, opened.clock.now(), false).await?;
    let route = Route { key_retention: None, ..route() };
    let rig = Rig::for_campaigns(opened, Carrier::default(), route, store)?;
    rig.engine.accept((0..EMAILS).map(email).collect::<anyhow::Result<_>>()?).await?;
    let newest = rig.engine.store().list(Filter { limit: 1, ..Filter::default() }).await?.pop();
    let newest = newest.context("there is no message")?.id.to_string();
    bar.finish_and_clear();
    let draft = enrolled(&rig.engine, PROSPECTS, report).await?;
    let launched = enrolled(&rig.engine, PROSPECTS, report).await?;
    rig.engine.launch_campaign(&launched, &"bench".into()).await?;
    let bulk = bulk(rig.engine.clock().now());
    rig.engine.store().put_bulk(bulk.clone(), None).await?;
    database.vacuum().await?;

    let served = Served::begin(&rig).await?;
    let mut reader = Reader::log_in(served.address).await?;
    for path in [
        "/admin",
        "/admin/email-queue",
        "/admin/email-queue?show=failed",
        "/admin/messages",
        "/admin/messages?status=dead",
        "/admin/messages?workspace=rare",
        "/admin/messages?error=451",
        "/admin/messages?recipient=nobody",
        &format!("/admin/messages/{newest}"),
        &format!("/admin/messages/{newest}/edit"),
        &format!("/admin/messages/{newest}/body"),
        "/admin/dead-letters",
        "/admin/bulk",
        &format!("/admin/bulk/{}", bulk.id),
        "/admin/campaigns",
        &format!("/admin/campaigns/{draft}"),
        &format!("/admin/campaigns/{launched}"),
        &format!("/admin/campaigns/{launched}?prospect=prospect-{}", PROSPECTS / 2),
        "/admin/routes",
        "/admin/audit",
        "/admin/keys",
    ] {
        // The first one meets what is not in memory yet.
        reader.get(path).await?;
        let mut times_ms = Vec::with_capacity(LOOKS);
        for _ in 0..LOOKS {
            times_ms.push(reader.get(path).await?);
        }
        times_ms.sort_by(f64::total_cmp);
        let names = [(newest.as_str(), "{id}"), (&*draft, "{draft}"), (&*launched, "{launched}")];
        let shown = names.into_iter().fold(path.to_owned(), |path, (id, name)| path.replace(id, name));
        report.add(Row { n, ..Row::times(&format!("page {shown}"), &times_ms) })?;
    }
    drop(reader);
    served.end().await
}

fn email(number: usize) -> anyhow::Result<NewMessage> {
    let to = Mailbox { address: format!("guest{number}@example.org"), name: None };
    let email = Email {
        to: vec![to],
        subject: format!("Your booking {number}"),
        text: Some("The tour begins at nine.".to_owned()),
        html: Some("<p>The tour begins at nine.</p>".to_owned()),
        ..Email::default()
    };
    let content = email.to_content().map_err(|wrong| anyhow::anyhow!("the benchmark's e-mail: {wrong:?}"))?;
    Ok(NewMessage::new("bench", content))
}

/// Something that is being done to many messages.
fn bulk(now: Timestamp) -> Bulk {
    Bulk {
        id: "b".into(),
        version: 0,
        actor: "bench".into(),
        action: Action::Retry,
        which: Which { error: Some("451".to_owned()), ..Which::default() },
        rate_per_s: 50,
        is_careful: true,
        standing: Standing::Paused,
        why: None,
        done: 111,
        skipped: 3,
        total: Some(Total { count: 10_000, is_least: true }),
        worked_ms: 60_000,
        after: None,
        stage: 2,
        trial: Vec::new(),
        held: None,
        created_at: now,
        updated_at: now,
    }
}

/// Somebody who has logged in.
struct Reader {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    cookie: String,
}

impl Reader {
    async fn log_in(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = BufReader::new(TcpStream::connect(address).await?);
        stream.get_ref().set_nodelay(true)?;
        let mut reader = Self { stream, address, cookie: String::new() };
        let body = format!("key={KEY}");
        let request = format!(
            "POST /login HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/x-www-form-urlencoded\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        reader.ask(&request, "303").await?;
        Ok(reader)
    }

    /// Milliseconds until the first byte of a page.
    async fn get(&mut self, path: &str) -> anyhow::Result<f64> {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\n\r\n", self.address, self.cookie);
        self.ask(&request, "200").await.with_context(|| format!("asked for {path}"))
    }

    /// Says it, reads all of the answer, and tells how long its first byte took.
    async fn ask(&mut self, request: &str, status: &str) -> anyhow::Result<f64> {
        let asked = Instant::now();
        self.stream.write_all(request.as_bytes()).await?;
        if self.stream.fill_buf().await?.is_empty() {
            bail!("the server hung up");
        }
        let first_ms = asked.elapsed().as_secs_f64() * 1_000.0;
        let (mut line, mut bytes, mut is_first) = (String::new(), 0, true);
        loop {
            line.clear();
            if self.stream.read_line(&mut line).await? == 0 {
                bail!("the server hung up");
            }
            if is_first && !line.starts_with(&format!("HTTP/1.1 {status}")) {
                bail!("the server said: {}", line.trim());
            }
            is_first = false;
            if line.trim().is_empty() {
                break;
            }
            match line.split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    bytes = value.trim().parse().context("the server's content-length")?;
                }
                Some((name, value)) if name.eq_ignore_ascii_case("set-cookie") => {
                    value.split(';').next().unwrap_or_default().trim().clone_into(&mut self.cookie);
                }
                _ => {}
            }
        }
        let mut body = vec![0; bytes];
        self.stream.read_exact(&mut body).await?;
        Ok(first_ms)
    }
}
