//! What a run of faults is made of: a fleet, what is said to it, what happens to it, and what is made of that in the end.
#![allow(clippy::disallowed_methods, reason = "real processes take real time: what they do is polled for")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a story that can't go on has failed"
)]

pub mod fleet;
pub mod generate;
pub mod judge;
pub mod ledger;
pub mod nemesis;

use std::time::Duration;

/// How long a run is, and how strict.
pub struct Plan {
    /// It goes on for at least so long.
    pub span: Duration,
    /// And until so many mails have been answered for.
    pub messages: usize,
    /// How long a claim lasts. A long one shows that silence is enough to lose it.
    pub lease: &'static str,
    /// How long after an instance was killed or stopped others must have taken its mails.
    pub reaped_within: Duration,
}

impl Plan {
    /// The short form, or what `CHAOS_MINUTES` and `CHAOS_MESSAGES` ask for.
    pub fn read() -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.trim().parse::<u64>().ok());
        match (number("CHAOS_MINUTES"), number("CHAOS_MESSAGES")) {
            (None, None) => Self {
                span: Duration::ZERO,
                messages: 500,
                lease: "6s",
                // The promise is 15 s on a machine that isn't busy with every other test.
                reaped_within: Duration::from_secs(40),
            },
            (minutes, messages) => Self {
                span: Duration::from_secs(60 * minutes.unwrap_or(0)),
                messages: messages.unwrap_or(0) as usize,
                lease: "30s",
                reaped_within: Duration::from_secs(15),
            },
        }
    }
}
