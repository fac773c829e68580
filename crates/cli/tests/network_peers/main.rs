//! A network that fails between the server and its peers, SMTP, RabbitMQ and Redis: messages end, copies are bounded, and the
//! queues drain once the network heals.
#![cfg(feature = "redis")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "that's how a test fails")]

mod faults;
#[path = "../process/mod.rs"]
mod process;
mod rabbitmq;
mod redis;
mod smtp;
#[path = "../../../../tests/story/mod.rs"]
mod story;
