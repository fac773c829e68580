//! Many messages, a line each, and a result line for each of them. Read as they come, kept in batches, and never more of
//! them in memory than a batch.

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use redeliver_core::accept::NewMessage;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use super::read::{self, HeaderKey};
use super::submit::{Acceptance, Taken, in_trace, take, wrong_route};
use crate::Server;
use crate::auth::Caller;
use crate::limits::within;
use crate::problem::Problem;

/// Lines that are kept in one commit, at most.
const BATCH_LINES_MAX: usize = 500;

/// Bytes of such a batch, at most, its last line aside.
const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// Who sends, what stands for their messages' keys, and the trace that they are part of.
struct Sender {
    caller: Caller,
    header_key: Option<String>,
    traceparent: Option<String>,
}

/// One result line.
#[derive(Serialize)]
struct ResultLine<'a> {
    line: u64,
    #[serde(flatten)]
    answer: &'a Acceptance,
}

/// Answers line by line, as long as lines come.
pub(super) fn answer(
    server: Server,
    caller: Caller,
    header_key: Option<String>,
    traceparent: Option<String>,
    body: Body,
) -> Result<Response, Problem> {
    let room = server.room.take(2 * BATCH_BYTES_MAX)?;
    let lines = Lines {
        chunks: body.into_data_stream(),
        rest: BytesMut::new(),
        searched: 0,
        read: 0,
        ended: false,
        skips: false,
        more_room: None,
    };
    let sender = Sender { caller, header_key, traceparent };
    let state = Some((server, sender, lines, room));
    let results = stream::unfold(state, |state| async {
        let (server, sender, mut lines, room) = state?;
        let batch = lines.batch(&server).await;
        if batch.lines.is_empty() && batch.end.is_none() {
            return None;
        }
        let (written, goes_on) = keep(&server, &sender, batch).await;
        Some((Ok::<_, std::convert::Infallible>(written), goes_on.then_some((server, sender, lines, room))))
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(results)).into_response())
}

/// Has a batch accepted and writes its result lines; whether there is any point in going on.
async fn keep(server: &Server, sender: &Sender, batch: Batch) -> (Bytes, bool) {
    let bytes = batch.lines.iter().map(|(_, line)| line.as_ref().map_or(0, Bytes::len)).sum();
    let read = || read_lines(server, sender, &batch.lines);
    let (answers, news) = server.parsing.run(bytes, read).await;
    let (taken, store_failed) = match take(server, news).await {
        Ok(taken) => (taken, None),
        Err(problem) => (Vec::new(), Some(problem)),
    };
    let mut taken = taken.into_iter().map(|Taken { answer, .. }| answer);
    let mut written = Vec::new();
    for (line, answer) in answers {
        let answer = answer.or_else(|| taken.next()).unwrap_or_else(|| Acceptance::Refused {
            problem: store_failed.clone().unwrap_or_else(Problem::internal),
        });
        write(&mut written, &ResultLine { line, answer: &answer });
    }
    let goes_on = batch.end.is_none() && store_failed.is_none();
    if let Some((line, problem)) = batch.end {
        write(&mut written, &ResultLine { line, answer: &Acceptance::Refused { problem } });
    }
    (written.into(), goes_on)
}

/// The messages of these lines, and for each line what was wrong with it, if anything was.
fn read_lines(
    server: &Server,
    sender: &Sender,
    lines: &[NumberedLine],
) -> (Vec<LineAnswer>, Vec<NewMessage>) {
    let wrong_route = |route: &str| wrong_route(server, route);
    let mut answers = Vec::with_capacity(lines.len());
    let mut news = Vec::with_capacity(lines.len());
    for (number, line) in lines {
        let read = line.as_ref().map_err(Problem::clone).and_then(|line| {
            let text = std::str::from_utf8(line).map_err(|_| Problem::unreadable("it is not UTF-8"))?;
            let header_key = sender.header_key.as_deref();
            let header_key = header_key.map_or(HeaderKey::None, |key| HeaderKey::Many(key, *number));
            read::message(text, header_key, &sender.caller, wrong_route)
        });
        match read {
            Ok(new) => {
                news.push(in_trace(new, sender.traceparent.as_deref()));
                answers.push((*number, None));
            }
            Err(problem) => answers.push((*number, Some(Acceptance::Refused { problem }))),
        }
    }
    (answers, news)
}

