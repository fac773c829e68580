//! Writes to the streams, lists and sorted sets of a Redis server, and takes what comes to a stream.

mod classify;
mod config;
mod dial;
mod entry;
mod inbound;
mod line;
mod outbound;
mod reading;
mod slots;
mod ways;

pub use classify::INVALID;
pub use config::{Kind, OnConfirm, RedisConfig, Secret, ServerConfig, Servers, Structure};
pub use inbound::{RedisIntake, RedisIntakeConfig, Takes};
pub use outbound::{RedisTransport, UNCONFIGURED};
pub use reading::{Entry, Reading, ReadingConfig, Taker};
