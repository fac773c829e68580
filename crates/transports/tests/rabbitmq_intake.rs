//! The RabbitMQ intake keeps the rules for intakes, against a broker that remembers what was acknowledged.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod amqp_peer;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use prost::Message as _;
use redeliver_conformance::intake::sink::{Answers, ScriptedSink};
use redeliver_conformance::intake::{IntakeRig, feed as rules};
use redeliver_core::Timestamp;
use redeliver_engine::clock::WallClock;
use redeliver_engine::intake::Intake;
use redeliver_engine::stop::stop_pair;
use redeliver_transports::rabbitmq::{
    Broker, BrokerConfig, RabbitmqIntake, RabbitmqIntakeConfig, RetryMessage, Takes,
};

use amqp_peer::Peer;

struct Rig {
    intake: RabbitmqIntake,
    peer: Peer,
    /// Where its messages go back to.
    original_queue: &'static str,
    put: AtomicU32,
}

async fn rig() -> Rig {
    rig_with(BrokerConfig::default()).await
}

async fn rig_with(broker: BrokerConfig) -> Rig {
    rig_of(RabbitmqIntakeConfig { broker, ..RabbitmqIntakeConfig::default() }).await
}

async fn rig_of(config: RabbitmqIntakeConfig) -> Rig {
    rig_named("source", "orders", config).await
}

async fn rig_named(name: &'static str, original_queue: &'static str, config: RabbitmqIntakeConfig) -> Rig {
    let peer = Peer::start().await;
    let broker = BrokerConfig { broker: Broker::parse(&peer.url()).ok(), ..config.broker };
    let config = RabbitmqIntakeConfig {
        broker,
        queue: "source".to_owned(),
        route: "retry".into(),
        rejects: "unreadable".into(),
        ..config
    };
    let intake = RabbitmqIntake::new(name, config, WallClock::new(Timestamp::default())).unwrap();
    Rig { intake, peer, original_queue, put: AtomicU32::new(0) }
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
            original_queue: self.original_queue.to_owned(),
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

    async fn twin(&self) -> Box<dyn IntakeRig> {
        Box::new(rig_named("twin", "emails", RabbitmqIntakeConfig::default()).await)
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

#[tokio::test]
async fn no_more_is_in_hand_than_may_be() {
    let config = RabbitmqIntakeConfig { in_hand_bytes_max: 10_000, ..RabbitmqIntakeConfig::default() };
    let rig = rig_of(config).await;
    for _ in 0..100 {
        rig.put(vec![b'x'; 1_000].into()).await;
    }
    let sink = ScriptedSink::new(Answers::Waits);
    let (stopper, stop) = stop_pair();
    let story = async {
        sink.called(1).await;
        sink.answer(Answers::New);
        while rig.peer.unacknowledged() > 0 {
            tokio::task::yield_now().await;
        }
        stopper.stop();
    };
    let (ended, ()) = tokio::join!(rig.intake.run(&sink, stop), story);
    assert!(ended.is_ok());
    assert_eq!(sink.taken().len(), 100);
    assert!(sink.calls() >= 10, "{} calls: a batch is no larger than what may be in hand", sink.calls());
}

#[tokio::test]
async fn limits_of_nothing_let_one_message_after_the_other_through() {
    for takes in [Takes::RetryMessages, Takes::HandOffs] {
        let limits = RabbitmqIntakeConfig { takes, batch_max: 0, in_hand_bytes_max: 0, ..Default::default() };
        let rig = rig_of(limits).await;
        rig.put(Bytes::from_static(b"a")).await;
        rig.put(Bytes::from_static(b"b")).await;
        let sink = ScriptedSink::new(Answers::New);
        let (stopper, stop) = stop_pair();
        let story = async {
            while rig.peer.unacknowledged() > 0 {
                tokio::task::yield_now().await;
            }
            stopper.stop();
        };
        let (ended, ()) = tokio::join!(rig.intake.run(&sink, stop), story);
        assert!(ended.is_ok());
        assert_eq!(sink.taken().len(), 2);
    }
}

#[tokio::test]
async fn a_stop_with_full_hands_is_prompt() {
    let (takes, in_hand_bytes_max) = (Takes::HandOffs, 10_000);
    let rig = rig_of(RabbitmqIntakeConfig { takes, in_hand_bytes_max, ..Default::default() }).await;
    for _ in 0..100 {
        rig.put(vec![b'x'; 1_000].into()).await;
    }
    let sink = ScriptedSink::new(Answers::Waits);
    let (stopper, stop) = stop_pair();
    let story = async {
        sink.called(1).await;
        stopper.stop();
        sink.answer(Answers::New);
    };
    let running = async { tokio::join!(rig.intake.run(&sink, stop), story).0 };
    let ended = tokio::time::timeout(Duration::from_secs(5), running).await;
    assert!(ended.is_ok_and(|ended| ended.is_ok()), "the broker's answer is not waited for in vain");
}
