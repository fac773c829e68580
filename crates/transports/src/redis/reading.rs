//! Reads a stream as a member of a group: a batch at a time to whoever takes it, acknowledged when it is kept.
//!
//! What a member was given and never acknowledged comes to it again when it is back, or to another once nobody has heard of
//! it for a while. Knows nothing of what the entries mean.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, Value, cmd};
use async_trait::async_trait;
use bytes::Bytes;
use redeliver_core::Name;
use redeliver_engine::clock::Clock;
use redeliver_engine::stop::Stop;

use super::config::ServerConfig;
use super::dial::{Dial, text};
use super::line::{Line, Trouble};
use super::ways::Ways;

/// How a stream is read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadingConfig {
    /// The server.
    pub server: ServerConfig,
    /// The stream.
    pub stream: String,
    /// The group that shares it: every instance of ours is a member.
    pub group: String,
    /// What this member is called. No two that live at once have the same.
    pub consumer: String,
    /// Entries that are read, and acknowledged, at once.
    pub batch_max: usize,
    /// Bytes that are read at once, about: nobody knows how large entries are before they are read.
    pub in_hand_bytes_max: usize,
    /// How long nobody may have heard of a member before others take what it was given.
    pub claim_after: Duration,
    /// Whether what was kept is deleted from the stream.
    pub delete: bool,
}

impl Default for ReadingConfig {
    fn default() -> Self {
        Self {
            server: ServerConfig::default(),
            stream: String::new(),
            group: "redeliver".to_owned(),
            consumer: "redeliver".to_owned(),
            batch_max: 1_000,
            in_hand_bytes_max: 64 * 1_048_576,
            claim_after: Duration::from_secs(60),
            delete: false,
        }
    }
}

/// One entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it stands, as the server says.
    pub id: String,
    /// Its fields in their order.
    pub fields: Vec<(Bytes, Bytes)>,
}

impl Entry {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&Bytes> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// Takes what was read.
#[async_trait]
pub trait Taker: Send + Sync {
    /// Takes a batch, and ends only when all of it is kept.
    async fn take(&self, entries: Vec<Entry>);
}

/// How long a server is left alone after it failed; doubles with each failure.
const AWAY_WAIT: Duration = Duration::from_millis(100);
/// The longest that it is left alone.
const AWAY_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long the server waits for something to come before it says that nothing did.
const BLOCK: Duration = Duration::from_secs(1);
/// How often, at most, it is looked for what others have left behind.
const CLAIM_INTERVAL_MIN: Duration = Duration::from_millis(500);

/// Entries that are asked for before anybody knows how large they are.
const FIRST_BATCH_MAX: usize = 16;
/// How many times more are asked for than came before.
const GROWTH_MAX: usize = 8;

/// What has not been given to anybody yet.
const NEW: &str = ">";
/// The beginning of what this member was given and has not acknowledged.
const OWN: &str = "0";

/// Reads one stream.
pub struct Reading {
    name: Name,
    config: ReadingConfig,
    clock: Arc<dyn Clock>,
    dial: Option<Arc<Dial>>,
}

impl Reading {
    /// Of the stream of this config. Nothing is connected yet; an error says what is wrong with the config.
    pub fn new(name: impl Into<Name>, config: ReadingConfig, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let dial = Dial::new(&config.server)?.map(Arc::new);
        Ok(Self { name: name.into(), config, clock, dial })
    }

    /// Reads until told to stop.
    pub async fn run(&self, taker: &dyn Taker, mut stop: Stop) {
        let Some(dial) = &self.dial else {
            tracing::warn!(event = "intake.idle", intake = %self.name, "no server is configured: nothing comes");
            stop.stopped().await;
            return;
        };
        let mut failures = 0;
        while !stop.is_stopped() {
            let trouble = tokio::select! {
                biased;
                // What was not acknowledged comes again.
                () = stop.stopped() => break,
                read = self.read(dial, taker, &mut failures) => match read {
                    Ok(never) => match never {},
                    Err(trouble) => trouble,
                },
            };
            let wait = AWAY_WAIT.saturating_mul(1 << failures.min(10)).min(AWAY_WAIT_MAX);
            failures += 1;
            tracing::warn!(
                event = "intake.interrupted", intake = %self.name,
                "the stream cannot be read, trying again: {trouble}"
            );
            tokio::select! {
                biased;
                () = stop.stopped() => {}
                () = self.clock.sleep(wait) => {}
            }
        }
    }

