//! The Redis transport keeps the rules for transports, against a server that behaves as it is told; and is not brought
//! down by one that answers nonsense.
#![cfg(feature = "redis")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod redis_peer;

use std::time::Duration;

use async_trait::async_trait;
use redeliver_conformance::make;
use redeliver_conformance::transport::{Manner, Seen, TransportRig};
use redeliver_core::{Content, Outcome, Timestamp};
use redeliver_engine::clock::WallClock;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_transports::redis::{RedisConfig, RedisTransport, ServerConfig, Servers};

use redis_peer::Peer;

struct Rig {
    transport: RedisTransport,
    peer: Peer,
}

fn transport_to(peer: &Peer) -> RedisTransport {
    let server = ServerConfig { servers: Servers::parse(&peer.url()).ok(), ..ServerConfig::default() };
    let config = RedisConfig { server, ..RedisConfig::default() };
    RedisTransport::new("redis", config, WallClock::new(Timestamp::default())).unwrap()
}

async fn rig() -> Rig {
    let peer = Peer::start().await;
    Rig { transport: transport_to(&peer), peer }
}

fn content(n: u32) -> Content {
    Content { target: Some("orders".into()), ..Content::of_bytes(format!("body {n}")) }
}

async fn carry(transport: &RedisTransport, n: u32) -> Outcome {
    let (message, content) = (make::message(n), content(n));
    let target = content.target.as_deref();
    transport.carry(&Envelope { message: &message, content: &content, target }, Duration::from_secs(30)).await
}

#[async_trait]
impl TransportRig for Rig {
    fn transport(&self) -> &dyn Transport {
        &self.transport
    }

    async fn behave(&self, manner: Manner) {
        if manner == Manner::Silent {
            // It is reached, and has been heard of, before it falls silent.
            carry(&self.transport, 99).await;
            self.peer.forget();
        }
        self.peer.behave(manner).await;
    }

    async fn seen(&self) -> Vec<Seen> {
        self.peer.seen()
    }

    fn content(&self, n: u32) -> Content {
        content(n)
    }
}

redeliver_conformance::transport_tests!(rig().await);

#[test]
fn an_answer_that_makes_no_sense_is_no_word_on_a_message() {
    let nonsense: [&[u8]; 14] = [
        b"",
        b"\xff\xff\xff",
        b"+1-1",
        b":x\r\n",
        b":1\r\n",
        b"$-1\r\n",
        b"*-1\r\n",
        b"*9223372036854775807\r\n",
        b"*1000000000\r\n",
        b"$9223372036854775807\r\n",
        b"%4611686018427387904\r\n",
        b"|0\r\n",
        b"!-1\r\n",
        b">1\r\n+x\r\n",
    ];
    redeliver_conformance::judge(async {
        for answer in nonsense {
            let peer = Peer::answering(answer).await;
            let transport = transport_to(&peer);
            let outcome = carry(&transport, 1).await;
            let shown = String::from_utf8_lossy(answer);
            assert!(matches!(outcome, Outcome::Lost { .. }), "{shown:?}: {outcome:?}");
            // Its connection is left, and the next one goes as far.
            let outcome = carry(&transport, 2).await;
            let is_as_far = matches!(outcome, Outcome::Lost { .. });
            assert!(is_as_far, "{shown:?}: {outcome:?}");
        }
    });
}
