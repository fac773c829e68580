//! Writes messages, thousands at once over one producer, and believes nothing but the cluster's word on each.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use redeliver_core::outcome::Until;
use redeliver_core::{Failure, Name, Outcome};
use redeliver_engine::clock::Clock;
use redeliver_engine::transport::{Envelope, Transport};
use tokio::sync::oneshot;

use super::classify;
use super::client::{self, Standing};
use super::config::{Brokers, KafkaConfig, OnConfirm};
use super::record::Record;

/// What a transport without brokers lacks.
pub const UNCONFIGURED: &str = "no broker is configured: set KAFKA_BROKERS, or brokers of the transport";

/// How long a message waits where nothing but a config can help.
const UNCONFIGURED_WAIT: Duration = Duration::from_secs(60);
/// How long a message waits for a cluster that could not be reached; doubles with each failure.
const AWAY_WAIT: Duration = Duration::from_millis(500);
/// The longest of these waits.
const AWAY_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long a message waits for room, or for another producer.
const SHORT_WAIT: Duration = Duration::from_millis(200);
/// What is kept back, at most, for saying what came of a carrying before others give it up.
const RESERVE: Duration = Duration::from_millis(500);
/// How long a topic that is being made may stay unknown.
const TOPIC_MS_MAX: &str = "3000";
/// How long a message waits for others to travel with.
const LINGER_MS: &str = "5";

/// Writes to the topics of one cluster.
pub struct KafkaTransport {
    name: Name,
    config: KafkaConfig,
    clock: Arc<dyn Clock>,
    /// The producer that all messages share, once a broker has answered it.
    open: Mutex<Option<Arc<Open>>>,
    /// Held by whoever finds out whether the cluster can be reached.
    link: tokio::sync::Mutex<Link>,
}

#[derive(Default)]
struct Link {
    /// The producer, whether or not anybody has answered it.
    producer: Option<Arc<Open>>,
    /// How often in a row the cluster could not be reached.
    failures: u32,
    /// Uptime when that was found last, and what it means: whoever came before then shares it instead of knocking again.
    failed: Option<(Duration, Away)>,
}

struct Open {
    producer: ThreadedProducer<Told>,
    standing: Arc<Standing>,
}

/// Why nothing can be sent.
#[derive(Clone, Debug)]
enum Away {
    Unreachable(String),
    Refused(String),
}

/// Hears what librdkafka has to say, and tells whoever waits for it.
struct Told {
    standing: Arc<Standing>,
}

/// What the cluster said about one message: where it is now, or why it is nowhere.
type Word = Result<(i32, i64), RDKafkaErrorCode>;

impl ClientContext for Told {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        client::log(level, facility, text);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.standing.tell(&error, reason);
    }
}

impl ProducerContext for Told {
    type DeliveryOpaque = Box<oneshot::Sender<Word>>;

    fn delivery(&self, result: &DeliveryResult<'_>, waiting: Self::DeliveryOpaque) {
        let word = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail)),
        };
        // Whoever has given up doesn't wait any more.
        let _ = waiting.send(word);
    }
}

impl KafkaTransport {
    /// A transport to the cluster of this config. Nothing is connected yet; an error says what is wrong with the config.
    pub fn new(name: impl Into<Name>, config: KafkaConfig, clock: Arc<dyn Clock>) -> Result<Self, String> {
        if let Some(problem) = config.cluster.problem() {
            return Err(problem);
        }
        let (open, link) = Default::default();
        Ok(Self { name: name.into(), config, clock, open, link })
    }

