//! Settles what nobody else will: lost leases, overdue reports, messages past their expiry or never to be claimed.

use redeliver_core::planted::{self, Bug};
use redeliver_core::settle::{expire, lapse, overdue, rescue};
use redeliver_core::{Change, Message, Route, State, Timestamp};

use crate::engine::Engine;
use crate::store::{Applied, StoreError};

/// Messages settled at once, at most.
const BATCH_MAX: usize = 500;

/// The result of one turn of the reaper.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Reaped {
    /// Messages settled.
    pub settled: usize,
    /// Whether a batch was full, so that there is probably more.
    pub has_more: bool,
}

impl Engine {
    /// Settles a batch of each kind: lost, overdue, expired, stranded.
    pub async fn reap(&self) -> Result<Reaped, StoreError> {
        let now = self.clock.now();
        let mut lapsed = self.store.lapsed(now, BATCH_MAX).await?;
        lapsed.retain(|message| !self.holds(message, now));
        let overdue_ones = match planted::is(Bug::OverdueIgnored) {
            true => Vec::new(),
            false => self.store.overdue(now, BATCH_MAX).await?,
        };
        let expired = self.store.expired(now, BATCH_MAX).await?;
        let stranded = self.store.stranded(now, BATCH_MAX).await?;
        let is_full =
            [&lapsed, &overdue_ones, &expired, &stranded].iter().any(|found| found.len() == BATCH_MAX);
        let settled = self.settle_all(&lapsed, now, lapse).await?
            + self.settle_all(&overdue_ones, now, overdue).await?
            + self.settle_all(&expired, now, expire).await?
            + self.settle_all(&stranded, now, rescue).await?;
        // Messages of routes that the config no longer has are found each time and never settled.
        Ok(Reaped { settled, has_more: is_full && settled > 0 })
    }

    /// Whether this instance itself has the message: its worker will settle it, however late, or a claim is still on its
    /// way here. The store may take us for silent while our own heartbeat is under way.
    fn holds(&self, message: &Message, now: Timestamp) -> bool {
        let State::Claimed(lease) = &message.state else { return false };
        let Some(line) = self.lines.get(&message.route) else { return false };
        let has_worker = || line.held().get(&message.id).is_some_and(|held| held.claim.claim == lease.claim);
        lease.instance == self.instance && (lease.until_at > now || has_worker())
    }

    async fn settle_all(
        &self,
        found: &[Message],
        now: Timestamp,
        decide: fn(&Message, &Route, Timestamp) -> Option<Change>,
    ) -> Result<usize, StoreError> {
        // A message whose route the config no longer knows stays as it is, for a person to see.
        let decide = |message| Some((message, decide(message, self.route(&message.route)?, now)?));
        let (before, changes): (Vec<&Message>, Vec<Change>) = found.iter().filter_map(decide).unzip();
        if changes.is_empty() {
            return Ok(0);
        }
        let settled: Vec<_> = before
            .into_iter()
            .zip(&changes)
            .map(|(before, change)| (before, change.event.clone(), change.message.clone()))
            .collect();
        let letters: Vec<_> =
            changes.iter().filter_map(|change| Some(change.spawn.as_ref()?.message.clone())).collect();
        let answers = self.store.apply(changes).await?;
        let mut count = 0;
        for ((before, event, after), answer) in settled.iter().zip(answers) {
            match answer {
                Applied::Applied | Applied::AlreadyMine => {
                    count += 1;
                    self.observer.observe(event);
                    if matches!(before.state, State::Claimed(_)) {
                        self.observer.lease_lost(before);
                    }
                    self.wake_for(after);
                }
                // Somebody else was faster, which is as good.
                Applied::Superseded(_) => {}
            }
        }
        letters.iter().for_each(|letter| self.wake_for(letter));
        Ok(count)
    }
}
