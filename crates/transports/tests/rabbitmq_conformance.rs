//! The RabbitMQ transport keeps the rules for transports, against a broker that behaves as it is told.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod amqp_peer;

use std::time::Duration;

use async_trait::async_trait;
use redeliver_conformance::make;
use redeliver_conformance::transport::{Manner, Seen, TransportRig};
use redeliver_core::{Content, Outcome, Timestamp};
use redeliver_engine::clock::WallClock;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_transports::rabbitmq::{Broker, BrokerConfig, RabbitmqConfig, RabbitmqTransport};

use amqp_peer::{LEADERLESS, Peer};

struct Rig {
    transport: RabbitmqTransport,
    peer: Peer,
}

async fn rig() -> Rig {
    rig_with(RabbitmqConfig::default()).await
}

async fn rig_with(config: RabbitmqConfig) -> Rig {
    let peer = Peer::start().await;
    let broker = BrokerConfig { broker: Broker::parse(&peer.url()).ok(), ..BrokerConfig::default() };
    let config = RabbitmqConfig { broker, ..config };
    let transport = RabbitmqTransport::new("rabbitmq", config, WallClock::new(Timestamp::default()));
    Rig { transport: transport.unwrap(), peer }
}

#[async_trait]
impl TransportRig for Rig {
    fn transport(&self) -> &dyn Transport {
        &self.transport
    }

    async fn behave(&self, manner: Manner) {
        if manner == Manner::Silent {
            // It is reached, and has been heard of, before it falls silent.
            let (message, content) = (make::message(99), self.content(99));
            let target = content.target.as_deref();
            let envelope = Envelope { message: &message, content: &content, target };
            self.transport.carry(&envelope, Duration::from_secs(30)).await;
            self.peer.forget();
        }
        self.peer.behave(manner).await;
    }

    async fn seen(&self) -> Vec<Seen> {
        self.peer.seen()
    }

    fn content(&self, n: u32) -> Content {
        Content { target: Some("orders".into()), ..Content::of_bytes(format!("body {n}")) }
    }
}

redeliver_conformance::transport_tests!(rig().await);

#[tokio::test]
async fn a_queue_of_ours_that_does_not_answer_keeps_no_message_for_others_waiting() {
    let queues = vec![LEADERLESS.to_owned()];
    let rig = rig_with(RabbitmqConfig { queues, ..RabbitmqConfig::default() }).await;
    let (message, content) = (make::message(1), rig.content(1));
    let envelope = Envelope { message: &message, content: &content, target: content.target.as_deref() };
    let outcome = rig.transport.carry(&envelope, Duration::from_secs(60)).await;
    assert!(matches!(outcome, Outcome::Delivered { .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_connection_that_confirms_nothing_or_takes_nothing_is_left_for_a_new_one() {
    for manner in [Manner::Silent, Manner::Fails] {
        let confirm_timeout = Duration::from_secs(2);
        let rig = rig_with(RabbitmqConfig { confirm_timeout, ..RabbitmqConfig::default() }).await;
        rig.peer.treat_next(manner);
        let (message, content) = (make::message(1), rig.content(1));
        let envelope = Envelope { message: &message, content: &content, target: content.target.as_deref() };
        let carry = || rig.transport.carry(&envelope, Duration::from_secs(60));
        let first = carry().await;
        assert!(matches!(first, Outcome::Lost { .. } | Outcome::Failed(_)), "{first:?}");
        // A machine that is busy may take longer than that over what it confirms at once.
        let taken = async {
            loop {
                match carry().await {
                    Outcome::Lost { .. } => {}
                    other => return other,
                }
            }
        };
        let second = tokio::time::timeout(Duration::from_secs(60), taken).await.unwrap();
        assert!(matches!(second, Outcome::Delivered { .. }), "{manner:?}: {second:?}");
    }
}

#[tokio::test]
async fn a_broker_that_was_gone_a_moment_ago_may_say_no_without_costing_a_try() {
    let rig = rig().await;
    let (message, content) = (make::message(1), rig.content(1));
    let envelope = Envelope { message: &message, content: &content, target: content.target.as_deref() };
    let carry = || rig.transport.carry(&envelope, Duration::from_secs(60));
    rig.peer.behave(Manner::Away).await;
    assert!(matches!(carry().await, Outcome::Deferred { .. }));
    rig.peer.behave(Manner::Fails).await;
    for _ in 0..2 {
        let no = carry().await;
        assert!(matches!(&no, Outcome::Deferred { reason, .. } if reason.contains("a moment ago")), "{no:?}");
    }
}

#[tokio::test]
async fn a_nack_is_a_failure_only_if_the_queue_is_full_or_has_no_leader() {
    for (target, depth, is_lost) in [
        ("orders", Some(3), false),
        (LEADERLESS, Some(0), false),
        ("orders", Some(0), true),
        ("orders", None, true),
    ] {
        let rig = rig().await;
        rig.peer.behave(Manner::Fails).await;
        rig.peer.hold(depth);
        let (message, content) = (make::message(1), rig.content(1));
        let envelope = Envelope { message: &message, content: &content, target: Some(target) };
        let outcome = rig.transport.carry(&envelope, Duration::from_secs(60)).await;
        match is_lost {
            true => assert!(matches!(outcome, Outcome::Lost { .. }), "{target} {depth:?}: {outcome:?}"),
            false => assert!(matches!(outcome, Outcome::Failed(_)), "{target} {depth:?}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn a_nack_is_lost_if_the_message_may_have_gone_to_other_queues_too() {
    let copies =
        |name: &str| Content { headers: vec![(name.to_owned(), "emails".into())], ..Content::of_bytes("a") };
    for (exchange, content) in [("events", Content::of_bytes("a")), ("", copies("CC")), ("", copies("BCC"))] {
        let rig =
            rig_with(RabbitmqConfig { exchange: exchange.to_owned(), ..RabbitmqConfig::default() }).await;
        rig.peer.behave(Manner::Fails).await;
        let message = make::message(1);
        let envelope = Envelope { message: &message, content: &content, target: Some("orders") };
        let outcome = rig.transport.carry(&envelope, Duration::from_secs(60)).await;
        assert!(matches!(outcome, Outcome::Lost { .. }), "{exchange} {content:?}: {outcome:?}");
    }
}
