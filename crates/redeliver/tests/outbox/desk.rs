//! A transport that the story itself holds open or closed.

use std::sync::Arc;
use std::time::Duration;

use redeliver::{Envelope, Name, Outcome, Transport};
use tokio::sync::Semaphore;

/// Takes what it is given when the story lets it.
pub struct Desk {
    /// One permit for every carrying that began.
    begun: Semaphore,
    /// One permit for every carrying that may end.
    allowed: Semaphore,
}

impl Desk {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { begun: Semaphore::new(0), allowed: Semaphore::new(0) })
    }

    /// Waits until one more carrying has begun.
    pub async fn wait_for_one(&self) {
        self.begun.acquire().await.unwrap().forget();
    }

    /// Whether a carrying has begun that nobody waited for.
    pub fn has_one(&self) -> bool {
        self.begun.available_permits() > 0
    }

    /// Lets one carrying end.
    pub fn take_one(&self) {
        self.allowed.add_permits(1);
    }
}

#[redeliver::async_trait]
impl Transport for Desk {
    async fn carry(&self, _: &Envelope<'_>, _: Duration) -> Outcome {
        self.begun.add_permits(1);
        self.allowed.acquire().await.unwrap().forget();
        Outcome::Delivered { receipt: Some("taken".into()) }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "desk".into()
    }
}
