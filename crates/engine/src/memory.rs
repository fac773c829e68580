//! The reference store: everything in memory, written so that it is plainly right.
//!
//! Other stores are judged by the same suite. It keeps nothing past the end of the process, and never awaits
//! while it holds its lock.

mod access;
mod campaigns;
mod index;
mod limits;
mod rows;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::attempt::AttemptRecord;
use redeliver_core::bulk::{Bulk, Standing};
use redeliver_core::change::{Audit, NewRow};
use redeliver_core::edit::EditRecord;
use redeliver_core::gate::{GateKey, GateRecord};
use redeliver_core::limit::Grant;
use redeliver_core::{Change, Content, InstanceId, Lane, Message, MessageId, Name, Timestamp};

use crate::store::{
    About, Applied, ClaimRef, ClaimRequest, Claims, Count, Deed, DeedFilter, Filter, GateChange, Inserted,
    LimitRequest, Living, PruneRequest, Pruned, Store, StoreError,
};
use rows::Rows;

/// A store that lives as long as its process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    rows: Mutex<Rows>,
}

/// Everything that a store knows at one moment, for a checker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// All messages.
    pub messages: BTreeMap<MessageId, Message>,
    /// Their histories, oldest first.
    pub attempts: BTreeMap<MessageId, Vec<AttemptRecord>>,
    /// Which message each workspace's key stands for, though it may be gone.
    pub keys: BTreeMap<(Name, Arc<str>), MessageId>,
    /// The gates that aren't simply open.
    pub gates: Vec<GateRecord>,
    /// What people did, oldest first.
    pub audit: Vec<Audit>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything there is, at this moment.
    pub fn snapshot(&self) -> Snapshot {
        self.lock().snapshot()
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        // A panic elsewhere in a test leaves rows that are still whole enough to look at.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn insert(&self, rows: Vec<NewRow>) -> Result<Vec<Inserted>, StoreError> {
        if let Some(row) = rows.iter().find(|row| matches!(row.message.id, MessageId::Row(_))) {
            return Err(StoreError::Unfit(format!("{} is a row of another table", row.message.id)));
        }
        let mut all = self.lock();
        Ok(rows.into_iter().map(|row| all.insert(row)).collect())
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, StoreError> {
        Ok(self.lock().claim(&request))
    }

    async fn start(&self, claim: ClaimRef, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.lock().start(&claim, now))
    }

    async fn renew(&self, claims: Vec<ClaimRef>, until_at: Timestamp) -> Result<Vec<bool>, StoreError> {
        let mut all = self.lock();
        Ok(claims.iter().map(|claim| all.renew(claim, until_at)).collect())
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<Applied>, StoreError> {
        let mut all = self.lock();
        Ok(changes.into_iter().map(|change| all.apply(change)).collect())
    }

    async fn note(&self, id: MessageId, record: AttemptRecord) -> Result<(), StoreError> {
        self.lock().note(&id, record);
        Ok(())
    }

    async fn lapsed(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        Ok(self.lock().lapsed(now, limit))
    }

    async fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        Ok(self.lock().overdue(now, limit))
    }

    async fn expired(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        Ok(self.lock().expired(now, limit))
    }

    async fn parked(&self) -> Result<Vec<GateKey>, StoreError> {
        Ok(self.lock().parked())
    }

    async fn release(&self, gate: GateKey, limit: usize) -> Result<usize, StoreError> {
        Ok(self.lock().release(gate, limit))
    }

    async fn gates(&self) -> Result<Vec<GateRecord>, StoreError> {
        Ok(self.lock().gates())
    }

    async fn put_gate(&self, change: GateChange) -> Result<bool, StoreError> {
        Ok(self.lock().put_gate(change))
    }

    async fn draw_limit(&self, request: LimitRequest) -> Result<Grant, StoreError> {
        Ok(self.lock().draw_limit(&request))
    }

    async fn forget_limits(&self, now: Timestamp) -> Result<usize, StoreError> {
        Ok(self.lock().forget_limits(now))
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned, StoreError> {
        Ok(self.lock().prune(&request))
    }

    async fn beat(
        &self,
        instance: InstanceId,
        now: Timestamp,
        silent_max: Duration,
    ) -> Result<(), StoreError> {
        self.lock().beat(instance, now, silent_max);
        Ok(())
    }

    async fn introduce(&self, instance: InstanceId, about: About) -> Result<(), StoreError> {
        self.lock().introduce(instance, about);
        Ok(())
    }

    async fn living(&self, now: Timestamp) -> Result<Vec<Living>, StoreError> {
        Ok(self.lock().living(now))
    }

    async fn leave(&self, instance: InstanceId) -> Result<(), StoreError> {
        self.lock().leave(instance);
        Ok(())
    }

    async fn get(&self, id: MessageId) -> Result<Option<Message>, StoreError> {
        Ok(self.lock().get(&id).map(|row| row.message.clone()))
    }

    async fn content(&self, id: MessageId) -> Result<Option<Content>, StoreError> {
        Ok(self.lock().get(&id).map(|row| row.content.clone()))
    }

    async fn attempts(&self, id: MessageId) -> Result<Vec<AttemptRecord>, StoreError> {
        Ok(self.lock().get(&id).map(|row| row.attempts.clone()).unwrap_or_default())
    }

    async fn edits(&self, id: MessageId) -> Result<Vec<EditRecord>, StoreError> {
        Ok(self.lock().get(&id).map(|row| row.edits.clone()).unwrap_or_default())
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Message>, StoreError> {
        Ok(self.lock().list(&filter))
    }

    async fn counts(&self, now: Timestamp) -> Result<Vec<Count>, StoreError> {
        Ok(self.lock().counts(now))
    }

    async fn next_due_at(&self, route: Name, lane: Lane) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.lock().next_due_at(&route, lane))
    }

    async fn put_bulk(&self, bulk: Bulk, audit: Option<Audit>) -> Result<bool, StoreError> {
        Ok(self.lock().put_bulk(bulk, audit))
    }

    async fn bulk(&self, id: Arc<str>) -> Result<Option<Bulk>, StoreError> {
        Ok(self.lock().bulk(&id))
    }

    async fn bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError> {
        Ok(self.lock().bulks(after.as_ref(), limit, |_| true))
    }

    async fn running_bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError> {
        Ok(self.lock().bulks(after.as_ref(), limit, |bulk| bulk.standing == Standing::Running))
    }

    async fn deeds(&self, filter: DeedFilter) -> Result<Vec<Deed>, StoreError> {
        Ok(self.lock().deeds(&filter))
    }

    async fn changed_outside(&self) -> Result<bool, StoreError> {
        Ok(false)
    }
}
