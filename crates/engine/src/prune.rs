//! Deletes what has been put away for long enough. Never a message that waits or that is dead before a person's eyes.

use std::time::Duration;

use redeliver_core::Name;
use redeliver_core::planted::{self, Bug};

use crate::engine::Engine;
use crate::store::{PruneRequest, Pruned, StoreError};

/// How long every message stays after its end, whatever its route keeps: whoever waits for one sees how it ended.
const SEEN_FOR: Duration = Duration::from_secs(2);

/// How long pruning rests after a turn with full batches, as a multiple of the time that the turn took: pruning has at
/// most half of the store's time. The busier the store is, the longer a turn takes, and the longer is the rest.
const REST: u32 = 1;
const REST_MIN: Duration = Duration::from_millis(1);

/// Which routes have more to delete.
#[derive(Default)]
pub(crate) struct Pruning {
    /// The routes whose last batch was full.
    full: Vec<Name>,
    /// Uptime at which all routes are looked at again, so that a route that is always full keeps nobody waiting.
    all_at: Duration,
}

impl Engine {
    /// Deletes a batch of each route that may have something to delete, and says how long to wait before the next turn.
    pub(crate) async fn prune(&self, pruning: &mut Pruning) -> Result<Duration, StoreError> {
        let begun = self.clock.uptime();
        let routes: Vec<Name> = if pruning.full.is_empty() || begun >= pruning.all_at {
            pruning.all_at = begun + self.settings.prune_interval;
            self.routes().map(|route| route.name.clone()).collect()
        } else {
            std::mem::take(&mut pruning.full)
        };
        pruning.full.clear();
        for route in routes {
            if self.prune_batch(&route).await? {
                pruning.full.push(route);
            }
        }
        let took = self.clock.uptime().saturating_sub(begun);
        if pruning.full.is_empty() || planted::is(Bug::PrunesOneBatch) {
            pruning.full.clear();
            return Ok(self.settings.prune_interval);
        }
        Ok((took * REST).clamp(REST_MIN, self.settings.prune_interval.max(REST_MIN)))
    }

    /// Deletes a batch of one route, and says whether it was full, so that there is probably more.
    async fn prune_batch(&self, name: &str) -> Result<bool, StoreError> {
        let Some(route) = self.route(name) else { return Ok(false) };
        let (now, limit) = (self.clock.now(), self.store.prune_at_once());
        let request = PruneRequest {
            route: route.name.clone(),
            before: now.minus(route.retention.max(SEEN_FOR)),
            key_retention: route.key_retention,
            now,
            limit,
        };
        let Pruned { messages, keys } = self.store.prune(request).await?;
        Ok(messages.max(keys) >= limit)
    }
}
