//! `redeliver demo`: ten messages on a real engine, before the reader's eyes.

mod cast;
mod story;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use redeliver_core::{Event, Message, MessageId};
use redeliver_engine::Engine;
use redeliver_engine::emit::Observer;
use redeliver_engine::intake::Sink;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::store::{Filter, StoreError};
use tokio::sync::mpsc;

use self::story::Tone;
use super::{print, show};
use crate::args::DemoArgs;
use crate::config::problem::counted;
use crate::config::{Config, Sources, StoreUrl, load};
use crate::drive::drive;
use crate::exit::Usage;
use crate::logging::wants_colour;
use crate::signals::Signals;
use crate::threads;
use crate::wire::wire;

const CONFIG: &str = include_str!("demo.toml");
/// Far longer than the demo takes.
const PATIENCE: Duration = Duration::from_secs(60);
const LESSON: &str = "\
Nothing was lost: every message reached one end, failures were tried again by their policy, and what can never
succeed was given up with a reason. All of it was on disk before it was said.

Next:
  redeliver policy show email --profile email-outbox   when a mail is retried
  redeliver check --config redeliver.example.toml      every setting there is, checked
  make test                                            the proof
";
/// More than there are messages, dead letters included.
const MESSAGES_MAX: usize = 100;

pub(super) fn run(args: DemoArgs) -> anyhow::Result<()> {
    let temporary = tempfile::tempdir().context("cannot make a temporary directory")?;
    let (url, kept) = match args.store {
        Some(url) => (url, true),
        None => (StoreUrl::Sqlite(temporary.path().join("demo.db")), false),
    };
    match &url {
        StoreUrl::Sqlite(path) => refuse_existing(path)?,
        StoreUrl::Postgres(_) => return Err(Usage("the demo keeps its messages in a file".to_owned()).into()),
        StoreUrl::Memory => {}
    }
    let config = config(url)?;
    let runtime = threads::runtime(&config.store.url)?;
    let ended = runtime.block_on(play(&config, kept))?;
    print(&summary(&ended))?;
    print(LESSON)?;
    if kept {
        print(&format!("\nThe messages are still in {}.\n", config.store.url.show()))?;
    }
    Ok(())
}

/// The carriers of the demo deliver nothing, so no message of anybody's may get into their hands.
fn refuse_existing(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        let wrong =
            format!("the demo needs a new file, and {} is there already: name another", path.display());
        return Err(Usage(wrong).into());
    }
    Ok(())
}

/// The demo's own config: the environment has no say in it, or it could name somebody's store.
fn config(url: StoreUrl) -> anyhow::Result<Config> {
    let file = Some(("demo.toml".into(), CONFIG.to_owned()));
    let mut config = load(&Sources { file, ..Sources::default() })?.config;
    config.store.url = url;
    Ok(config)
}

/// A message as it stands at the end, and what it is called.
struct Ended {
    name: String,
    message: Message,
}

/// Plays the whole demo, and gives the messages as they stand at its end.
async fn play(config: &Config, kept: bool) -> anyhow::Result<Vec<Ended>> {
    let mut signals = Signals::listen()?;
    let (teller, news) = mpsc::unbounded_channel();
    let engine = wire(config, Arc::new(Teller(teller))).await?;
    let place = if kept { config.store.url.show() } else { "a temporary SQLite file".to_owned() };
    print(&format!("Ten messages go out by carriers that fail on purpose. They are kept in {place}.\n\n"))?;
    let (stopper, stop) = stop_pair();
    let running = drive(&engine, &stopper, stop);
    tokio::pin!(running);
    tokio::select! {
        ended = &mut running => {
            ended?;
            bail!("the engine ended before the demo");
        }
        told = narrate(&engine, news) => told?,
        signal = signals.next() => bail!("ended by {signal}"),
        () = engine.clock().sleep(PATIENCE) => bail!("the demo did not come to its end"),
    }
    let mut ended = Vec::new();
    for message in all(&engine).await? {
        ended.push(Ended { name: name(&engine, &message.id).await?, message });
    }
    stopper.stop();
    running.await?;
    Ok(ended)
}

/// What the engine has to tell.
enum News {
    Event(Box<Event>),
    StoreFailed(String),
}

/// Hears what happens and passes it on.
struct Teller(mpsc::UnboundedSender<News>);

impl Observer for Teller {
    fn observe(&self, event: &Event) {
        // When nobody listens any more, the demo is over.
        let _ = self.0.send(News::Event(Box::new(event.clone())));
    }

    fn store_failed(&self, doing: &'static str, error: &StoreError) {
        let _ = self.0.send(News::StoreFailed(format!("{doing}: {error}")));
    }
}

/// Has the messages accepted, and tells what happens to them until all have ended.
async fn narrate(engine: &Engine, mut news: mpsc::UnboundedReceiver<News>) -> anyhow::Result<()> {
    let colour = wants_colour(&std::io::stdout());
    let start = engine.clock().now();
    engine.accept(cast::messages(start)).await?;
    while let Some(news) = news.recv().await {
        let event = match news {
            News::Event(event) => event,
            News::StoreFailed(what) => bail!(what),
        };
        let message = find(engine, &event.id).await?;
        let history = engine.store().attempts(event.id.clone()).await?;
        let (tone, words) = story::tell(&event, &message, &history);
        let name = name(engine, &message.id).await?;
        print(&line(event.at.since(start), &name, tone, &words, colour))?;
        if all(engine).await?.iter().all(|message| message.state.ended_at().is_some()) {
            return Ok(());
        }
    }
    Err(anyhow!("the engine stopped telling"))
}

fn line(since: Duration, name: &str, tone: Tone, words: &str, colour: bool) -> String {
    let time = format!("{:>6.2}s", since.as_secs_f64());
    let code = match tone {
        Tone::Plain => "0",
        Tone::Good => "32",
        Tone::Wait => "33",
        Tone::Bad => "31",
    };
    match colour {
        true => format!("\x1b[2m{time}\x1b[0m  {name:<13} \x1b[{code}m{words}\x1b[0m\n"),
        false => format!("{time}  {name:<13} {words}\n"),
    }
}

/// A line for each message, in the order of the cast. Dead letters are only counted.
fn summary(ended: &[Ended]) -> String {
    let (letters, mut cast): (Vec<&Ended>, Vec<&Ended>) =
        ended.iter().partition(|ended| ended.message.is_dead_letter);
    cast.sort_by_key(|ended| cast::place(&ended.name));
    let row = |ended: &&Ended| {
        let (status, why) = story::ending(&ended.message);
        vec![ended.name.clone(), status.to_owned(), ended.message.attempts.to_string(), why]
    };
    let table = show::table(&["message", "status", "tries", "why"], &[2], cast.iter().map(row).collect());
    format!("\n{table}\n{} told of the dead.\n\n", counted(letters.len(), "dead letter"))
}

async fn find(engine: &Engine, id: &MessageId) -> anyhow::Result<Message> {
    engine.store().get(id.clone()).await?.with_context(|| format!("message {id} is gone"))
}

/// What a message is called; a dead letter has the name of the dead.
async fn name(engine: &Engine, id: &MessageId) -> anyhow::Result<String> {
    let content = engine.store().content(id.clone()).await?.unwrap_or_default();
    Ok(content.attributes.get(cast::NAME).cloned().unwrap_or_default())
}

/// All messages, newest first.
async fn all(engine: &Engine) -> Result<Vec<Message>, StoreError> {
    engine.store().list(Filter { limit: MESSAGES_MAX, ..Filter::default() }).await
}
