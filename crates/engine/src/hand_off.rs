//! Hands messages to an outside worker through a broker, whatever the broker is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::outcome::Until;
use redeliver_core::{Failure, Message, Name, Outcome};

use crate::clock::Clock;
use crate::transport::{Envelope, Transport};

/// A transport whose receiver is not the last one: what it took is handed off, and what it did not take was no try.
pub struct HandOff {
    by: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    /// How soon something is offered again that was not taken, unless the broker said when.
    again_after: Duration,
}

impl HandOff {
    /// Hands off by this transport.
    pub fn new(by: Arc<dyn Transport>, clock: Arc<dyn Clock>, again_after: Duration) -> Self {
        Self { by, clock, again_after }
    }

    /// Nothing was sent: it waits, and nothing is counted.
    fn not_taken(&self, failure: &Failure) -> Outcome {
        let wait = failure.retry_after.unwrap_or(self.again_after);
        let code = failure.code.as_deref().map(|code| format!("{code}: ")).unwrap_or_default();
        let reason = format!("{code}{}", failure.text).into();
        Outcome::Deferred { until: Until::At(self.clock.now().plus(wait)), reason }
    }
}

#[async_trait]
impl Transport for HandOff {
    async fn carry(&self, envelope: &Envelope<'_>, within: Duration) -> Outcome {
        match self.by.carry(envelope, within).await {
            Outcome::Delivered { .. } | Outcome::Partial(_) => Outcome::HandedOff,
            Outcome::Failed(failure) | Outcome::Refused(failure) => self.not_taken(&failure),
            other @ (Outcome::HandedOff
            | Outcome::Deferred { .. }
            | Outcome::Skipped { .. }
            | Outcome::Lost { .. }) => other,
        }
    }

    fn settled(&self, message: &Message, outcome: &Outcome) {
        self.by.settled(message, outcome);
    }

    fn destination(&self, envelope: &Envelope<'_>) -> Name {
        self.by.destination(envelope)
    }

    fn fixed_destination(&self) -> Option<Name> {
        self.by.fixed_destination()
    }

    fn carries_emails(&self) -> bool {
        self.by.carries_emails()
    }

    fn lacks(&self) -> Option<Arc<str>> {
        self.by.lacks()
    }
}
