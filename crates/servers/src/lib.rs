//! Starts real servers for tests, each on a port and in a directory of its own.
//!
//! [`proxy`] is a network that fails as it is told to.
//!
//! A server goes with whoever started it: when its value is dropped, or when the process is gone in whatever way.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a server that is missing is how a test fails"
)]

mod guard;
pub mod kafka;
pub mod pgbouncer;
mod ports;
pub mod postgres;
pub mod proxy;
pub mod rabbitmq;
pub mod redis;

pub use ports::free_port;
