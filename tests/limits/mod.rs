//! A fleet whose routes have limits, receivers that note when each mail arrives, and the verdict on both.
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a story that can't go on has failed"
)]

pub mod fleet;
pub mod judge;
pub mod receiver;

use std::time::Duration;

/// The route with a rate. It is low, so that the processor of a busy machine is no factor.
pub const LIMITED: &str = "limited";
/// Sends a second on it.
pub const RATE: usize = 10;
/// The route with a concurrency limit.
pub const SLOW: &str = "slow";
/// Sends at once on it.
pub const AT_ONCE: usize = 6;
/// How long the receiver takes for a mail of it.
pub const SLOW_FOR: Duration = Duration::from_secs(2);

/// Waits until this time.
pub fn wait_until(time: Duration) {
    std::thread::sleep(time.saturating_sub(receiver::now()));
}
