//! The Kafka transport keeps the rules for transports, against a cluster that behaves as it is told.
#![cfg(feature = "kafka")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use redeliver_conformance::make;
use redeliver_conformance::transport::{LATE, Manner, Seen, TransportRig};
use redeliver_core::{Content, Timestamp};
use redeliver_engine::clock::WallClock;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_servers::kafka::{Fault, KafkaCluster, Request};
use redeliver_transports::kafka::{Brokers, ClusterConfig, KafkaConfig, KafkaTransport, NAME_HEADER};

const TOPIC: &str = "orders";
/// Longer than anybody waits for an answer that won't come.
const SILENCE: Duration = Duration::from_secs(3);

struct Rig {
    transport: KafkaTransport,
    cluster: KafkaCluster,
    manner: Mutex<Manner>,
    /// What the cluster was brought and did not keep: it tells nobody of it.
    turned_away: Mutex<usize>,
    /// Records that are no part of the story.
    before: Mutex<usize>,
}

fn rig() -> Rig {
    let cluster = KafkaCluster::start();
    // One partition keeps them in order.
    cluster.make_topic(TOPIC, 1);
    let brokers = Brokers::parse(cluster.brokers()).ok();
    let config = KafkaConfig {
        cluster: ClusterConfig { brokers, ..ClusterConfig::default() },
        ..KafkaConfig::default()
    };
    let transport = KafkaTransport::new("kafka", config, WallClock::new(Timestamp::default())).unwrap();
    let (turned_away, before) = Default::default();
    Rig { transport, cluster, manner: Mutex::new(Manner::Takes), turned_away, before }
}

impl Rig {
    fn fail_once(&self, fault: Fault) {
        self.cluster.fail(Request::Produce, &[fault]);
        *self.turned_away.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn seen_now(&self) -> Vec<Seen> {
        let is_away = *self.manner.lock().unwrap_or_else(PoisonError::into_inner) == Manner::Away;
        if is_away {
            self.cluster.bring_up();
        }
        let records = self.cluster.records(TOPIC);
        if is_away {
            self.cluster.take_down();
        }
        let seen = |record: &redeliver_servers::kafka::Record| Seen {
            attempt_id: record.header(NAME_HEADER).map(str::to_owned),
            bytes: Some(Bytes::copy_from_slice(&record.bytes)),
        };
        let unseen = Seen { attempt_id: None, bytes: None };
        let turned_away = *self.turned_away.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = records.iter().skip(before).map(seen);
        kept.chain(std::iter::repeat_n(unseen, turned_away)).collect()
    }
}

#[async_trait]
impl TransportRig for Rig {
    fn transport(&self) -> &dyn Transport {
        &self.transport
    }

    async fn behave(&self, manner: Manner) {
        self.cluster.bring_up();
        self.cluster.delay(Duration::ZERO);
        self.cluster.forgive(Request::Produce);
        match manner {
            Manner::Takes => {}
            Manner::Fails => self.fail_once(Fault::RD_KAFKA_RESP_ERR_UNKNOWN),
            Manner::Refuses => self.fail_once(Fault::RD_KAFKA_RESP_ERR_INVALID_RECORD),
            Manner::Silent => {
                // It is reached, and has been heard of, before it falls silent.
                let (message, content) = (make::message(99), self.content(99));
                let target = content.target.as_deref();
                let envelope = Envelope { message: &message, content: &content, target };
                self.transport.carry(&envelope, Duration::from_secs(30)).await;
                *self.before.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                self.cluster.delay(SILENCE);
            }
            Manner::AnswersLate => self.cluster.delay(LATE),
            // It closes the connection as often as the client comes back.
            Manner::CutsOff => {
                self.cluster.fail(Request::Produce, &[Fault::RD_KAFKA_RESP_ERR__TRANSPORT; 200])
            }
            Manner::Away => self.cluster.take_down(),
        }
        *self.manner.lock().unwrap_or_else(PoisonError::into_inner) = manner;
    }

    async fn seen(&self) -> Vec<Seen> {
        self.seen_now()
    }

    fn content(&self, n: u32) -> Content {
        Content { target: Some(TOPIC.into()), ..Content::of_bytes(format!("body {n}")) }
    }
}

redeliver_conformance::transport_tests!(rig());
