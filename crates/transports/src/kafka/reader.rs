//! Reads topics as a member of a group, on a thread of its own, and commits only what it is told is kept.
//!
//! The thread keeps polling while a batch is being kept, so that the group goes on counting it as a member; meanwhile its
//! partitions are paused. What stands in a partition that was taken away is not committed, even if it was kept:
//! whoever has the partition now reads it again, and its key tells that it is known.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{ClientContext, Offset, TopicPartitionList};
use redeliver_core::identity;
use redeliver_engine::bring::Input;
use redeliver_engine::clock::Clock;
use tokio::sync::mpsc::Sender;

use super::client;

/// How long it waits for something to come before it looks at anything else.
const POLL_WITHIN: Duration = Duration::from_millis(100);
/// How long a batch may take to be kept before the partitions are paused. Pausing forgets what is on its way to us.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a commit that failed is left alone.
const COMMIT_AGAIN: Duration = Duration::from_secs(1);
/// How often trouble is told.
const TROUBLE_AGAIN: Duration = Duration::from_secs(10);

/// A partition.
type Slot = (Arc<str>, i32);

/// Something that stood in a topic.
struct Came {
    input: Input,
    mark: Mark,
}

/// Where it stood.
struct Mark {
    slot: Slot,
    offset: i64,
    /// The assignment of its partition under which it was read.
    turn: u64,
}

/// Which partitions are whose turn.
#[derive(Default)]
struct Turns {
    /// Goes up whenever a partition is taken away.
    turns: HashMap<Slot, u64>,
    /// Whether anything was assigned or taken away since somebody looked.
    has_changed: bool,
    /// Whether a commit has failed that nobody has repeated.
    has_failed: bool,
}

/// Hears what librdkafka has to say.
#[derive(Default)]
struct Told {
    turns: Mutex<Turns>,
}

impl Told {
    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Told {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        client::log(level, facility, text);
    }

    // Errors also come by polling.
    fn error(&self, _: KafkaError, _: &str) {}
}

impl ConsumerContext for Told {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let mut turns = self.turns();
        turns.has_changed = true;
        if let Rebalance::Revoke(taken) = rebalance {
            for element in taken.elements() {
                *turns.turns.entry((element.topic().into(), element.partition())).or_default() += 1;
            }
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, _: &TopicPartitionList) {
        if result.is_err() {
            self.turns().has_failed = true;
        }
    }
}

/// How much is read at once.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Messages of a batch.
    pub(super) batch_max: usize,
    /// Bytes of a batch: the message that goes beyond is its last.
    pub(super) batch_bytes_max: usize,
    /// Bytes of a message; of a longer one, one more is kept, so that it is known as such.
    pub(super) bytes_max: usize,
}

/// Reads until told to stop.
pub(super) struct Reader {
    consumer: BaseConsumer<Told>,
    bounds: Bounds,
    /// What came while a batch was being kept.
    early: Vec<Came>,
    /// What is kept, and up to where: the next place to read, and whose turn it was.
    kept: HashMap<Slot, (i64, u64)>,
    /// Uptime when anything was committed last.
    committed_at: Duration,
    /// Uptime when trouble was told last.
    troubled_at: Option<Duration>,
    /// Whether the consumer is of no more use.
    is_over: bool,
    name: Arc<str>,
    clock: Arc<dyn Clock>,
}

impl Reader {
    /// A member of the group that these settings name, on this topic.
    pub(super) fn new(
        name: Arc<str>,
        settings: &ClientConfig,
        topic: &str,
        bounds: Bounds,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let consumer = BaseConsumer::from_config_and_context(settings, Told::default());
        let consumer = consumer.map_err(client::explain)?;
        consumer.subscribe(&[topic]).map_err(client::explain)?;
        let (early, kept, committed_at, troubled_at, is_over) = Default::default();
        Ok(Self { consumer, bounds, early, kept, committed_at, troubled_at, is_over, name, clock })
    }