    /// The producer, if the cluster is known to answer it.
    fn ready(&self) -> Option<Arc<Open>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.as_ref().filter(|open| open.standing.is_fine()).cloned()
    }

    /// The producer, once a broker has answered it.
    ///
    /// What librdkafka was given it may send at any time, so nothing is given to it that has nowhere to go: only while
    /// that is so, an outage costs no message a try.
    async fn open(&self, brokers: &Brokers, topic: &str) -> Result<Arc<Open>, Away> {
        if let Some(open) = self.ready() {
            return Ok(open);
        }
        let came_at = self.clock.uptime();
        let mut link = self.link.lock().await;
        if let Some(open) = self.ready() {
            return Ok(open);
        }
        if let Some((_, why)) = link.failed.as_ref().filter(|(at, _)| came_at <= *at) {
            return Err(why.clone());
        }
        match self.reach(&mut link, brokers, topic).await {
            Ok(open) => {
                (link.failures, link.failed) = (0, None);
                *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&open));
                Ok(open)
            }
            Err(why) => {
                link.failures += 1;
                link.failed = Some((self.clock.uptime(), why.clone()));
                Err(why)
            }
        }
    }

    /// Asks the cluster about a topic, for nothing but an answer.
    async fn reach(&self, link: &mut Link, brokers: &Brokers, topic: &str) -> Result<Arc<Open>, Away> {
        let known = link.producer.clone().filter(|open| open.standing.known().broken.is_none());
        let open = match known {
            Some(open) => open,
            None => Arc::new(self.producer(brokers).map_err(Away::Unreachable)?),
        };
        link.producer = Some(Arc::clone(&open));
        let (asking, topic, within) =
            (Arc::clone(&open), topic.to_owned(), self.config.cluster.connect_timeout);
        let (tell, told) = oneshot::channel();
        // Asking blocks, so it has a thread of its own, which nobody waits for who is told to stop.
        std::thread::spawn(move || {
            let answer = asking.producer.client().fetch_metadata(Some(&topic), within);
            // Whoever has given up doesn't wait any more.
            let _ = tell.send(answer.map(|_| ()).map_err(|error| error.to_string()));
        });
        let answer = tokio::select! {
            answer = told => answer.unwrap_or_else(|_| Err("nobody could ask".to_owned())),
            known = open.standing.troubled() => match known.refused {
                Some(why) => return Err(Away::Refused(why)),
                None => Err(known.away.or(known.broken).unwrap_or_default()),
            },
        };
        match (answer, open.standing.known()) {
            (Ok(()), _) => {
                open.standing.answered();
                Ok(open)
            }
            (Err(_), client::Known { refused: Some(why), .. }) => Err(Away::Refused(why)),
            (Err(why), _) => Err(Away::Unreachable(why)),
        }
    }

    fn producer(&self, brokers: &Brokers) -> Result<Open, String> {
        let standing = Arc::new(Standing::default());
        let told = Told { standing: Arc::clone(&standing) };
        let settings = settings(&self.config, brokers);
        let producer = ThreadedProducer::from_config_and_context(&settings, told).map_err(client::explain)?;
        Ok(Open { producer, standing })
    }

    fn put_off(&self, wait: Duration, reason: &str) -> Outcome {
        Outcome::Deferred { until: Until::At(self.clock.now().plus(wait)), reason: reason.into() }
    }

    /// A cluster out of reach costs no try; one that knows us and lets us not in holds everything that goes there.
    async fn away(&self, why: &Away) -> Outcome {
        match why {
            Away::Refused(why) => classify::login(why),
            Away::Unreachable(why) => {
                let failures = self.link.lock().await.failures;
                let wait =
                    AWAY_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(AWAY_WAIT_MAX);
                self.put_off(wait, &format!("no broker can be reached: {why}"))
            }
        }
    }

    /// Gives a record to the producer and waits for the cluster's word.
    async fn write(&self, open: &Open, record: Record<'_>, within: Duration) -> Outcome {
        let topic = record.topic;
        let (waiting, told) = oneshot::channel();
        let base = BaseRecord::with_opaque_to(topic, Box::new(waiting)).payload(record.bytes);
        let base = match record.key {
            Some(key) => base.key(key),
            None => base,
        };
        if let Err((error, _)) = open.producer.send(base.headers(record.headers)) {
            return self.not_taken(open, topic, &error);
        }
        match tokio::time::timeout(within, told).await {
            Ok(Ok(Ok((partition, offset)))) => match self.config.on_confirm {
                OnConfirm::Delivered => {
                    Outcome::Delivered { receipt: Some(format!("{topic}/{partition}@{offset}").into()) }
                }
                OnConfirm::HandedOff => Outcome::HandedOff,
            },
            Ok(Ok(Err(code))) => classify::undelivered(topic, code),
            Ok(Err(_)) => Outcome::Lost { reason: "the producer is gone".into() },
            Err(_) => Outcome::Lost { reason: "the cluster did not confirm in time".into() },
        }
    }

    /// What librdkafka did not even put into its queue was never sent.
    fn not_taken(&self, open: &Open, topic: &str, error: &KafkaError) -> Outcome {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::QueueFull) => {
                self.put_off(SHORT_WAIT, "the cluster has confirmed nothing for too long")
            }
            Some(code) => match classify::undelivered(topic, code) {
                Outcome::Lost { reason } => {
                    open.standing.tell(&KafkaError::Global(RDKafkaErrorCode::Fatal), &reason);
                    self.put_off(SHORT_WAIT, &reason)
                }
                other => other,
            },
            None => Outcome::Refused(Failure::new(error.to_string()).with_code(classify::INVALID)),
        }
    }
}

