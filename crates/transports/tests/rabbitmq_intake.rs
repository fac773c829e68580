//! The RabbitMQ intake keeps the rules for intakes, against a broker that remembers what was acknowledged.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod amqp_peer;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use prost::Message as _;
use redeliver_conformance::intake::{IntakeRig, feed as rules};
use redeliver_core::Timestamp;
use redeliver_engine::clock::WallClock;
use redeliver_engine::intake::Intake;
use redeliver_transports::rabbitmq::{
    Broker, BrokerConfig, RabbitmqIntake, RabbitmqIntakeConfig, RetryMessage,
};

use amqp_peer::Peer;

struct Rig {
    intake: RabbitmqIntake,
    peer: Peer,
    put: AtomicU32,
}

async fn rig() -> Rig {
    rig_with(BrokerConfig::default()).await
}

async fn rig_with(broker: BrokerConfig) -> Rig {
    let peer = Peer::start().await;
    let broker = BrokerConfig { broker: Broker::parse(&peer.url()).ok(), ..broker };
    let config = RabbitmqIntakeConfig {
        broker,
        queue: "source".to_owned(),
        route: "retry".into(),
        rejects: "unreadable".into(),
        ..RabbitmqIntakeConfig::default()
    };
    let intake = RabbitmqIntake::new("source", config, WallClock::new(Timestamp::default())).unwrap();
    Rig { intake, peer, put: AtomicU32::new(0) }
}

#[async_trait]
impl IntakeRig for Rig {
    fn intake(&self) -> &dyn Intake {
        &self.intake
    }

    async fn put(&self, bytes: Bytes) {
        let message = RetryMessage {
            message_id: format!("m-{}", self.put.fetch_add(1, Ordering::Relaxed)),
            original_payload: bytes,
            original_queue: "orders".to_owned(),
            ..RetryMessage::default()
        };
        self.peer.put(message.encode_to_vec().into());
    }

    async fn put_poison(&self) {
        self.peer.put(Bytes::from_static(b"\x07garbage"));
    }

    async fn unacknowledged(&self) -> usize {
        self.peer.unacknowledged()
    }

    /// What nobody can read is brought to the sink, to be kept as dead.
    async fn set_aside(&self) -> Vec<Bytes> {
        Vec::new()
    }
}

redeliver_conformance::intake_tests!(rig().await);

#[tokio::test]
async fn an_intake_that_gets_no_answer_asks_again() {
    let connect_timeout = Duration::from_secs(1);
    let rig = rig_with(BrokerConfig { connect_timeout, ..BrokerConfig::default() }).await;
    rig.peer.leave_unanswered(2);
    rules::everything_good_reaches_the_sink(&rig).await;
    assert_eq!(rig.peer.unanswered(), 0, "it was left without an answer twice");
}