fn write(written: &mut Vec<u8>, line: &ResultLine<'_>) {
    // Nothing in a result line can fail to be written as JSON.
    if serde_json::to_writer(&mut *written, line).is_ok() {
        written.push(b'\n');
    }
}

/// Lines of a body, as they come.
struct Lines {
    chunks: axum::body::BodyDataStream,
    rest: BytesMut,
    /// How much of the rest is known to hold no end of a line.
    searched: usize,
    read: u64,
    ended: bool,
    /// Whether this line is too large, so that what comes of it is dropped until it ends.
    skips: bool,
    /// Room for a line that is larger than a batch, while it comes.
    more_room: Option<OwnedSemaphorePermit>,
}

/// A line and its number; what is wrong with it if it can't be read at all.
type NumberedLine = (u64, Result<Bytes, Problem>);

/// What was wrong with the line of this number, if anything was.
type LineAnswer = (u64, Option<Acceptance>);

/// Lines that are kept together, each with its number; and what ended the reading, if something is wrong with it.
#[derive(Default)]
struct Batch {
    lines: Vec<NumberedLine>,
    end: Option<(u64, Problem)>,
}

impl Lines {
    /// The next lines: as many as are there, at least one if there is one.
    async fn batch(&mut self, server: &Server) -> Batch {
        let bytes_max = server.limits.body_bytes_max;
        let mut batch = Batch::default();
        let mut bytes = 0;
        loop {
            while let Some(line) = self.next_line(bytes_max) {
                if !line.as_ref().is_ok_and(|line| line.trim_ascii().is_empty()) {
                    bytes += line.as_ref().map_or(0, Bytes::len);
                    batch.lines.push((self.read, line));
                }
                if batch.lines.len() >= BATCH_LINES_MAX || bytes >= BATCH_BYTES_MAX {
                    return batch;
                }
            }
            if self.ended || !batch.lines.is_empty() {
                return batch;
            }
            if let Err(problem) = self.fill(server).await {
                self.ended = true;
                batch.end = Some((self.read + 1, problem));
                return batch;
            }
        }
    }

    /// A line that has come whole, or the end of one that is too large.
    fn next_line(&mut self, bytes_max: usize) -> Option<Result<Bytes, Problem>> {
        let end = self.rest[self.searched..].iter().position(|byte| *byte == b'\n');
        let line = match end.map(|end| self.searched + end) {
            Some(end) => self.rest.split_to(end + 1).freeze().slice(..end),
            None if self.ended && (self.skips || !self.rest.is_empty()) => self.rest.split().freeze(),
            None => {
                self.skips |= self.rest.len() > bytes_max;
                if self.skips {
                    // Its bytes are given back, too: the room for them is.
                    self.rest = BytesMut::new();
                }
                self.searched = self.rest.len();
                return None;
            }
        };
        self.searched = 0;
        self.read += 1;
        let is_too_large = std::mem::take(&mut self.skips) || line.len() > bytes_max;
        Some(if is_too_large { Err(Problem::too_large(bytes_max)) } else { Ok(line) })
    }

    /// Reads on, until something has come or all is read.
    async fn fill(&mut self, server: &Server) -> Result<(), Problem> {
        let bytes_max = server.limits.body_bytes_max;
        match self.rest.len() > BATCH_BYTES_MAX {
            true if self.more_room.is_none() => self.more_room = Some(server.room.take(2 * bytes_max)?),
            true => {}
            false => self.more_room = None,
        }
        let clock = server.engine.clock().as_ref();
        match within(clock, server.limits.body_timeout, self.chunks.next()).await {
            None => Err(Problem::too_slow()),
            Some(Some(Err(_))) => Err(Problem::unreadable("the body ended before it was whole")),
            Some(Some(Ok(chunk))) => {
                self.rest.extend_from_slice(&chunk);
                Ok(())
            }
            Some(None) => {
                self.ended = true;
                Ok(())
            }
        }
    }
}
