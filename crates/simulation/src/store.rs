//! A store that fails as stores do: slow, absent, or having done it without saying so. Tells the world of every write.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::attempt::AttemptRecord;
use redeliver_core::bulk::Bulk;
use redeliver_core::change::{Audit, NewRow};
use redeliver_core::edit::EditRecord;
use redeliver_core::gate::{GateKey, GateRecord};
use redeliver_core::limit::Grant;
use redeliver_core::{Change, Content, InstanceId, Message, MessageId, State, Timestamp};
use redeliver_engine::clock::Clock;
use redeliver_engine::store::{
    About, Applied, ClaimRef, ClaimRequest, Claims, Count, Deed, DeedFilter, Filter, GateChange, Inserted,
    LimitRequest, Living, PruneRequest, Pruned, Store, StoreError,
};

use crate::clock::SimHandle;
use crate::scenario::Lasting;
use crate::world::{SharedWorld, look};

/// How often, in a thousand calls, a store misbehaves.
#[derive(Clone, Copy, Debug)]
pub struct StoreFaults {
    /// It did nothing and says so.
    pub absent: u64,
    /// It did it, and the answer is lost.
    pub answer_lost: u64,
    /// It takes its time, before or after.
    pub slow: u64,
    /// How much time, at most.
    pub slow_ms_max: u64,
    /// Uptime from and until which no heartbeat of the first process comes through, in milliseconds.
    pub unheard_ms: (u64, u64),
}

/// The process whose heartbeats may not come through: the first one that is started.
const FIRST: usize = 1;

/// One process's connection to the store.
pub struct FaultyStore {
    /// The store itself.
    pub inner: Arc<dyn Store>,
    /// Who sees everything.
    pub world: SharedWorld,
    /// The time.
    pub clock: SimHandle,
    /// Whose connection.
    pub process: usize,
    /// How it fails.
    pub faults: StoreFaults,
}

impl FaultyStore {
    fn chance(&self, per_mille: u64) -> bool {
        let mut world = look(&self.world);
        if world.healed {
            return false;
        }
        let hit = world.rng.chance(per_mille);
        world.figures.store_faults += u64::from(hit);
        hit
    }

    async fn dawdle(&self) {
        let stays_slow = {
            let mut world = look(&self.world);
            world.healed && world.lasting == Lasting::SlowStore && world.rng.chance(self.faults.slow)
        };
        if stays_slow || self.chance(self.faults.slow) {
            let ms = look(&self.world).rng.between(1, self.faults.slow_ms_max);
            self.clock.sleep(Duration::from_millis(ms)).await;
        }
    }

    async fn before(&self) -> Result<(), StoreError> {
        self.dawdle().await;
        if self.chance(self.faults.absent) {
            return Err(StoreError::Unavailable("simulated: the store is away".to_owned()));
        }
        Ok(())
    }

    async fn after<T>(&self, answer: T) -> Result<T, StoreError> {
        self.dawdle().await;
        if self.chance(self.faults.answer_lost) {
            return Err(StoreError::Unavailable("simulated: the answer was lost".to_owned()));
        }
        Ok(answer)
    }

    /// Brings the mirror up to date with rows that a bulk write may have changed.
    async fn look_again(&self, which: impl Fn(&Message) -> bool) -> Result<(), StoreError> {
        let ids: Vec<MessageId> = look(&self.world)
            .mirror
            .values()
            .filter(|message| which(message))
            .map(|m| m.id.clone())
            .collect();
        for id in ids {
            let found = self.inner.get(id.clone()).await?;
            let mut world = look(&self.world);
            let Some(before) = world.mirror.remove(&id) else { continue };
            match found {
                Some(now) => {
                    if now.fence < before.fence {
                        world.violate(|| format!("the fence of {id} went down"));
                    }
                    world.mirror.insert(id, now);
                }
                None => {
                    if matches!(before.state, State::Dead { dismissed_at: None, .. })
                        || before.state.ended_at().is_none()
                    {
                        world.violate(|| format!("{id} was deleted while it was {:?}", before.state));
                    }
                    world.gone.insert(id, before);
                }
            }
        }
        Ok(())
    }

