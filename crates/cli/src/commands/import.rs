//! `redeliver import`: has the messages of a file accepted, a line of JSON each.
//!
//! It can be run again after it was cut short: a line with a key that is known is the message that came first.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::print;
use crate::args::ImportArgs;
use crate::config::problem::counted;
use crate::exit::{FAILED, Told, Usage, print_aside};
use crate::reach::{self, Missing, Problem, Reach, Request};

/// Lines that are sent together, at most.
const BATCH_LINES_MAX: usize = 500;

/// Bytes that are sent together, at most, the last line aside.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Problems of lines that are told one by one; the rest is only counted.
const TOLD_MAX: usize = 100;

pub(super) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    reach::run(import(args))
}

async fn import(args: &ImportArgs) -> anyhow::Result<()> {
    let (mut lines, bytes) = open(&args.file)?;
    let reach = Reach::open(&args.reach, Missing::Make).await?;
    let bar = bar(bytes);
    let mut tally = Tally::default();
    loop {
        let batch = lines.batch().with_context(|| format!("cannot read {}", args.file.display()))?;
        if batch.lines.is_empty() && batch.bytes == 0 {
            break;
        }
        let read = batch.bytes;
        if let Err(error) = send(&reach, batch, args.json, &mut tally, &bar).await {
            bar.abandon();
            return Err(error.context(tally.cut_short()));
        }
        bar.inc(read as u64);
        bar.set_message(tally.show());
    }
    bar.finish_and_clear();
    print_aside(tally.show());
    if reach.is_alone() && tally.accepted > 0 {
        print_aside("no server has this store: the messages go out once `redeliver serve` runs on it");
    }
    if tally.refused > 0 { Err(Told(FAILED).into()) } else { Ok(()) }
}

/// What became of the lines so far.
#[derive(Default)]
struct Tally {
    accepted: usize,
    known: usize,
    refused: usize,
    /// The last line of which something became.
    last: u64,
}

impl Tally {
    fn show(&self) -> String {
        let known = match self.known {
            0 => String::new(),
            known => format!(", {known} known already"),
        };
        format!("{} accepted{known}, {} refused", counted(self.accepted, "message"), self.refused)
    }

    fn cut_short(&self) -> String {
        format!(
            "stopped behind line {} ({}); run it again: what has a key and was accepted is not accepted twice",
            self.last,
            self.show()
        )
    }
}

/// Has a batch accepted, and tells what is wrong with which line.
async fn send(
    reach: &Reach,
    batch: Batch,
    json: bool,
    tally: &mut Tally,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    if batch.lines.is_empty() {
        return Ok(());
    }
    let text = batch.lines.iter().flat_map(|(_, line)| [line.as_slice(), b"\n"]).flatten().copied().collect();
    let results = reach.call(Request::post("/v1/messages").lines(text)).await?.lines()?;
    let answered = results.len();
    for (result, (number, _)) in results.into_iter().zip(&batch.lines) {
        take(result, *number, json, tally, bar)?;
    }
    if answered < batch.lines.len() {
        anyhow::bail!("the server answered for {answered} of {} lines", batch.lines.len());
    }
    Ok(())
}

/// Counts what became of one line, and tells it where it is asked for or something is wrong.
fn take(
    mut result: Value,
    number: u64,
    json: bool,
    tally: &mut Tally,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    match (&result["problem"], result["duplicate"].as_bool()) {
        (Value::Null, Some(true)) => tally.known += 1,
        (Value::Null, _) => tally.accepted += 1,
        (problem, _) => {
            let problem: Problem = serde_json::from_value(problem.clone()).unwrap_or_default();
            // What is wrong with the server is not wrong with the line: the next one would fare no better.
            if matches!(problem.status, 408 | 429 | 500..) {
                return Err(problem.into());
            }
            tally.refused += 1;
            if tally.refused <= TOLD_MAX {
                bar.suspend(|| print_aside(format_args!("line {number}: {problem}")));
            }
        }
    }
    tally.last = number;
    if json {
        result["line"] = json!(number);
        bar.suspend(|| print(&format!("{result}\n")))?;
    }
    Ok(())
}

/// Lines that are sent together, with their numbers in the file.
#[derive(Default)]
struct Batch {
    lines: Vec<(u64, Vec<u8>)>,
    bytes: usize,
}

struct Lines {
    reader: Box<dyn BufRead>,
    read: u64,
}

impl Lines {
    /// The next lines, empty ones left out.
    fn batch(&mut self) -> io::Result<Batch> {
        let mut batch = Batch::default();
        let mut line = Vec::new();
        while batch.lines.len() < BATCH_LINES_MAX && batch.bytes < BATCH_BYTES_MAX {
            line.clear();
            if self.reader.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            self.read += 1;
            batch.bytes += line.len();
            if !line.trim_ascii().is_empty() {
                batch.lines.push((self.read, line.trim_ascii().to_vec()));
            }
        }
        Ok(batch)
    }
}

fn open(path: &Path) -> anyhow::Result<(Lines, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Lines { reader: Box::new(io::stdin().lock()), read: 0 }, None));
    }
    let cannot = |error: io::Error| Usage(format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(cannot)?;
    let bytes = file.metadata().map_err(cannot)?.len();
    Ok((Lines { reader: Box::new(BufReader::new(file)), read: 0 }, Some(bytes)))
}

/// A bar for people; where nobody sees it, it draws nothing.
fn bar(bytes: Option<u64>) -> ProgressBar {
    let (bar, look) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{wide_bar} {percent}%  {msg}  {eta} left"),
        None => (ProgressBar::new_spinner(), "{spinner} {msg}"),
    };
    match ProgressStyle::with_template(look) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
