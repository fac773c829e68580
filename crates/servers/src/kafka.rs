//! Kafka: the cluster that comes with librdkafka, which can be told to fail, or a broker that is a program of its own.

mod broker;
mod within;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rdkafka::config::{ClientConfig, FromClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};

use broker::Broker;
use within::Within;

pub use rdkafka::types::{RDKafkaApiKey as Request, RDKafkaRespErr as Fault};

/// Names the program of a broker, which is then used instead of the cluster within this process.
const BROKER: &str = "REDELIVER_KAFKA_BROKER";
/// Long enough for anything that a cluster that is up will do.
const WITHIN: Duration = Duration::from_secs(60);
/// How long it is waited for the next record.
const POLL_WITHIN: Duration = Duration::from_secs(1);
/// How often none may come, or trouble instead.
const IDLE_MAX: usize = 60;

/// A cluster of its own, which ends when this is dropped.
pub struct KafkaCluster {
    /// Writes what tests put.
    writer: Mutex<Option<ThreadedProducer<DefaultProducerContext>>>,
    /// Reads what tests look at, by the name of a group.
    onlookers: Mutex<BTreeMap<String, BaseConsumer>>,
    brokers: String,
    // Last, so that its clients go before it does.
    runs: Runs,
}

/// Where a cluster runs.
enum Runs {
    Within(Within),
    Beside(Mutex<Broker>),
}

/// What stands in a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where.
    pub partition: i32,
    /// At which place.
    pub offset: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its headers, in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Record {
    /// The value of a header that is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| known == name)?;
        std::str::from_utf8(value).ok()
    }
}

impl KafkaCluster {
    /// Starts a cluster of one broker.
    pub fn start() -> Self {
        Self::start_with(1)
    }

    /// Starts a cluster of so many brokers; of one, if it is a program of its own.
    pub fn start_with(brokers: i32) -> Self {
        let (runs, brokers) = match env::var(BROKER) {
            Ok(program) => {
                let broker = Broker::start(program);
                let address = broker.address();
                (Runs::Beside(Mutex::new(broker)), address)
            }
            Err(_) => {
                let (cluster, address) = Within::start(brokers);
                (Runs::Within(cluster), address)
            }
        };
        Self { runs, brokers, writer: Mutex::default(), onlookers: Mutex::default() }
    }

    /// Starts a cluster of one broker that has these topics, each with two partitions.
    pub fn start_with_topics(names: &[&str]) -> Self {
        let cluster = Self::start();
        names.iter().for_each(|name| cluster.make_topic(name, 2));
        cluster
    }

    /// Its brokers, as clients are told them.
    pub fn brokers(&self) -> &str {
        &self.brokers
    }

    /// Makes a topic. One that nobody made is made by whoever first writes to it, with four partitions.
    pub fn make_topic(&self, name: &str, partitions: i32) {
        match &self.runs {
            Runs::Within(cluster) => {
                let name = name.to_owned();
                cluster.have(move |cluster| cluster.create_topic(&name, partitions, 1)).expect("a new topic");
            }
            Runs::Beside(broker) => held(broker).make_topic(name, partitions),
        }
    }

    /// From now on, there is no such topic.
    pub fn hide_topic(&self, name: &str) {
        let name = name.to_owned();
        let fault = Fault::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
        self.within().have(move |cluster| cluster.topic_error(&name, fault)).expect("a topic can be hidden");
    }

    /// All brokers end all connections, and take no new ones.
    pub fn take_down(&self) {
        match &self.runs {
            Runs::Within(cluster) => {
                cluster.have(|cluster| cluster.broker_down(-1)).expect("brokers go down")
            }
            Runs::Beside(broker) => held(broker).take_down(),
        }
    }

    /// All brokers are back, with everything that they had. Tests write and look with new clients from then on: how long
    /// one stays away that has seen an outage is for librdkafka to say.
    pub fn bring_up(&self) {
        match &self.runs {
            Runs::Within(cluster) => cluster.have(|cluster| cluster.broker_up(-1)).expect("brokers come up"),
            Runs::Beside(broker) => held(broker).bring_up(),
        }
        held(&self.writer).take();
        held(&self.onlookers).clear();
    }

    /// The next requests of this kind fail like this, one after the other, instead of being looked at.
    pub fn fail(&self, request: Request, faults: &[Fault]) {
        let faults = faults.to_vec();
        self.within().have(move |cluster| cluster.request_errors(request, &faults));
    }

    /// Requests of this kind fail no more.
    pub fn forgive(&self, request: Request) {
        self.within().have(move |cluster| cluster.clear_request_errors(request));
    }

    /// Every answer takes this long.
    pub fn delay(&self, span: Duration) {
        self.within()
            .have(move |cluster| cluster.broker_round_trip_time(-1, span))
            .expect("brokers can be slow");
    }

    /// Writes a record to a topic.
    pub fn put(&self, topic: &str, key: Option<&str>, bytes: &[u8]) {
        self.put_all(topic, &[(key, bytes)]);
    }