    async fn mirror_letter(&self, letter: Option<&NewRow>) -> Result<(), StoreError> {
        if let Some(letter) = letter
            && let Some(message) = self.inner.get(letter.message.id.clone()).await?
        {
            look(&self.world).spawned(&message);
        }
        Ok(())
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn insert(&self, rows: Vec<NewRow>) -> Result<Vec<Inserted>, StoreError> {
        self.before().await?;
        let answers = self.inner.insert(rows.clone()).await?;
        for (row, answer) in rows.iter().zip(&answers) {
            if *answer == Inserted::New {
                look(&self.world).inserted(row);
                self.mirror_letter(row.spawn.as_deref()).await?;
            }
        }
        self.after(answers).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, StoreError> {
        self.before().await?;
        let now = request.now;
        let claims = self.inner.claim(request).await?;
        for (message, _) in &claims.claimed {
            look(&self.world).claimed(message, now);
        }
        self.after(claims).await
    }

    async fn start(&self, claim: ClaimRef, now: Timestamp) -> Result<bool, StoreError> {
        self.before().await?;
        let answer = self.inner.start(claim.clone(), now).await?;
        if answer {
            look(&self.world).started(&claim.id, claim.claim, now);
        }
        self.after(answer).await
    }

    async fn renew(&self, claims: Vec<ClaimRef>, until_at: Timestamp) -> Result<Vec<bool>, StoreError> {
        self.before().await?;
        let answers = self.inner.renew(claims.clone(), until_at).await?;
        for (claim, renewed) in claims.iter().zip(&answers) {
            if *renewed {
                look(&self.world).renewed(&claim.id, claim.claim, until_at);
            }
        }
        self.after(answers).await
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<Applied>, StoreError> {
        self.before().await?;
        let answers = self.inner.apply(changes.clone()).await?;
        for (change, answer) in changes.iter().zip(&answers) {
            if *answer == Applied::Applied {
                look(&self.world).applied(self.process, change, self.clock.now());
                self.mirror_letter(change.spawn.as_deref()).await?;
            }
        }
        self.after(answers).await
    }

    async fn note(&self, id: MessageId, record: AttemptRecord) -> Result<(), StoreError> {
        self.before().await?;
        self.inner.note(id, record).await?;
        self.after(()).await
    }

    async fn lapsed(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.before().await?;
        let found = self.inner.lapsed(now, limit).await?;
        self.after(found).await
    }

    async fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.before().await?;
        let found = self.inner.overdue(now, limit).await?;
        self.after(found).await
    }

    async fn expired(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.before().await?;
        let found = self.inner.expired(now, limit).await?;
        self.after(found).await
    }

    async fn parked(&self) -> Result<Vec<GateKey>, StoreError> {
        self.before().await?;
        let found = self.inner.parked().await?;
        self.after(found).await
    }

    async fn release(&self, gate: GateKey, limit: usize) -> Result<usize, StoreError> {
        self.before().await?;
        let count = self.inner.release(gate.clone(), limit).await?;
        if count > 0 {
            let parked = |m: &Message| m.state == (State::Waiting { parked_for: Some(gate.clone()) });
            self.look_again(parked).await?;
        }
        self.after(count).await
    }

    /// As the most demanding store has it, so that a seed draws the same on each.
    fn claims_at_once(&self) -> usize {
        2
    }

    async fn gates(&self) -> Result<Vec<GateRecord>, StoreError> {
        self.before().await?;
        let found = self.inner.gates().await?;
        let found = self.after(found).await?;
        let mut world = look(&self.world);
        let now = self.clock.now();
        let process = self.process;
        world
            .seen_closed
            .retain(|(seer, key), _| *seer != process || found.iter().any(|record| record.key == *key));
        for record in &found {
            world.seen_closed.entry((process, record.key.clone())).or_insert(now);
        }
        drop(world);
        Ok(found)
    }

    async fn put_gate(&self, change: GateChange) -> Result<bool, StoreError> {
        self.before().await?;
        let answer = self.inner.put_gate(change).await?;
        self.after(answer).await
    }

    async fn draw_limit(&self, request: LimitRequest) -> Result<Grant, StoreError> {
        self.before().await?;
        let grant = self.inner.draw_limit(request).await?;
        self.after(grant).await
    }

    async fn forget_limits(&self, now: Timestamp) -> Result<usize, StoreError> {
        self.before().await?;
        let count = self.inner.forget_limits(now).await?;
        self.after(count).await
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned, StoreError> {
        self.before().await?;
        let route = request.route.clone();
        let pruned = self.inner.prune(request).await?;
        if pruned.messages > 0 {
            self.look_again(|message| message.route == route && message.state.ended_at().is_some()).await?;
        }
        self.after(pruned).await
    }

    async fn beat(
        &self,
        instance: InstanceId,
        now: Timestamp,
        silent_max: Duration,
    ) -> Result<(), StoreError> {
        self.before().await?;
        let (from_ms, until_ms) = self.faults.unheard_ms;
        let is_unheard = (from_ms..until_ms).contains(&self.clock.0.uptime_ms());
        if is_unheard && self.process == FIRST && !look(&self.world).healed {
            return Err(StoreError::Unavailable("simulated: the heartbeat does not come through".to_owned()));
        }
        self.inner.beat(instance, now, silent_max).await?;
        look(&self.world).beaten(instance, now);
        self.after(()).await
    }

    async fn introduce(&self, instance: InstanceId, about: About) -> Result<(), StoreError> {
        self.inner.introduce(instance, about).await
    }

    async fn living(&self, now: Timestamp) -> Result<Vec<Living>, StoreError> {
        self.inner.living(now).await
    }

    async fn leave(&self, instance: InstanceId) -> Result<(), StoreError> {
        self.before().await?;
        self.inner.leave(instance).await?;
        look(&self.world).left(instance);
        self.after(()).await
    }

    async fn get(&self, id: MessageId) -> Result<Option<Message>, StoreError> {
        self.before().await?;
        let found = self.inner.get(id).await?;
        self.after(found).await
    }

    async fn content(&self, id: MessageId) -> Result<Option<Content>, StoreError> {
        self.inner.content(id).await
    }

    async fn attempts(&self, id: MessageId) -> Result<Vec<AttemptRecord>, StoreError> {
        self.inner.attempts(id).await
    }

    async fn edits(&self, id: MessageId) -> Result<Vec<EditRecord>, StoreError> {
        self.inner.edits(id).await
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Message>, StoreError> {
        self.inner.list(filter).await
    }

    async fn counts(&self, now: Timestamp) -> Result<Vec<Count>, StoreError> {
        self.inner.counts(now).await
    }

    async fn put_bulk(&self, bulk: Bulk, audit: Option<Audit>) -> Result<bool, StoreError> {
        self.inner.put_bulk(bulk, audit).await
    }

    async fn bulk(&self, id: Arc<str>) -> Result<Option<Bulk>, StoreError> {
        self.inner.bulk(id).await
    }

    async fn bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError> {
        self.inner.bulks(after, limit).await
    }

    async fn running_bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError> {
        self.inner.running_bulks(after, limit).await
    }

    async fn deeds(&self, filter: DeedFilter) -> Result<Vec<Deed>, StoreError> {
        self.inner.deeds(filter).await
    }

    async fn changed_outside(&self) -> Result<bool, StoreError> {
        Ok(true)
    }
}