    /// Reads until the server, or the group, is gone.
    async fn read(
        &self,
        dial: &Arc<Dial>,
        taker: &dyn Taker,
        failures: &mut u32,
    ) -> Result<Infallible, Trouble> {
        // A connection of its own each time: what an earlier one was still waiting for is never given to nobody.
        let ways = Ways::new(Arc::clone(dial), Arc::clone(&self.clock));
        let line = ways.to(&self.config.stream).await.map_err(|no_way| no_way.trouble)?;
        self.make_group(&line).await?;
        *failures = 0;
        tracing::info!(
            event = "intake.started", intake = %self.name,
            "taking what comes to the stream {} of {}", self.config.stream, dial.name()
        );
        let mut count = self.config.batch_max.min(FIRST_BATCH_MAX);
        while let Some(entries) = self.next(&line, OWN, count).await?.filter(|entries| !entries.is_empty()) {
            count = self.count_after(&entries);
            self.hand_over(&line, taker, entries).await?;
        }
        let interval = (self.config.claim_after / 2).max(CLAIM_INTERVAL_MIN);
        let mut claim_at = Duration::ZERO;
        loop {
            if self.clock.uptime() >= claim_at {
                count = self.claim(&line, taker, count).await?;
                claim_at = self.clock.uptime() + interval;
            }
            if let Some(entries) = self.next(&line, NEW, count).await? {
                count = self.count_after(&entries);
                self.hand_over(&line, taker, entries).await?;
            }
        }
    }