#[async_trait]
impl Transport for KafkaTransport {
    async fn carry(&self, envelope: &Envelope<'_>, within: Duration) -> Outcome {
        let Some(brokers) = &self.config.cluster.brokers else {
            return self.put_off(UNCONFIGURED_WAIT, UNCONFIGURED);
        };
        let record = match Record::of(envelope, &self.config.key_attribute) {
            Ok(record) => record,
            Err(wrong) => return Outcome::Refused(Failure::new(wrong).with_code(classify::INVALID)),
        };
        let end = self.clock.uptime() + within.saturating_sub(RESERVE.min(within / 10));
        let left = || end.saturating_sub(self.clock.uptime());
        match tokio::time::timeout(left(), self.open(brokers, record.topic)).await {
            Ok(Ok(open)) => self.write(&open, record, left()).await,
            Ok(Err(why)) => self.away(&why).await,
            Err(_) => self.put_off(SHORT_WAIT, "connecting took too long"),
        }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        self.fixed_destination().unwrap_or_else(|| self.name.clone())
    }

    fn fixed_destination(&self) -> Option<Name> {
        let brokers = self.config.cluster.brokers.as_ref();
        Some(brokers.map_or_else(|| self.name.clone(), |brokers| brokers.name().into()))
    }

    fn lacks(&self) -> Option<Arc<str>> {
        self.config.cluster.brokers.is_none().then(|| UNCONFIGURED.into())
    }
}

/// What librdkafka is told of a producer.
fn settings(config: &KafkaConfig, brokers: &Brokers) -> ClientConfig {
    let mut settings = client::settings(&config.cluster, brokers);
    // Every replica that counts has it, once: what librdkafka says again, the brokers know again.
    settings.set("enable.idempotence", "true").set("acks", "all");
    settings.set("message.timeout.ms", config.delivery_timeout.as_millis().max(1).to_string());
    settings.set("message.max.bytes", config.message_bytes_max.to_string());
    settings.set("compression.type", config.compression.name());
    settings.set("topic.metadata.propagation.max.ms", TOPIC_MS_MAX);
    settings.set("linger.ms", LINGER_MS);
    // The same partitions for the same keys as other clients choose.
    settings.set("partitioner", "murmur2_random");
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_replica_that_counts_has_a_message_once_before_it_is_believed() {
        let brokers = Brokers::parse("k1").unwrap();
        let config = KafkaConfig { delivery_timeout: Duration::from_secs(9), ..KafkaConfig::default() };
        let settings = settings(&config, &brokers);
        for (name, value) in [
            ("acks", "all"),
            ("enable.idempotence", "true"),
            ("message.timeout.ms", "9000"),
            ("partitioner", "murmur2_random"),
        ] {
            assert_eq!(settings.get(name), Some(value), "{name}");
        }
    }
}
