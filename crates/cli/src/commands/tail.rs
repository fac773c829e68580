//! `redeliver tail`: messages as they come and change, until it is ended.

use std::collections::HashMap;
use std::io::{self, Write};

use comfy_table::Color;
use redeliver_core::Timestamp;
use redeliver_engine::clock::{Clock, WallClock};
use serde_json::Value;

use super::list::{about, cut, when};
use super::times::{Times, now};
use crate::args::TailArgs;
use crate::exit::print_aside;
use crate::logging::wants_colour;
use crate::reach::{self, Message, Missing, Page, Pages, Reach, Request, path_of};
use crate::signals::Signals;

/// How many of the newest messages are followed.
const FOLLOWED_MAX: u64 = 500;

/// Characters of an error, at most.
const TROUBLE_LEN_MAX: usize = 80;

pub(super) fn run(args: &TailArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let mut signals = Signals::listen()?;
        tokio::select! {
            ended = follow(&reach, args) => ended,
            _ = signals.next() => Ok(()),
        }
    })
}

async fn follow(reach: &Reach, args: &TailArgs) -> anyhow::Result<()> {
    let clock = WallClock::new(Timestamp::default());
    let mut known = HashMap::new();
    let first = look(reach, args).await?;
    let begin = first.len().min(args.lines);
    tell(reach, args, first.iter().take(begin).rev()).await?;
    if begin == 0 && !args.output.json {
        print_aside("waiting for messages; Ctrl-C ends");
    }
    remember(&mut known, &first);
    loop {
        clock.sleep(args.every).await;
        let page = look(reach, args).await?;
        let changed = page.iter().filter(|(_, message)| known.get(&message.id) != Some(&mark(message)));
        tell(reach, args, changed.rev()).await?;
        remember(&mut known, &page);
    }
}

async fn look(reach: &Reach, args: &TailArgs) -> anyhow::Result<Page> {
    Ok(Pages::of(&args.filter, FOLLOWED_MAX).next(reach).await?.unwrap_or_default())
}

/// What is worth a line when it changes. That a message has become due is not: nothing happened to it.
type Mark = (String, u32, Timestamp, Option<Timestamp>);

fn mark(message: &Message) -> Mark {
    let status = match message.status.as_str() {
        "scheduled" | "due" | "retrying" => "waiting",
        other => other,
    };
    (status.to_owned(), message.attempts, message.due_at, message.dismissed_at)
}

fn remember(known: &mut HashMap<String, Mark>, page: &Page) {
    known.clear();
    known.extend(page.iter().map(|(_, message)| (message.id.clone(), mark(message))));
}

async fn tell<'a>(
    reach: &Reach,
    args: &TailArgs,
    messages: impl Iterator<Item = &'a (Value, Message)>,
) -> anyhow::Result<()> {
    for (value, message) in messages {
        let line = match args.output.json {
            true => value.to_string(),
            false => {
                let seen = reach.json(Request::get(path_of(&message.id, ""))).await.unwrap_or_default();
                line(message, &about(&seen), args.output.utc)
            }
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{line}")?;
        out.flush()?;
    }
    Ok(())
}

fn line(message: &Message, about: &str, utc: bool) -> String {
    let status = coloured(&message.status);
    let when = match when(message, Times::of(utc)) {
        // What has ended has ended just now, or that is what the time at the front is for.
        _ if message.ended_at.is_some() => String::new(),
        when => when,
    };
    let parts = [about.to_owned(), message.tries(), when, cut(&message.trouble(), TROUBLE_LEN_MAX)];
    let rest: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{}  {}  {status}  {}  {}", now(), message.id, message.route, rest.join("  "))
}

/// A status as wide as the widest, in a colour where colours are seen.
fn coloured(word: &str) -> String {
    let padded = format!("{word:<10}");
    let colour = super::list::colour(word).filter(|_| wants_colour(&io::stdout()));
    let code = match colour {
        Some(Color::Green) => 32,
        Some(Color::Red) => 31,
        Some(Color::Yellow) => 33,
        Some(_) => 36,
        None => return padded,
    };
    format!("\u{1b}[{code}m{padded}\u{1b}[0m")
}
