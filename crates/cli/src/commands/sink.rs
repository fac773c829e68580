//! `redeliver sink`: a mail server on loopback that fails as it is told, and what is asked of one that runs.
//!
//! It prints addresses and subjects: they are of test mails, and seeing them is what it is for.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use redeliver_core::Timestamp;
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_sink::{Control, Listed, Options, Script, Seen, Sink, Stage, Tls};
use serde_json::json;
use tokio::sync::mpsc;

use super::{print, print_json, show};
use crate::args::sink::{SinkArgs, SinkCommand, SinkRunArgs};
use crate::config::problem::counted;
use crate::exit::{Usage, print_aside};
use crate::signals::Signals;

pub(super) fn run(args: SinkArgs) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    match args.command {
        None => runtime.block_on(receive(args.run)),
        Some(command) => runtime.block_on(ask(command)),
    }
}

/// Runs a sink until a signal ends it.
async fn receive(args: SinkRunArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let (failed, mut failure) = mpsc::channel(1);
    let (json, ca) = (args.json, args.ca.clone());
    let clock = Arc::new(WallClock::new(Timestamp::default()));
    let mut options = read_options(args)?;
    let teller = Arc::clone(&clock);
    options.clock = Some(Arc::new(move || teller.now().as_ms()));
    options.watcher = Some(Arc::new(move |seen| {
        let line = if json { json_line(seen, clock.now()) } else { line(seen, clock.now()) };
        if let Err(error) = print_line(&line) {
            // One failure is enough to end; the next ones have nothing to add.
            let _ = failed.try_send(error);
        }
    }));
    let sink = Sink::start(options).await?;
    if let (Some(path), Some(pem)) = (&ca, sink.ca_pem()) {
        write_ca(path, pem)?;
    }
    print_aside(format_args!("sink listening on {}", sink.address()));
    let ended = tokio::select! {
        signal = signals.next() => {
            print_aside(format_args!("sink stopped by {signal}, {} kept", counted(sink.mails().len(), "mail")));
            Ok(())
        }
        Some(error) = failure.recv() => Err(error),
    };
    sink.stop().await;
    ended
}

fn read_options(args: SinkRunArgs) -> Result<Options, Usage> {
    if !args.listen.ip().is_loopback() {
        let at = args.listen;
        return Err(Usage(format!(
            "cannot listen on {at}: a sink listens on loopback only, such as 127.0.0.1"
        )));
    }
    let login = match args.login {
        Some(login) => {
            let (user, password) =
                login.split_once(':').ok_or_else(|| Usage("--login takes USER:PASSWORD".to_owned()))?;
            Some((user.to_owned(), password.to_owned()))
        }
        None => None,
    };
    let tls = match args.tls.as_deref() {
        None => Tls::Off,
        Some("implicit") => Tls::Implicit,
        Some(_) => Tls::StartTls,
    };
    let script = join(args.script);
    let (listen, magic, keep) = (args.listen, !args.no_magic, args.keep);
    Ok(Options { listen, script, magic, keep, tls, login, ..Options::default() })
}

/// Several scripts as one, in their order.
fn join(scripts: Vec<Script>) -> Script {
    Script { rules: scripts.into_iter().flat_map(|script| script.rules).collect() }
}

fn write_ca(path: &Path, pem: &str) -> anyhow::Result<()> {
    std::fs::write(path, pem).with_context(|| format!("cannot write the certificate to {}", path.display()))
}

fn print_line(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// What happened, for people.
fn line(seen: &Seen, now: Timestamp) -> String {
    let clock = time_of_day(now);
    match seen {
        Seen::Kept(mail) => {
            let mail = mail.listed();
            let subject = mail.subject.as_deref().map(|subject| format!(" \"{}\"", plain(subject)));
            format!(
                "{clock}  mail {}: {} to {},{} {} bytes, {}",
                mail.number,
                sender(&mail.from),
                counted(mail.to.len(), "recipient"),
                subject.map(|subject| subject + ",").unwrap_or_default(),
                mail.bytes,
                answer(&mail),
            )
        }
        Seen::Played { stage, from, to, action } => {
            let from = from.as_deref().map(|from| format!(" from {}", sender(from))).unwrap_or_default();
            let to = to.iter().map(|to| plain(to)).collect::<Vec<_>>().join(", ");
            let to = if to.is_empty() { to } else { format!(" to {to}") };
            let at = if *stage == Stage::Kept { "" } else { "at " };
            format!("{clock}  {at}{}{from}{to}: {action}", stage.name())
        }
        Seen::Dropped(number) => format!("{clock}  mail {number} dropped, the oldest: there are too many"),
    }
}

/// The same for programs.
fn json_line(seen: &Seen, now: Timestamp) -> String {
    let now = now.as_ms();
    match seen {
        Seen::Kept(mail) => json!({ "event": "mail.kept", "at": now, "mail": mail.listed() }),
        Seen::Played { stage, from, to, action } => json!({
            "event": "rule.played", "at": now, "stage": stage.name(), "from": from, "to": to, "action": action,
        }),
        Seen::Dropped(number) => json!({ "event": "mail.dropped", "at": now, "number": number }),
    }
    .to_string()
}

/// Does something with a sink that runs.
async fn ask(command: SinkCommand) -> anyhow::Result<()> {
    match command {
        SinkCommand::List { count, at, json } => {
            let mails = Control::connect(at.at).await?.list(count).await?;
            if json { print_json(&mails) } else { print(&table(&mails)) }
        }
        SinkCommand::Show { number, at, json } => {
            let (mail, data) = Control::connect(at.at).await?.show(number).await?;
            if json {
                return print_json(&json!({ "mail": mail, "data": String::from_utf8_lossy(&data) }));
            }
            let mut out = std::io::stdout().lock();
            out.write_all(&data)?;
            Ok(out.flush()?)
        }
        SinkCommand::Tell { script, at } => {
            let told = Control::connect(at.at).await?.tell(&join(script).to_string()).await?;
            print(&format!("{told}\n"))
        }
        SinkCommand::Clear { at } => {
            let told = Control::connect(at.at).await?.clear().await?;
            print(&format!("{told}\n"))
        }
    }
}

fn table(mails: &[Listed]) -> String {
    if mails.is_empty() {
        return "no mails\n".to_owned();
    }
    let rows = mails.iter().map(|mail| {
        vec![
            mail.number.to_string(),
            mail.received_at.map(|at| time_of_day(Timestamp::from_ms(at))).unwrap_or_default(),
            sender(&mail.from),
            recipients(&mail.to),
            plain(mail.subject.as_deref().unwrap_or_default()),
            mail.bytes.to_string(),
            answer(mail).to_owned(),
        ]
    });
    show::table(&["mail", "time", "from", "to", "subject", "bytes", "answer"], &[0, 5], rows.collect())
}

fn recipients(to: &[String]) -> String {
    match to {
        [] => String::new(),
        [only] => plain(only),
        [first, rest @ ..] => format!("{} and {} more", plain(first), rest.len()),
    }
}

fn sender(from: &str) -> String {
    if from.is_empty() { "<>".to_owned() } else { plain(from) }
}

fn answer(mail: &Listed) -> &'static str {
    if mail.answered { "accepted" } else { "kept, but its sender was not told" }
}

/// Somebody else's text, without what a terminal would obey.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Hours, minutes and seconds in UTC.
fn time_of_day(at: Timestamp) -> String {
    at.to_string().get(11..19).unwrap_or_default().to_owned()
}
