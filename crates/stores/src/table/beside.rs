//! The product's own store and any number of applications' tables, as one store.
//!
//! A route says whose a message is, and so does its id. Everything that a table has no place for is in the own store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::attempt::AttemptRecord;
use redeliver_core::bulk::Bulk;
use redeliver_core::change::{Audit, NewRow};
use redeliver_core::edit::EditRecord;
use redeliver_core::gate::{GateKey, GateRecord};
use redeliver_core::limit::Grant;
use redeliver_core::{Change, Content, InstanceId, Lane, Message, MessageId, Name, Timestamp};
use redeliver_engine::store::{
    About, Applied, ClaimRef, ClaimRequest, Claims, Count, Deed, DeedFilter, Filter, GateChange, Inserted,
    LimitRequest, Living, PruneRequest, Pruned, Store, StoreError,
};

use super::TableStore;

/// A store of our own, with tables beside it.
pub struct Beside {
    own: Arc<dyn Store>,
    tables: Vec<TableStore>,
}

impl Beside {
    /// These tables beside this store.
    pub fn new(own: Arc<dyn Store>, tables: Vec<TableStore>) -> Self {
        Self { own, tables }
    }

    fn of_route(&self, route: &str) -> Option<&TableStore> {
        self.tables.iter().find(|table| &*table.mapping.route == route)
    }

    /// The place of the table whose row this is.
    fn place_of(&self, id: &MessageId) -> Option<usize> {
        match id {
            MessageId::Own(_) => None,
            MessageId::Row(_) => self.tables.iter().position(|table| table.row_id(id).is_some()),
        }
    }

    fn of_id(&self, id: &MessageId) -> Option<&TableStore> {
        self.tables.get(self.place_of(id)?)
    }

    /// Each store's part of these items.
    fn parts<T>(&self, items: Vec<T>, id: fn(&T) -> &MessageId) -> Vec<Part<'_, T>> {
        let mut parts: BTreeMap<Option<usize>, Part<'_, T>> = BTreeMap::new();
        for (place, item) in items.into_iter().enumerate() {
            let whose = self.place_of(id(&item));
            let table = whose.and_then(|whose| self.tables.get(whose));
            let part =
                parts.entry(whose).or_insert_with(|| Part { table, items: Vec::new(), places: Vec::new() });
            part.items.push(item);
            part.places.push(place);
        }
        parts.into_values().collect()
    }
}

/// What one of the stores is asked about, and the places of that among everything that was asked.
struct Part<'a, T> {
    table: Option<&'a TableStore>,
    items: Vec<T>,
    places: Vec<usize>,
}