    /// Makes the group, and the stream, where they are missing. It begins with whatever the stream has: nothing is skipped.
    async fn make_group(&self, line: &Line) -> Result<(), Trouble> {
        let mut create = cmd("XGROUP");
        create.arg("CREATE").arg(&self.config.stream).arg(&self.config.group).arg("0").arg("MKSTREAM");
        match self.ask(line, &create).await {
            Err(trouble) if trouble.code() != Some("BUSYGROUP") => Err(trouble),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// How many entries are asked for after these.
    fn count_after(&self, given: &[Given]) -> usize {
        let bytes = given.iter().flat_map(|given| given.fields.iter().flatten());
        let bytes = bytes.map(|(name, value)| name.len() + value.len()).sum();
        count_after(given.len(), bytes, self.config.batch_max, self.config.in_hand_bytes_max)
    }

    /// The next batch of so many, if the server has one for us in good time.
    async fn next(&self, line: &Line, from: &str, count: usize) -> Result<Option<Vec<Given>>, Trouble> {
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(&self.config.group).arg(&self.config.consumer);
        read.arg("COUNT").arg(count);
        read.arg("BLOCK").arg(BLOCK.as_millis() as u64);
        read.arg("STREAMS").arg(&self.config.stream).arg(from);
        match self.ask(line, &read).await? {
            Value::Nil => Ok(None),
            answer => read_streams(&answer).map(Some).ok_or_else(unread),
        }
    }

    /// Takes over what members have left behind that nobody has heard of for too long, so many at a time. Says how many are
    /// asked for next.
    async fn claim(&self, line: &Line, taker: &dyn Taker, mut count: usize) -> Result<usize, Trouble> {
        let mut from = "0-0".to_owned();
        loop {
            let mut claim = cmd("XAUTOCLAIM");
            claim.arg(&self.config.stream).arg(&self.config.group).arg(&self.config.consumer);
            claim.arg(self.config.claim_after.as_millis() as u64).arg(&from);
            claim.arg("COUNT").arg(count);
            let (next, entries) = read_claimed(&self.ask(line, &claim).await?).ok_or_else(unread)?;
            if !entries.is_empty() {
                count = self.count_after(&entries);
                tracing::info!(
                    event = "intake.claimed", intake = %self.name,
                    "taking over {} entries that another member left behind", entries.len()
                );
                self.hand_over(line, taker, entries).await?;
            }
            if next == "0-0" {
                return Ok(count);
            }
            from = next;
        }
    }

    /// Brings a batch to whoever takes it, and acknowledges it then. Meanwhile nothing more is read.
    async fn hand_over(&self, line: &Line, taker: &dyn Taker, given: Vec<Given>) -> Result<(), Trouble> {
        let ids: Vec<String> = given.iter().map(|given| given.id.clone()).collect();
        // Entries that were deleted while they waited have no fields any more.
        let entries: Vec<Entry> = given
            .into_iter()
            .filter_map(|given| Some(Entry { id: given.id, fields: given.fields? }))
            .collect();
        if !entries.is_empty() {
            taker.take(entries).await;
        }
        self.ask(line, cmd("XACK").arg(&self.config.stream).arg(&self.config.group).arg(&ids)).await?;
        if self.config.delete {
            self.ask(line, cmd("XDEL").arg(&self.config.stream).arg(&ids)).await?;
        }
        Ok(())
    }

    async fn ask(&self, line: &Line, command: &Cmd) -> Result<Value, Trouble> {
        line.ask(command, BLOCK + self.config.server.reply_timeout).await
    }
}

/// An entry as this member is given it.
#[derive(Debug, PartialEq)]
struct Given {
    id: String,
    fields: Option<Vec<(Bytes, Bytes)>>,
}

fn unread() -> Trouble {
    Trouble::Away("it answered something else".to_owned())
}

/// How many entries are asked for after so many with so many bytes: about as many bytes as may be in hand, if the next ones
/// are as large, but not at once many more than were seen.
fn count_after(count: usize, bytes: usize, batch_max: usize, bytes_max: usize) -> usize {
    let average = (bytes / count.max(1)).max(1);
    (bytes_max / average).min(count.saturating_mul(GROWTH_MAX)).clamp(1, batch_max)
}

/// The entries of the one stream that was asked for.
fn read_streams(answer: &Value) -> Option<Vec<Given>> {
    let Value::Array(streams) = answer else { return None };
    let [Value::Array(stream)] = &streams[..] else { return None };
    let [_, entries] = &stream[..] else { return None };
    read_entries(entries)
}

/// Where to go on, and the entries that are ours now.
fn read_claimed(answer: &Value) -> Option<(String, Vec<Given>)> {
    let Value::Array(parts) = answer else { return None };
    let [next, entries, ..] = &parts[..] else { return None };
    Some((text(next)?.to_owned(), read_entries(entries)?))
}

fn read_entries(entries: &Value) -> Option<Vec<Given>> {
    let Value::Array(entries) = entries else { return None };
    // Servers before 7.0 say nothing in the place of an entry that was deleted.
    entries.iter().filter(|entry| **entry != Value::Nil).map(read_entry).collect()
}

fn read_entry(entry: &Value) -> Option<Given> {
    let Value::Array(parts) = entry else { return None };
    let [id, fields] = &parts[..] else { return None };
    let bytes = |value: &Value| match value {
        Value::BulkString(bytes) => Some(Bytes::copy_from_slice(bytes)),
        _ => None,
    };
    let fields = match fields {
        Value::Nil => None,
        Value::Array(fields) => {
            let pair = |pair: &[Value]| Some((bytes(&pair[0])?, bytes(&pair[1])?));
            Some(fields.chunks_exact(2).map(pair).collect::<Option<Vec<_>>>()?)
        }
        _ => return None,
    };
    Some(Given { id: text(id)?.to_owned(), fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn fewer_entries_are_asked_for_where_they_are_large() {
        const MIB: usize = 1_048_576;
        let check = |count, bytes, next| assert_eq!(count_after(count, bytes, 1_000, 64 * MIB), next);
        check(16, 16 * 300, 128);
        check(1_000, 300_000, 1_000);
        check(1_000, 1_000 * MIB, 64);
        check(64, 64 * 16 * MIB, 4);
        check(4, 4 * 200 * MIB, 1);
        check(1, 300, 8);
        check(0, 0, 1);
    }

    #[test]
    fn entries_are_read_and_those_that_are_gone_are_known_as_such() {
        let entry = Value::Array(vec![bulk("1-0"), Value::Array(vec![bulk("payload"), bulk("{}")])]);
        let gone = Value::Array(vec![bulk("2-0"), Value::Nil]);
        let entries = Value::Array(vec![entry, gone, Value::Nil]);
        let answer = Value::Array(vec![Value::Array(vec![bulk("s"), entries.clone()])]);
        let fields = vec![(Bytes::from_static(b"payload"), Bytes::from_static(b"{}"))];
        let given = vec![
            Given { id: "1-0".to_owned(), fields: Some(fields) },
            Given { id: "2-0".to_owned(), fields: None },
        ];
        assert_eq!(read_streams(&answer).as_ref(), Some(&given));
        let claimed = Value::Array(vec![bulk("0-0"), entries, Value::Array(vec![])]);
        assert_eq!(read_claimed(&claimed), Some(("0-0".to_owned(), given)));
        for odd in [Value::Okay, Value::Array(vec![]), Value::Array(vec![Value::Int(1), Value::Int(2)])] {
            assert_eq!((read_streams(&odd), read_claimed(&odd)), (None, None), "{odd:?}");
        }
    }
}
