//! Stands where there is no transport: in a process that only accepts, and where no mail server is named.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::outcome::Until;
use redeliver_core::{Name, Outcome};
use redeliver_engine::clock::Clock;
use redeliver_engine::transport::{Envelope, Transport};

/// How long a message is left alone that nobody can carry.
const WAIT: Duration = Duration::from_secs(60);

/// Carries nothing: messages wait, and no try is counted.
pub(crate) struct Absent {
    name: Name,
    clock: Arc<dyn Clock>,
}

impl Absent {
    pub(crate) fn new(name: Name, clock: Arc<dyn Clock>) -> Self {
        Self { name, clock }
    }
}

#[async_trait]
impl Transport for Absent {
    async fn carry(&self, _: &Envelope<'_>, _: Duration) -> Outcome {
        let reason = format!("no {} server is configured: name one when the outbox is opened", self.name);
        Outcome::Deferred { until: Until::At(self.clock.now().plus(WAIT)), reason: reason.into() }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        self.name.clone()
    }
}