    /// Writes records to a topic. All are there when this returns.
    pub fn put_all(&self, topic: &str, records: &[(Option<&str>, &[u8])]) {
        let mut writer = held(&self.writer);
        let producer = writer.get_or_insert_with(|| made(&self.settings()));
        for (key, bytes) in records {
            let record = BaseRecord::<str, [u8]>::to(topic).payload(bytes).headers(OwnedHeaders::new());
            let record = match key {
                Some(key) => record.key(key),
                None => record,
            };
            producer.send(record).map_err(|(error, _)| error).expect("there is room");
        }
        producer.flush(WITHIN).expect("the cluster takes it");
    }

    /// Writes a record to a partition of a topic, with this time in ms.
    pub fn put_at(&self, topic: &str, partition: i32, at_ms: i64, bytes: &[u8]) {
        let mut writer = held(&self.writer);
        let producer = writer.get_or_insert_with(|| made(&self.settings()));
        let record = BaseRecord::<str, [u8]>::to(topic).payload(bytes).partition(partition).timestamp(at_ms);
        producer.send(record).map_err(|(error, _)| error).expect("there is room");
        producer.flush(WITHIN).expect("the cluster takes it");
    }

    /// Everything that stands in a topic, by partition and place.
    pub fn records(&self, topic: &str) -> Vec<Record> {
        self.look("onlooker", |consumer| {
            let partitions = partitions(consumer, topic);
            let mut all = TopicPartitionList::new();
            for partition in &partitions {
                all.add_partition_offset(topic, *partition, Offset::Beginning).expect("a partition");
            }
            consumer.assign(&all).expect("partitions that are there");
            let records = read(consumer, partitions.into_iter().collect());
            consumer.unassign().expect("partitions that are there");
            records
        })
    }

    /// How many records of a topic a group has committed to have read.
    pub fn committed(&self, group: &str, topic: &str) -> i64 {
        self.look(group, |consumer| {
            let mut all = TopicPartitionList::new();
            for partition in partitions(consumer, topic) {
                all.add_partition(topic, partition);
            }
            let offsets = consumer.committed_offsets(all, WITHIN).expect("a group's offsets");
            let count = |offset| match offset {
                Offset::Offset(count) => count,
                _ => 0,
            };
            offsets.elements().iter().map(|element| count(element.offset())).sum()
        })
    }

    /// Looks at the cluster in the name of a group, without becoming a member of it.
    fn look<T>(&self, group: &str, look: impl FnOnce(&BaseConsumer) -> T) -> T {
        let mut onlookers = held(&self.onlookers);
        let onlooker = onlookers.entry(group.to_owned()).or_insert_with(|| {
            let mut settings = self.settings();
            settings.set("enable.partition.eof", "true").set("enable.auto.commit", "false");
            // Whoever looks wants to know what is there, and waits for nothing.
            settings.set("fetch.wait.max.ms", "10");
            made(settings.set("group.id", group))
        });
        look(onlooker)
    }

    fn settings(&self) -> ClientConfig {
        let mut settings = ClientConfig::new();
        settings.set("bootstrap.servers", &self.brokers).set_log_level(RDKafkaLogLevel::Error);
        settings.set("reconnect.backoff.max.ms", "500");
        settings
    }

    /// The cluster that can be told to fail.
    fn within(&self) -> &Within {
        match &self.runs {
            Runs::Within(cluster) => cluster,
            Runs::Beside(_) => panic!("{BROKER} is set, but this broker can't be told to fail"),
        }
    }
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().expect("nobody has failed in the middle")
}

fn made<T: FromClientConfig>(settings: &ClientConfig) -> T {
    settings.create().expect("a client of the cluster")
}

/// What stands in these partitions, to their ends.
fn read(consumer: &BaseConsumer, mut left: BTreeSet<i32>) -> Vec<Record> {
    let mut records = Vec::new();
    let mut idle = 0;
    while !left.is_empty() {
        match consumer.poll(POLL_WITHIN) {
            Some(Ok(message)) => records.push(record(&message)),
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                left.remove(&partition);
            }
            // Brokers that were away are still spoken of.
            Some(Err(_)) | None => {
                idle += 1;
                assert!(idle < IDLE_MAX, "the end of partitions {left:?} does not come");
            }
        }
    }
    records.sort_by_key(|record| (record.partition, record.offset));
    records
}

fn partitions(consumer: &BaseConsumer, topic: &str) -> Vec<i32> {
    let known = consumer.fetch_metadata(Some(topic), WITHIN).expect("the cluster answers");
    let topics = known.topics().iter().filter(|known| known.name() == topic);
    topics.flat_map(|topic| topic.partitions()).map(|partition| partition.id()).collect()
}

fn record(message: &impl Message) -> Record {
    let headers = message.headers().map(|headers| {
        let one = |header: rdkafka::message::Header<'_, &[u8]>| {
            (header.key.to_owned(), header.value.unwrap_or_default().to_vec())
        };
        headers.iter().map(one).collect()
    });
    Record {
        partition: message.partition(),
        offset: message.offset(),
        key: message.key().map(<[u8]>::to_vec),
        headers: headers.unwrap_or_default(),
        bytes: message.payload().unwrap_or_default().to_vec(),
    }
}
