//! The Kafka intake keeps the rules for intakes, against a cluster that remembers what was committed.
#![cfg(feature = "kafka")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod topics;

use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use redeliver_conformance::intake::{IntakeRig, feed as rules};
use redeliver_engine::intake::Intake;
use redeliver_servers::kafka::KafkaCluster;
use redeliver_transports::kafka::{KafkaIntake, KafkaIntakeConfig};

use topics::{GROUP, POISON, SOURCE, intake_within};

struct Rig {
    intake: KafkaIntake,
    cluster: KafkaCluster,
    put: AtomicI64,
}

fn rig() -> Rig {
    rig_within(KafkaIntakeConfig::default())
}

fn rig_within(limits: KafkaIntakeConfig) -> Rig {
    rig_named("source", limits)
}

fn rig_named(name: &'static str, limits: KafkaIntakeConfig) -> Rig {
    let cluster = KafkaCluster::start();
    cluster.make_topic(SOURCE, 2);
    Rig { intake: intake_within(name, &cluster, limits), cluster, put: AtomicI64::new(0) }
}

impl Rig {
    fn put_bytes(&self, bytes: &[u8]) {
        // Every source gives its n-th record the same place and the same time.
        let n = self.put.fetch_add(1, Ordering::Relaxed);
        self.cluster.put_at(SOURCE, i32::from(n % 2 == 1), 1_700_000_000_000 + n, bytes);
    }
}

#[async_trait]
impl IntakeRig for Rig {
    fn intake(&self) -> &dyn Intake {
        &self.intake
    }

    async fn put(&self, bytes: Bytes) {
        self.put_bytes(&bytes);
    }

    async fn put_poison(&self) {
        self.put_bytes(POISON);
    }

    async fn unacknowledged(&self) -> usize {
        let left = self.put.load(Ordering::Relaxed) - self.cluster.committed(GROUP, SOURCE);
        usize::try_from(left).unwrap()
    }

    /// What nobody can read is brought to the sink, to be kept as dead.
    async fn set_aside(&self) -> Vec<Bytes> {
        Vec::new()
    }

    async fn twin(&self) -> Box<dyn IntakeRig> {
        Box::new(rig_named("twin", KafkaIntakeConfig::default()))
    }
}

redeliver_conformance::intake_tests!(rig());

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_nothing_let_one_message_after_the_other_through() {
    let limits = KafkaIntakeConfig { batch_max: 0, in_hand_bytes_max: 0, ..KafkaIntakeConfig::default() };
    rules::everything_good_reaches_the_sink(&rig_within(limits)).await;
}
