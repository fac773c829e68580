//! Whom a workspace writes to no more: unsubscribed, bounced, or put on the list by a person.

use std::sync::Arc;

use redeliver_core::change::Audit;
use redeliver_core::gate::GateKey;
use redeliver_core::{Name, Timestamp};

use super::CampaignError;
use crate::campaigns::Suppression;
use crate::engine::Engine;

impl Engine {
    /// Puts addresses on a workspace's list. Says how many are new.
    pub async fn suppress(
        &self,
        workspace: &str,
        addresses: Vec<Suppression>,
        actor: &Arc<str>,
    ) -> Result<u64, CampaignError> {
        let now = self.clock.now();
        let addresses = addresses
            .into_iter()
            .map(|one| Suppression { address: one.address.to_lowercase(), ..one })
            .collect();
        let audit = Audit {
            actor: actor.clone(),
            action: "suppress",
            subject: subject(workspace),
            at: now,
            detail: None,
        };
        Ok(self.desk("")?.store.suppress(workspace, addresses, now, Some(audit)).await?)
    }

    /// Takes an address off a workspace's list, and lets what waited for that look again. Says whether it was there.
    pub async fn unsuppress(
        &self,
        workspace: &str,
        address: &str,
        actor: &Arc<str>,
    ) -> Result<bool, CampaignError> {
        let at = self.clock.now();
        let audit = Audit {
            actor: actor.clone(),
            action: "unsuppress",
            subject: subject(workspace),
            at,
            detail: None,
        };
        let was_there =
            self.desk("")?.store.unsuppress(workspace, &address.to_lowercase(), audit.clone()).await?;
        if was_there {
            // Those who are still on the list come back to it.
            self.set_gate(GateKey::suppression(workspace), None, Some(audit)).await?;
            self.wake_all();
        }
        Ok(was_there)
    }

    /// The addresses of a workspace's list behind one, in order, each with since when.
    pub async fn suppressions(
        &self,
        workspace: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(Suppression, Timestamp)>, CampaignError> {
        Ok(self.desk("")?.store.suppressions(workspace, after, limit).await?)
    }
}

/// The subject of a deed: never an address.
fn subject(workspace: &str) -> Name {
    format!("workspace:{workspace}").into()
}
