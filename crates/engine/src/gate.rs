//! The port to whatever may stand between a due message and its try.

use async_trait::async_trait;
use redeliver_core::gate::Verdict;
use redeliver_core::{Content, Message, Timestamp};

/// Asked before every attempt. A check that can't be made defers; it doesn't kill.
#[async_trait]
pub trait Gate: Send + Sync + 'static {
    /// The gate's name, as people see it in an explanation.
    fn name(&self) -> &str;

    /// What it says about this message now.
    async fn check(&self, message: &Message, content: &Content, now: Timestamp) -> Verdict;

    /// What it would say about this message, as far as it knows without asking anybody: for whoever wants to know why
    /// a message waits.
    fn known(&self, _message: &Message, _content: &Content, _now: Timestamp) -> Option<Verdict> {
        None
    }
}
