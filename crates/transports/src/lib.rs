//! Carries messages out, one adapter for each kind of destination.
//!
//! An adapter carries once and reports; it never retries by itself, and adapters never import one another.

mod address;
mod encryption;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod rabbitmq;
#[cfg(feature = "redis")]
pub mod redis;
pub mod scripted;
pub mod smtp;