    /// Sends out batch after batch, each once the one before it is kept, until `stop` is set or nobody takes them.
    pub(super) fn run(mut self, batches: &Sender<Vec<Input>>, kept: &Receiver<()>, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) && !self.is_over {
            let came = self.gather();
            self.commit_again();
            if came.is_empty() {
                continue;
            }
            let (batch, marks): (Vec<Input>, Vec<Mark>) =
                came.into_iter().map(|came| (came.input, came.mark)).unzip();
            if batches.blocking_send(batch).is_err() || !self.hold(kept, stop) {
                break;
            }
            self.keep(marks);
        }
        if self.consumer.context().turns().has_failed {
            self.commit(CommitMode::Sync);
        }
    }

    /// What has come, as much as fits into one commit; one message does, whatever the bounds.
    fn gather(&mut self) -> Vec<Came> {
        let mut batch = std::mem::take(&mut self.early);
        let mut wait = if batch.is_empty() { POLL_WITHIN } else { Duration::ZERO };
        let mut bytes: usize = batch.iter().map(|came| came.input.bytes.len()).sum();
        let Bounds { batch_max, batch_bytes_max, .. } = self.bounds;
        while (batch.is_empty() || batch.len() < batch_max && bytes < batch_bytes_max)
            && let Some(came) = self.poll(wait)
        {
            bytes += came.input.bytes.len();
            batch.push(came);
            wait = Duration::ZERO;
        }
        batch
    }

    fn poll(&mut self, wait: Duration) -> Option<Came> {
        match self.consumer.poll(wait)? {
            Ok(message) => {
                let slot: Slot = (message.topic().into(), message.partition());
                let turn = self.consumer.context().turns().turns.get(&slot).copied().unwrap_or_default();
                let bytes = message.payload().unwrap_or_default();
                let cut = bytes.len().min(self.bounds.bytes_max.saturating_add(1));
                let said_at = message.timestamp().to_millis().unwrap_or_default();
                let offset = message.offset();
                // A topic that is made anew begins at 0 again, but not at the same time.
                let place = format!("{}/{}@{offset}.{said_at}", slot.0, slot.1);
                let place = identity::of_place("kafka", &self.name, &place);
                let input = Input { bytes: Bytes::copy_from_slice(&bytes[..cut]), place };
                Some(Came { input, mark: Mark { slot, offset, turn } })
            }
            Err(error) => {
                self.is_over |= matches!(error, KafkaError::MessageConsumptionFatal(_));
                self.tell(&error);
                None
            }
        }
    }

    /// Waits until the batch is kept; false if it never will be.
    fn hold(&mut self, kept: &Receiver<()>, stop: &AtomicBool) -> bool {
        match kept.recv_timeout(PATIENCE) {
            Ok(()) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => {}
        }
        self.pause();
        let is_kept = loop {
            if let Some(early) = self.poll(POLL_WITHIN) {
                self.early.push(early);
            }
            // What was assigned just now has not been paused.
            if std::mem::take(&mut self.consumer.context().turns().has_changed) {
                self.pause();
            }
            match kept.recv_timeout(Duration::ZERO) {
                Ok(()) => break true,
                Err(RecvTimeoutError::Disconnected) => break false,
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => break false,
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let resumed = self.consumer.assignment().and_then(|all| self.consumer.resume(&all));
        if let Err(error) = resumed {
            self.tell(&error);
        }
        is_kept
    }

    fn pause(&mut self) {
        let paused = self.consumer.assignment().and_then(|all| self.consumer.pause(&all));
        if let Err(error) = paused {
            self.tell(&error);
        }
    }

    /// Takes note of what is kept now, and commits it.
    fn keep(&mut self, marks: Vec<Mark>) {
        for mark in marks {
            self.kept.insert(mark.slot, (mark.offset + 1, mark.turn));
        }
        self.commit(CommitMode::Async);
    }

    /// Repeats a commit that failed, in good time.
    fn commit_again(&mut self) {
        let has_failed = self.consumer.context().turns().has_failed;
        if has_failed && self.clock.uptime().saturating_sub(self.committed_at) >= COMMIT_AGAIN {
            self.commit(CommitMode::Async);
        }
    }

    /// Commits what is kept, and forgets what was taken away.
    fn commit(&mut self, mode: CommitMode) {
        let mut offsets = TopicPartitionList::new();
        {
            let mut turns = self.consumer.context().turns();
            turns.has_failed = false;
            self.kept.retain(|slot, (_, turn)| turns.turns.get(slot).copied().unwrap_or_default() == *turn);
        }
        for ((topic, partition), (next, _)) in &self.kept {
            // The only error is an offset that can't be one.
            let _ = offsets.add_partition_offset(topic, *partition, Offset::Offset(*next));
        }
        self.committed_at = self.clock.uptime();
        if offsets.count() == 0 {
            return;
        }
        if let Err(error) = self.consumer.commit(&offsets, mode) {
            self.consumer.context().turns().has_failed = true;
            self.tell(&error);
        }
    }

    /// Says what is wrong, but not all the time.
    fn tell(&mut self, error: &KafkaError) {
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::PartitionEOF) {
            return;
        }
        let now = self.clock.uptime();
        if self.troubled_at.is_none_or(|at| now.saturating_sub(at) >= TROUBLE_AGAIN) {
            self.troubled_at = Some(now);
            tracing::warn!(
                event = "intake.interrupted", intake = %self.name,
                "the cluster does not give what it has, trying again: {error}"
            );
        }
    }
}