#[async_trait]
impl Store for Beside {
    async fn insert(&self, rows: Vec<NewRow>) -> Result<Vec<Inserted>, StoreError> {
        if let Some(table) = rows.iter().find_map(|row| self.of_route(&row.message.route)) {
            let mapping = &table.mapping;
            return Err(StoreError::Unfit(format!(
                "route {} carries the rows of table {}: write the row there",
                mapping.route,
                mapping.table.quoted()
            )));
        }
        self.own.insert(rows).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, StoreError> {
        match self.of_route(&request.route) {
            Some(table) => table.claim(request).await,
            None => self.own.claim(request).await,
        }
    }

    async fn start(&self, claim: ClaimRef, now: Timestamp) -> Result<bool, StoreError> {
        match self.of_id(&claim.id) {
            // There is no place in a row for it: what is lost is published again.
            Some(table) => {
                let until_at = Timestamp::default();
                Ok(table.renew(&[claim], until_at).await?.pop().unwrap_or(false))
            }
            None => self.own.start(claim, now).await,
        }
    }

    async fn renew(&self, claims: Vec<ClaimRef>, until_at: Timestamp) -> Result<Vec<bool>, StoreError> {
        let mut answers = vec![false; claims.len()];
        for Part { table, items, places } in self.parts(claims, |claim| &claim.id) {
            let answered = match table {
                Some(table) => table.renew(&items, until_at).await?,
                None => self.own.renew(items, until_at).await?,
            };
            places.into_iter().zip(answered).for_each(|(place, answer)| answers[place] = answer);
        }
        Ok(answers)
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<Applied>, StoreError> {
        let mut answers = vec![Applied::Superseded(None); changes.len()];
        for Part { table, items, places } in self.parts(changes, |change| &change.message.id) {
            let answered = match table {
                Some(table) => table.apply(items).await?,
                None => self.own.apply(items).await?,
            };
            places.into_iter().zip(answered).for_each(|(place, answer)| answers[place] = answer);
        }
        Ok(answers)
    }

    async fn note(&self, id: MessageId, record: AttemptRecord) -> Result<(), StoreError> {
        match self.of_id(&id) {
            Some(table) => table.note(&id, record).await,
            None => self.own.note(id, record).await,
        }
    }

    async fn lapsed(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        let mut found = self.own.lapsed(now, limit).await?;
        for table in &self.tables {
            found.extend(table.lapsed(now, limit - found.len().min(limit)).await?);
        }
        Ok(found)
    }

    async fn stranded(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        let mut found = self.own.stranded(now, limit).await?;
        for table in &self.tables {
            found.extend(table.stranded(now, limit).await?);
        }
        Ok(found)
    }

    async fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        let mut found = self.own.overdue(now, limit).await?;
        for table in &self.tables {
            found.extend(table.overdue(now, limit - found.len().min(limit)).await?);
        }
        Ok(found)
    }

    async fn expired(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.own.expired(now, limit).await
    }

    async fn parked(&self) -> Result<Vec<GateKey>, StoreError> {
        self.own.parked().await
    }

    async fn release(&self, gate: GateKey, limit: usize) -> Result<usize, StoreError> {
        self.own.release(gate, limit).await
    }

    fn claims_at_once(&self) -> usize {
        self.own.claims_at_once()
    }

    fn prune_at_once(&self) -> usize {
        self.own.prune_at_once()
    }

    async fn gates(&self) -> Result<Vec<GateRecord>, StoreError> {
        self.own.gates().await
    }

    async fn put_gate(&self, change: GateChange) -> Result<bool, StoreError> {
        self.own.put_gate(change).await
    }

    async fn draw_limit(&self, request: LimitRequest) -> Result<Grant, StoreError> {
        self.own.draw_limit(request).await
    }

    async fn forget_limits(&self, now: Timestamp) -> Result<usize, StoreError> {
        self.own.forget_limits(now).await
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned, StoreError> {
        match self.of_route(&request.route) {
            // An application's row is the application's to delete.
            Some(_) => Ok(Pruned::default()),
            None => self.own.prune(request).await,
        }
    }

    async fn beat(
        &self,
        instance: InstanceId,
        now: Timestamp,
        silent_max: Duration,
    ) -> Result<(), StoreError> {
        self.own.beat(instance, now, silent_max).await
    }

    async fn introduce(&self, instance: InstanceId, about: About) -> Result<(), StoreError> {
        self.own.introduce(instance, about).await
    }

    async fn living(&self, now: Timestamp) -> Result<Vec<Living>, StoreError> {
        self.own.living(now).await
    }

    async fn leave(&self, instance: InstanceId) -> Result<(), StoreError> {
        self.own.leave(instance).await
    }

    async fn get(&self, id: MessageId) -> Result<Option<Message>, StoreError> {
        match self.of_id(&id) {
            Some(table) => table.get(&id).await,
            None => self.own.get(id).await,
        }
    }

    async fn content(&self, id: MessageId) -> Result<Option<Content>, StoreError> {
        match self.of_id(&id) {
            Some(table) => table.content(&id).await,
            None => self.own.content(id).await,
        }
    }

    async fn attempts(&self, id: MessageId) -> Result<Vec<AttemptRecord>, StoreError> {
        match self.of_id(&id) {
            Some(table) => table.attempts(&id).await,
            None => self.own.attempts(id).await,
        }
    }

    async fn edits(&self, id: MessageId) -> Result<Vec<EditRecord>, StoreError> {
        self.own.edits(id).await
    }

    /// One after the other, the own store first: a page that ends in one goes on in the next.
    async fn list(&self, filter: Filter) -> Result<Vec<Message>, StoreError> {
        let from = filter.after.as_ref().and_then(|id| self.place_of(id));
        let mut found = match from {
            Some(_) => Vec::new(),
            None => self.own.list(filter.clone()).await?,
        };
        for (place, table) in self.tables.iter().enumerate().skip(from.unwrap_or(0)) {
            let left = filter.limit.saturating_sub(found.len());
            if left == 0 {
                break;
            }
            let after = filter.after.clone().filter(|_| Some(place) == from);
            found.extend(table.list(&Filter { after, limit: left, ..filter.clone() }).await?);
        }
        Ok(found)
    }

    async fn counts(&self, now: Timestamp) -> Result<Vec<Count>, StoreError> {
        let mut counts = self.own.counts(now).await?;
        for table in &self.tables {
            counts.extend(table.counts(now).await?);
        }
        counts.sort();
        Ok(counts)
    }

    async fn next_due_at(&self, route: Name, lane: Lane) -> Result<Option<Timestamp>, StoreError> {
        match self.of_route(&route) {
            Some(table) => table.next_due_at(lane).await,
            None => self.own.next_due_at(route, lane).await,
        }
    }

    async fn put_bulk(&self, bulk: Bulk, audit: Option<Audit>) -> Result<bool, StoreError> {
        self.own.put_bulk(bulk, audit).await
    }

    async fn bulk(&self, id: Arc<str>) -> Result<Option<Bulk>, StoreError> {
        self.own.bulk(id).await
    }

    async fn bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError> {
        self.own.bulks(after, limit).await
    }

    async fn running_bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError> {
        self.own.running_bulks(after, limit).await
    }

    async fn deeds(&self, filter: DeedFilter) -> Result<Vec<Deed>, StoreError> {
        self.own.deeds(filter).await
    }

    async fn broken(&self) -> StoreError {
        self.own.broken().await
    }

    async fn changed_outside(&self) -> Result<bool, StoreError> {
        self.own.changed_outside().await
    }
}
