//! A real Redis: whoever looks into it, and a transport that writes to it.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../carrying/mod.rs"]
mod carrying;

use std::time::Duration;

use redeliver_core::Timestamp;
use redeliver_engine::clock::WallClock;
use redeliver_transports::redis::{RedisConfig, RedisTransport, ServerConfig, Servers};

pub use carrying::*;

pub fn server_config(url: &str) -> ServerConfig {
    ServerConfig {
        servers: Some(Servers::parse(url).unwrap()),
        connect_timeout: WITHIN,
        reply_timeout: WITHIN,
        ..ServerConfig::default()
    }
}

pub fn config(url: &str) -> RedisConfig {
    RedisConfig { server: server_config(url), ..RedisConfig::default() }
}

pub fn transport(config: RedisConfig) -> RedisTransport {
    RedisTransport::new("redis", config, WallClock::new(Timestamp::default())).unwrap()
}

/// Ends when something is so.
pub async fn until(what: &str, is_so: impl Fn() -> bool) {
    let looking = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let seen = tokio::time::timeout(WITHIN, looking).await;
    assert!(seen.is_ok(), "not within {WITHIN:?}: {what}");
}
