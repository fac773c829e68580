//! The port to whatever carries messages out.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::settle::recipients_left;
use redeliver_core::{AttemptId, Content, Message, Name, Outcome};

/// Carries one message out, once. It can't fail, only report, and never retries by itself.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Carries the message and says what came of it. It has `within` to do so; then it is dropped, and the
    /// message counts as lost.
    async fn carry(&self, envelope: &Envelope<'_>, within: Duration) -> Outcome;

    /// Hears what came of a message that it carried, once that is written down.
    fn settled(&self, _message: &Message, _outcome: &Outcome) {}

    /// Whether word of a death is to tell what the dead one has been through.
    fn tells_history(&self) -> bool {
        false
    }

    /// Where this message would go, as breakers, holds and limits know it: a host, a queue, a cluster.
    fn destination(&self, envelope: &Envelope<'_>) -> Name;

    /// The destination, where every message has the same: no more is then claimed than its limits admit.
    fn fixed_destination(&self) -> Option<Name> {
        None
    }

    /// Whether what it carries are e-mails, whatever a single message looks like.
    fn carries_emails(&self) -> bool {
        false
    }

    /// What it lacks to carry anything at all, and what to do about it, in words for people. Messages wait meanwhile.
    fn lacks(&self) -> Option<Arc<str>> {
        None
    }
}

/// One message as a transport sees it.
#[derive(Debug)]
pub struct Envelope<'a> {
    /// Its standing.
    pub message: &'a Message,
    /// What it carries.
    pub content: &'a Content,
    /// The target: the message's own, or its route's.
    pub target: Option<&'a str>,
}

impl Envelope<'_> {
    /// The name of this try, the same if it is carried again after a loss.
    pub fn attempt_id(&self) -> AttemptId {
        AttemptId::of(self.message)
    }

    /// Whether an earlier carrying of this very try may have arrived.
    pub fn may_be_repeated(&self) -> bool {
        self.message.losses > 0 || self.message.unconfirmed > 0
    }

    /// Which of `count` recipients this try is for.
    pub fn recipients_left(&self, count: u32) -> Vec<u32> {
        recipients_left(self.message, count)
    }
}
