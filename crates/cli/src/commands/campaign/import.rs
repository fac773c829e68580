//! `redeliver campaign import`: enrols the prospects of a file, some at a time, and says of every line that was refused why.
//!
//! It can be run again after it was cut short: an id that is known stays as it was.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;

use super::path;
use crate::args::ReachArgs;
use crate::config::problem::counted;
use crate::exit::{FAILED, Told, Usage, print_aside};
use crate::reach::{self, Missing, Reach, Request};

/// Lines that are sent together, at most.
const BATCH_LINES_MAX: usize = 5_000;

/// Bytes that are sent together, at most, the last line aside.
const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Problems of lines that are told one by one; the rest is only counted.
const TOLD_MAX: usize = 100;

#[derive(Deserialize)]
struct Enrolment {
    enrolled: u64,
    known: u64,
    refused: u64,
    errors: Vec<LineProblem>,
}

#[derive(Deserialize)]
struct LineProblem {
    line: u64,
    field: String,
    problem: String,
}

/// What became of the lines so far.
#[derive(Default)]
struct Tally {
    enrolled: u64,
    known: u64,
    refused: u64,
    told: usize,
    /// The last line of which something became.
    last: u64,
}

pub(super) fn run(id: &str, file: &Path, reach: &ReachArgs) -> anyhow::Result<()> {
    reach::run(import(id, file, reach))
}

async fn import(id: &str, file: &Path, reach: &ReachArgs) -> anyhow::Result<()> {
    let (mut pieces, bytes) = Pieces::open(file)?;
    let reach = Reach::open(reach, Missing::Refuse).await?;
    let bar = bar(bytes);
    let mut tally = Tally::default();
    loop {
        let piece = pieces.next().with_context(|| format!("cannot read {}", file.display()))?;
        if piece.lines == 0 {
            break;
        }
        let bytes = piece.bytes;
        if let Err(error) = send(&reach, id, piece, &pieces, &mut tally, &bar).await {
            bar.abandon();
            return Err(error.context(tally.cut_short()));
        }
        bar.inc(bytes as u64);
        bar.set_message(tally.show());
    }
    bar.finish_and_clear();
    print_aside(tally.show());
    if tally.refused > 0 { Err(Told(FAILED).into()) } else { Ok(()) }
}

impl Tally {
    fn show(&self) -> String {
        let known = match self.known {
            0 => String::new(),
            known => format!(", {known} known already"),
        };
        format!("{} enrolled{known}, {} refused", counted(self.enrolled as usize, "prospect"), self.refused)
    }

    fn cut_short(&self) -> String {
        format!(
            "stopped behind line {} ({}); run it again: whoever is enrolled is not enrolled twice",
            self.last,
            self.show()
        )
    }
}

/// Enrols a piece, and tells what is wrong with which line of the file.
async fn send(
    reach: &Reach,
    id: &str,
    piece: Piece,
    pieces: &Pieces,
    tally: &mut Tally,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let request = Request::post(path(id, "/prospects"));
    let request = match &pieces.header {
        Some(header) => request.csv([header.as_slice(), &piece.text].concat()),
        None => request.lines(piece.text),
    };
    let answer: Enrolment = reach.get(request).await?;
    tally.enrolled += answer.enrolled;
    tally.known += answer.known;
    tally.refused += answer.refused;
    // The header was sent with every piece.
    let before = piece.first - 1 - u64::from(pieces.header.is_some());
    for LineProblem { line, field, problem } in answer.errors {
        tally.told += 1;
        if tally.told <= TOLD_MAX {
            bar.suspend(|| print_aside(format_args!("line {}: {field} {problem}", line + before)));
        }
    }
    tally.last = piece.first + piece.lines - 1;
    Ok(())
}

/// A file in pieces, none of which ends within a record.
struct Pieces {
    reader: Box<dyn BufRead>,
    /// The first line of CSV, which names the columns.
    header: Option<Vec<u8>>,
    read: u64,
}

/// Lines that are sent together.
#[derive(Default)]
struct Piece {
    text: Vec<u8>,
    /// The number of the first of them in the file.
    first: u64,
    lines: u64,
    bytes: usize,
}

impl Pieces {
    fn open(path: &Path) -> anyhow::Result<(Self, u64)> {
        let cannot = |error: io::Error| Usage(format!("cannot read {}: {error}", path.display()));
        let file = File::open(path).map_err(cannot)?;
        let bytes = file.metadata().map_err(cannot)?.len();
        let mut pieces = Self { reader: Box::new(BufReader::new(file)), header: None, read: 0 };
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
            let mut header = Vec::new();
            pieces.reader.read_until(b'\n', &mut header).map_err(cannot)?;
            pieces.read = 1;
            pieces.header = Some(header);
        }
        Ok((pieces, bytes))
    }

    /// The next lines. A quoted cell of CSV may go on in the next line.
    fn next(&mut self) -> io::Result<Piece> {
        let mut piece = Piece { first: self.read + 1, ..Piece::default() };
        let mut is_quoted = false;
        loop {
            let is_full = piece.lines as usize >= BATCH_LINES_MAX || piece.text.len() >= BATCH_BYTES_MAX;
            if is_full && !is_quoted {
                return Ok(piece);
            }
            let begun = piece.text.len();
            if self.reader.read_until(b'\n', &mut piece.text)? == 0 {
                return Ok(piece);
            }
            self.read += 1;
            piece.lines += 1;
            let line = &piece.text[begun..];
            piece.bytes += line.len();
            if self.header.is_some() {
                is_quoted ^= line.iter().filter(|byte| **byte == b'"').count() % 2 == 1;
            }
        }
    }
}

/// A bar for people; where nobody sees it, it draws nothing.
fn bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    match ProgressStyle::with_template("{wide_bar} {percent}%  {msg}  {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_never_ends_within_a_quoted_cell() {
        let mut text = String::new();
        (1..BATCH_LINES_MAX).for_each(|n| text.push_str(&format!("{n},a\n")));
        text.push_str("x,\"two\nlines\"\nlast,b\n");
        let reader = Box::new(io::Cursor::new(text.into_bytes()));
        let mut pieces = Pieces { reader, header: Some(b"id,name\n".to_vec()), read: 1 };
        let first = pieces.next().unwrap();
        assert_eq!((first.first, first.lines), (2, BATCH_LINES_MAX as u64 + 1));
        assert!(first.text.ends_with(b"lines\"\n"));
        let second = pieces.next().unwrap();
        assert_eq!((second.first, second.text.as_slice()), (BATCH_LINES_MAX as u64 + 3, &b"last,b\n"[..]));
        assert_eq!(pieces.next().unwrap().lines, 0);
    }
}
