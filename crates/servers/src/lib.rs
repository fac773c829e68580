//! Starts real servers for tests, each on a port and in a directory of its own.
//!
//! A server goes with whoever started it: when its value is dropped, or when the process is gone in whatever way.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a server that is missing is how a test fails"
)]

mod guard;
pub mod pgbouncer;
pub mod postgres;
pub mod rabbitmq;

use std::net::TcpListener;

/// A port of this machine that nobody uses at this moment.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("this machine has a free port");
    listener.local_addr().expect("it is bound").port()
}
