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
    rig_with(Vec::new()).await
}

/// The same where these queues are made if they are missing.
async fn rig_with(queues: Vec<String>) -> Rig {
    let peer = Peer::start().await;
    let broker = BrokerConfig { broker: Broker::parse(&peer.url()).ok(), ..BrokerConfig::default() };
    let config = RabbitmqConfig { broker, queues, ..RabbitmqConfig::default() };
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
    let rig = rig_with(vec![LEADERLESS.to_owned()]).await;
    let (message, content) = (make::message(1), rig.content(1));
    let envelope = Envelope { message: &message, content: &content, target: content.target.as_deref() };
    let outcome = rig.transport.carry(&envelope, Duration::from_secs(60)).await;
    assert!(matches!(outcome, Outcome::Delivered { .. }), "{outcome:?}");
}
