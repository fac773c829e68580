//! Measures how fast messages go to a Redis stream: by this transport, and beside it by the bare client that it stands on, the
//! same entries over one connection with as many under way, in turns, against the same server. `redis [MESSAGES] [ROUNDS]`
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that cannot go on has failed")]

mod measured;

use measured::{BODY_BYTES, WITHIN, carried, per_second};
use redeliver_conformance::make;
use redeliver_core::{AttemptId, Content, Timestamp};
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_servers::redis::RedisServer;
use redeliver_transports::redis::{RedisConfig, RedisTransport, ServerConfig, Servers};

/// Messages under way at once.
const WINDOW: usize = 1_000;

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|word| word.parse().unwrap()).collect();
    let messages = numbers.first().copied().unwrap_or(200_000);
    let rounds = numbers.get(1).copied().unwrap_or(3);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = RedisServer::start();
    for round in 1..=rounds {
        server.flush();
        let ours = runtime.block_on(ours(&server, messages));
        server.flush();
        let bare = runtime.block_on(bare(&server, messages));
        println!("round {round}: ours {ours:.0}/s, bare {bare:.0}/s, ratio {:.2}", ours / bare);
    }
}

async fn ours(server: &RedisServer, messages: usize) -> f64 {
    let servers = Some(Servers::parse(&server.url()).unwrap());
    let config = RedisConfig {
        server: ServerConfig { servers, reply_timeout: WITHIN, ..ServerConfig::default() },
        ..RedisConfig::default()
    };
    let clock = WallClock::new(Timestamp::default());
    let transport = RedisTransport::new("redis", config, clock.clone()).unwrap();
    let content = Content {
        target: Some("measured".into()),
        content_type: Some("application/json".into()),
        ..Content::of_bytes(vec![b'x'; BODY_BYTES])
    };
    carried(&transport, &content, WINDOW, messages, &clock).await
}

/// The client by itself: a pipeline of as many entries after the other.
async fn bare(server: &RedisServer, messages: usize) -> f64 {
    let client = redis::Client::open(server.url()).unwrap();
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(WITHIN));
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
    let message = make::message(1);
    let (id, name) = (message.id.to_string(), AttemptId::of(&message).to_string());
    let body = vec![b'x'; BODY_BYTES];
    let clock = WallClock::new(Timestamp::default());
    let began = clock.uptime();
    let mut left = messages;
    while left > 0 {
        let count = left.min(WINDOW);
        let mut pipeline = redis::Pipeline::with_capacity(count);
        for _ in 0..count {
            let entry = pipeline.cmd("XADD").arg("measured").arg("*").arg("id").arg(&id);
            let entry = entry.arg("attempt_id").arg(&name).arg("priority").arg(message.lane.name());
            entry.arg("content_type").arg("application/json").arg("payload").arg(&body);
        }
        let answers: Vec<String> = pipeline.query_async(&mut connection).await.unwrap();
        assert_eq!(answers.len(), count);
        left -= count;
    }
    per_second(messages, &clock, began)
}
