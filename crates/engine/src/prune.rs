//! Deletes what has been put away for long enough. Never a message that waits or that is dead before a person's eyes.

use std::time::Duration;

use crate::engine::Engine;
use crate::store::{PruneRequest, Pruned, StoreError};

/// Messages deleted at once, at most, so that nobody waits long for the store.
const BATCH_MAX: usize = 500;

/// How long every message stays after its end, whatever its route keeps: whoever waits for one sees how it ended.
const SEEN_FOR: Duration = Duration::from_secs(2);

impl Engine {
    /// Deletes a batch of each route. Says whether one of them was full, so that there is probably more.
    pub async fn prune(&self) -> Result<bool, StoreError> {
        let mut has_more = false;
        for route in self.routes() {
            let now = self.clock.now();
            let request = PruneRequest {
                route: route.name.clone(),
                before: now.minus(route.retention.max(SEEN_FOR)),
                key_retention: route.key_retention,
                now,
                limit: BATCH_MAX,
            };
            let Pruned { messages, keys } = self.store.prune(request).await?;
            has_more |= messages.max(keys) >= BATCH_MAX;
        }
        Ok(has_more)
    }
}
