//! Takes what comes to a topic: a batch at a time into the store, committed when the store has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::config::ClientConfig;
use redeliver_core::Name;
use redeliver_engine::bring::{Bring, Input};
use redeliver_engine::clock::Clock;
use redeliver_engine::hear::Hear;
use redeliver_engine::intake::{Intake, IntakeError, Sink};
use redeliver_engine::stop::Stop;
use tokio::sync::{mpsc, oneshot};

use super::client;
use super::config::{Brokers, ClusterConfig};
use super::reader::{Bounds, Reader};
use super::record::check_topic;

/// How a topic is taken from.
#[derive(Clone, Debug, PartialEq)]
pub struct KafkaIntakeConfig {
    /// The cluster.
    pub cluster: ClusterConfig,
    /// The topic.
    pub topic: String,
    /// What stands in it.
    pub takes: Takes,
    /// The group that shares it: every instance of ours is a member.
    pub group: String,
    /// The route on which input is kept, as dead, that nobody can make a message of.
    pub rejects: Name,
    /// The only workspace that what comes may be for; any if none.
    pub workspace: Option<Name>,
    /// Messages that are committed at once.
    pub batch_max: usize,
    /// The largest message.
    pub message_bytes_max: usize,
    /// Bytes of messages that are on their way into the store; beyond that no more are added to a batch.
    pub in_hand_bytes_max: usize,
}

impl Default for KafkaIntakeConfig {
    fn default() -> Self {
        Self {
            cluster: ClusterConfig::default(),
            topic: String::new(),
            takes: Takes::Messages,
            group: "redeliver".to_owned(),
            rejects: "".into(),
            workspace: None,
            batch_max: 1_000,
            message_bytes_max: 16 * 1_048_576,
            in_hand_bytes_max: 64 * 1_048_576,
        }
    }
}

/// What stands in a topic.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Messages to be carried.
    Messages,
    /// What outside workers say of those that were handed off to them.
    Reports,
}

impl Takes {
    /// The words of the config.
    pub const WORDS: [(&str, Self); 2] = [("messages", Self::Messages), ("reports", Self::Reports)];
}

/// How long the cluster is left alone after a reader ended.
const AGAIN_WAIT: Duration = Duration::from_secs(1);
/// How long a reader has to leave its group.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);
/// How long a group may hear nothing of a member before it is gone: no less than brokers allow, which is 6 s.
const SESSION_MS: &str = "10000";
/// What is read ahead of what was asked for, for each partition.
const AHEAD_KIB_MAX: &str = "16384";

/// Takes what comes to one topic.
pub struct KafkaIntake {
    name: Name,
    config: KafkaIntakeConfig,
    taker: Box<dyn Taker>,
    clock: Arc<dyn Clock>,
}

/// Makes something of what stood in a topic: messages, or whatever else the sink takes.
#[async_trait]
pub trait Taker: Send + Sync + 'static {
    /// Brings a batch to the sink until it has all of it, and ends only then.
    async fn take(&self, sink: &dyn Sink, batch: &[Input]);
}

#[async_trait]
impl Taker for Bring {
    async fn take(&self, sink: &dyn Sink, batch: &[Input]) {
        self.bring(sink, batch).await;
    }
}

#[async_trait]
impl Taker for Hear {
    async fn take(&self, sink: &dyn Sink, batch: &[Input]) {
        self.hear(sink, batch).await;
    }
}

/// A reader on its thread, and the ways to it.
struct Reading {
    batches: mpsc::Receiver<Vec<Input>>,
    kept: std::sync::mpsc::Sender<()>,
    ended: oneshot::Receiver<()>,
    // Set when this is dropped, in whatever way.
    stop: StopFlag,
}

struct StopFlag(Arc<AtomicBool>);

impl Drop for StopFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl KafkaIntake {
    /// An intake from the topic of this config, which `taker` makes something of. Nothing is connected yet; an error says
    /// what is wrong with the config.
    pub fn new(
        name: impl Into<Name>,
        config: KafkaIntakeConfig,
        taker: impl Taker,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        check_topic(&config.topic)?;
        match config.cluster.problem() {
            Some(problem) => Err(problem),
            None => Ok(Self { name: name.into(), config, taker: Box::new(taker), clock }),
        }
    }

    fn settings(&self, brokers: &Brokers) -> ClientConfig {
        let mut settings = client::settings(&self.config.cluster, brokers);
        settings.set("group.id", &self.config.group);
        // Only we know what is kept.
        settings.set("enable.auto.commit", "false").set("enable.auto.offset.store", "false");
        // What nobody has read yet is read from its beginning.
        settings.set("auto.offset.reset", "earliest");
        // Whoever joins or leaves takes no partition from those that keep theirs.
        settings.set("partition.assignment.strategy", "cooperative-sticky");
        // So long the others wait for a member that was killed.
        settings.set("session.timeout.ms", SESSION_MS);
        settings.set("queued.max.messages.kbytes", AHEAD_KIB_MAX);
        settings
    }

    /// A reader that reads.
    fn begin(&self, brokers: &Brokers) -> Result<Reading, String> {
        let config = &self.config;
        let reader = Reader::new(
            Arc::clone(&self.name),
            &self.settings(brokers),
            &config.topic,
            Bounds {
                batch_max: config.batch_max,
                batch_bytes_max: config.in_hand_bytes_max,
                bytes_max: config.message_bytes_max,
            },
            Arc::clone(&self.clock),
        )?;
        let (batches, taking) = mpsc::channel(1);
        let (kept, keeping) = std::sync::mpsc::channel();
        let (ending, ended) = oneshot::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let read = move || {
            reader.run(&batches, &keeping, &stopping);
            // Whoever has given up doesn't wait any more.
            let _ = ending.send(());
        };
        let thread = std::thread::Builder::new().name("kafka-intake".to_owned()).spawn(read);
        thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Reading { batches: taking, kept, ended, stop: StopFlag(stop) })
    }

    /// Takes what comes until the reader ends.
    async fn take(&self, reading: &mut Reading, sink: &dyn Sink) {
        while let Some(batch) = reading.batches.recv().await {
            self.taker.take(sink, &batch).await;
            if reading.kept.send(()).is_err() {
                break;
            }
        }
    }
}

#[async_trait]
impl Intake for KafkaIntake {
    async fn run(&self, sink: &dyn Sink, mut stop: Stop) -> Result<(), IntakeError> {
        let Some(brokers) = &self.config.cluster.brokers else {
            tracing::warn!(event = "intake.idle", intake = %self.name, "no broker is configured: nothing comes");
            stop.stopped().await;
            return Ok(());
        };
        while !stop.is_stopped() {
            let failed = |why| IntakeError { name: self.name.to_string(), why };
            let mut reading = self.begin(brokers).map_err(failed)?;
            tracing::info!(
                event = "intake.started", intake = %self.name,
                "taking what comes to the topic {} of {}", self.config.topic, brokers.name()
            );
            tokio::select! {
                biased;
                // What was not committed comes again.
                () = stop.stopped() => {}
                () = self.take(&mut reading, sink) => {
                    tokio::select! {
                        biased;
                        () = stop.stopped() => {}
                        () = self.clock.sleep(AGAIN_WAIT) => {}
                    }
                }
            }
            let Reading { batches, kept, ended, stop: flag } = reading;
            drop((batches, kept, flag));
            // A cluster that doesn't answer holds up nobody: the thread ends when it does.
            tokio::select! {
                _ = ended => {}
                () = self.clock.sleep(LEAVE_WITHIN) => {}
            }
        }
        Ok(())
    }
}
