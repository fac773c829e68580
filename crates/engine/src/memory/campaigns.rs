//! Campaigns in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use redeliver_core::campaign::{Allowance, CampaignState, EndsMoved, MailOf, Prospect, Settings};
use redeliver_core::change::Audit;
use redeliver_core::quota::{Bucket, CounterKey, Whose};
use redeliver_core::{Content, InstanceId, Name, Timestamp};

use super::MemoryStore;
use super::rows::Rows;
use crate::campaigns::{
    CampaignChange, CampaignRecord, Campaigns, Dossier, Keyed, PartKept, PlanPart, Planning, PlanningMark,
    ProspectRecord, ReserveRequest, Reserved, Room, Suppression, Unfinished, Used, WorkspaceRecord,
};
use crate::store::{Inserted, StoreError};

/// All that is remembered of campaigns.
#[derive(Debug, Default)]
pub(super) struct Desk {
    workspaces: BTreeMap<Name, WorkspaceRecord>,
    campaigns: BTreeMap<Name, CampaignRecord>,
    /// By campaign and position.
    prospects: BTreeMap<(Name, u64), ProspectRecord>,
    /// Their positions, by campaign and id.
    positions: BTreeMap<(Name, String), u64>,
    plannings: BTreeMap<Name, Marked>,
    counters: BTreeMap<CounterKey, u64>,
    free_at: BTreeMap<(Name, Name), Timestamp>,
    /// Why and since when, by workspace and address.
    suppressions: BTreeMap<(Name, String), (Name, Timestamp)>,
}

/// Who plans a campaign, until when, and how often that was interrupted in a row.
#[derive(Debug, Default)]
struct Marked {
    by: Option<(InstanceId, Timestamp)>,
    interruptions: u32,
}

impl Desk {
    fn prospect(&self, campaign: &str, id: &str) -> Option<&ProspectRecord> {
        let position = self.positions.get(&(campaign.into(), id.to_owned()))?;
        self.prospects.get(&(campaign.into(), *position))
    }

    fn prospect_mut(&mut self, campaign: &str, id: &str) -> Option<&mut ProspectRecord> {
        let position = self.positions.get(&(campaign.into(), id.to_owned()))?;
        self.prospects.get_mut(&(campaign.into(), *position))
    }

    fn enrol(&mut self, campaign: &str, prospect: Prospect) -> bool {
        let name: Name = campaign.into();
        let Some(record) = self.campaigns.get_mut(&name) else { return false };
        let id = (name.clone(), prospect.id.clone());
        if self.positions.contains_key(&id) {
            return false;
        }
        record.prospects += 1;
        let position = record.prospects;
        self.positions.insert(id, position);
        self.prospects.insert(
            (name, position),
            ProspectRecord { position, prospect, stopped_for: None, paused_at: None },
        );
        true
    }

    /// Counts anew how the mails of a campaign have ended, if the content is one of its workspace's.
    pub(super) fn count_ends(&mut self, workspace: &str, content: &Content, moved: EndsMoved) {
        let Some(of) = MailOf::of_content(content) else { return };
        let found = self.campaigns.get_mut(of.campaign.as_str());
        if let Some(record) = found.filter(|record| &*record.workspace == workspace) {
            record.ends += moved;
        }
    }

    fn room(&self, request: &ReserveRequest) -> Room {
        let sender = (request.workspace.clone(), request.sender.clone());
        let free_at = self.free_at.get(&sender).copied().filter(|free_at| *free_at > request.now);
        let is_full = |allowance: &Allowance| {
            let key = &allowance.key;
            !allowance.admits(self.used(key), self.sending_days_before(key))
        };
        Room { free_at, full: request.allowances.iter().position(is_full) }
    }

    fn reserve(&mut self, request: &ReserveRequest) -> Reserved {
        match self.room(request) {
            Room { free_at: Some(free_at), .. } => return Reserved::Busy(free_at),
            Room { full: Some(index), .. } => return Reserved::Full(index),
            Room { free_at: None, full: None } => {}
        }
        let sender = (request.workspace.clone(), request.sender.clone());
        for allowance in &request.allowances {
            *self.counters.entry(allowance.key.clone()).or_default() += 1;
        }
        self.free_at.insert(sender, request.free_at);
        Reserved::Yes
    }

    fn same(&self, key: &CounterKey) -> impl Iterator<Item = (Bucket, u64)> {
        let key = key.clone();
        let is_same = move |other: &CounterKey| {
            (&other.workspace, other.whose, &other.name) == (&key.workspace, key.whose, &key.name)
        };
        let found = self.counters.iter().filter(move |(other, _)| is_same(other));
        found.map(|(other, used)| (other.bucket, *used))
    }

    fn used(&self, key: &CounterKey) -> u64 {
        let counts = |bucket: &Bucket| key.bucket.oldest() <= *bucket && *bucket <= key.bucket;
        self.same(key).filter(|(bucket, _)| counts(bucket)).map(|(_, used)| used).sum()
    }

    fn sending_days_before(&self, key: &CounterKey) -> u32 {
        let before = |(bucket, used): &(Bucket, u64)| {
            matches!(bucket, Bucket::Day(_)) && *bucket < key.bucket && *used > 0
        };
        self.same(key).filter(before).count() as u32
    }
}

fn is_mine(rows: &Rows, part: &PlanPart) -> bool {
    let version = rows.desk.workspaces.get(&part.workspace).map_or(0, |record| record.plan_version);
    let runs = |record: &CampaignRecord| record.state == CampaignState::Running;
    version == part.expected_version && rows.desk.campaigns.get(&part.campaign).is_some_and(runs)
}

#[async_trait]
impl Campaigns for MemoryStore {
    async fn workspace(&self, workspace: &str) -> Result<WorkspaceRecord, StoreError> {
        Ok(self.lock().desk.workspaces.get(workspace).cloned().unwrap_or_default())
    }

    async fn put_settings(
        &self,
        workspace: Name,
        settings: Settings,
        audit: Audit,
    ) -> Result<(), StoreError> {
        let mut all = self.lock();
        let record = all.desk.workspaces.entry(workspace).or_default();
        record.settings = settings;
        record.settings_version += 1;
        all.note_deed(audit);
        Ok(())
    }

    async fn add_campaign(&self, campaign: CampaignRecord, audit: Audit) -> Result<bool, StoreError> {
        let mut all = self.lock();
        if all.desk.campaigns.contains_key(&campaign.id) {
            return Ok(false);
        }
        all.desk.campaigns.insert(campaign.id.clone(), campaign);
        all.note_deed(audit);
        Ok(true)
    }

    async fn campaign(&self, id: &str) -> Result<Option<CampaignRecord>, StoreError> {
        Ok(self.lock().desk.campaigns.get(id).cloned())
    }

    async fn campaigns(&self, workspace: &str) -> Result<Vec<CampaignRecord>, StoreError> {
        let all = self.lock();
        let own = all.desk.campaigns.values().filter(|record| &*record.workspace == workspace);
        Ok(own.cloned().collect())
    }

    async fn unfinished(&self, now: Timestamp) -> Result<Vec<Unfinished>, StoreError> {
        let all = self.lock();
        let running = all.desk.campaigns.values().filter(|record| record.state == CampaignState::Running);
        let left = running.filter_map(|record| {
            let is_planned = record.ledger.plan.after >= record.prospects;
            let is_over = record.prospects > 0 && record.last_at.is_none_or(|last| last <= now);
            (!is_planned || is_over).then(|| Unfinished { id: record.id.clone(), is_planned })
        });
        Ok(left.collect())
    }

    async fn move_campaign(&self, change: CampaignChange) -> Result<bool, StoreError> {
        let mut all = self.lock();
        let found = all.desk.campaigns.get_mut(&change.id);
        let Some(record) = found.filter(|record| record.state == change.from) else { return Ok(false) };
        record.state = change.to;
        record.paused_for = change.paused_for;
        all.desk.plannings.remove(&change.id);
        all.note_deed(change.audit);
        Ok(true)
    }

    async fn enrol(&self, campaign: &str, prospects: Vec<Prospect>) -> Result<Vec<bool>, StoreError> {
        let mut all = self.lock();
        Ok(prospects.into_iter().map(|prospect| all.desk.enrol(campaign, prospect)).collect())
    }

    async fn correct(&self, campaign: &str, prospect: Prospect) -> Result<bool, StoreError> {
        let mut all = self.lock();
        let Some(record) = all.desk.prospect_mut(campaign, &prospect.id) else { return Ok(false) };
        record.prospect = prospect;
        Ok(true)
    }

    async fn prospects(
        &self,
        campaign: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<ProspectRecord>, StoreError> {
        let all = self.lock();
        let behind = (campaign.into(), after.saturating_add(1))..=(campaign.into(), u64::MAX);
        Ok(all.desk.prospects.range(behind).take(limit).map(|(_, record)| record.clone()).collect())
    }

    async fn stop_prospect(
        &self,
        campaign: &str,
        prospect: &str,
        reason: &str,
        audit: Audit,
    ) -> Result<bool, StoreError> {
        let mut all = self.lock();
        let found = all.desk.prospect_mut(campaign, prospect);
        let Some(record) = found.filter(|record| record.stopped_for.is_none()) else { return Ok(false) };
        record.stopped_for = Some(reason.into());
        record.paused_at = None;
        all.note_deed(audit);
        Ok(true)
    }

    async fn pause_prospect(&self, campaign: &str, prospect: &str, audit: Audit) -> Result<bool, StoreError> {
        let mut all = self.lock();
        let goes_on =
            |record: &&mut ProspectRecord| record.stopped_for.is_none() && record.paused_at.is_none();
        let Some(record) = all.desk.prospect_mut(campaign, prospect).filter(goes_on) else {
            return Ok(false);
        };
        record.paused_at = Some(audit.at);
        all.note_deed(audit);
        Ok(true)
    }

    async fn resume_prospect(
        &self,
        campaign: &str,
        prospect: &str,
        audit: Audit,
    ) -> Result<bool, StoreError> {
        let mut all = self.lock();
        let is_paused = |record: &&mut ProspectRecord| record.paused_at.is_some();
        let Some(record) = all.desk.prospect_mut(campaign, prospect).filter(is_paused) else {
            return Ok(false);
        };
        record.paused_at = None;
        all.note_deed(audit);
        Ok(true)
    }

    async fn dossier(&self, campaign: &str, prospect: &str) -> Result<Option<Dossier>, StoreError> {
        let all = self.lock();
        let found = all.desk.campaigns.get(campaign).zip(all.desk.prospect(campaign, prospect));
        Ok(found.map(|(record, prospect)| {
            let workspace = all.desk.workspaces.get(&record.workspace);
            let settings_version = workspace.map_or(0, |record| record.settings_version);
            Dossier {
                workspace: record.workspace.clone(),
                state: record.state,
                settings_version,
                prospect: prospect.clone(),
            }
        }))
    }

    async fn begin_planning(&self, mark: PlanningMark) -> Result<Planning, StoreError> {
        let mut all = self.lock();
        if !all.desk.campaigns.contains_key(&mark.campaign) {
            return Ok(Planning::Taken);
        }
        let marked = all.desk.plannings.entry(mark.campaign).or_default();
        match marked.by {
            Some((planner, until_at)) if planner != mark.planner && until_at > mark.now => {
                return Ok(Planning::Taken);
            }
            Some((planner, _)) if planner != mark.planner => marked.interruptions += 1,
            Some(_) | None => {}
        }
        marked.by = Some((mark.planner, mark.until_at));
        Ok(Planning::Begun { interruptions: marked.interruptions })
    }

    async fn end_planning(&self, campaign: &str, planner: InstanceId) -> Result<(), StoreError> {
        let mut all = self.lock();
        let mine = |mark: &Marked| mark.by.is_some_and(|(by, _)| by == planner);
        if all.desk.plannings.get(campaign).is_some_and(mine) {
            all.desk.plannings.remove(campaign);
        }
        Ok(())
    }

    async fn keep_part(&self, part: PlanPart) -> Result<PartKept, StoreError> {
        let mut all = self.lock();
        if !is_mine(&all, &part) {
            return Ok(PartKept::Superseded);
        }
        let inserted = part.rows.into_iter().map(|row| all.insert(row));
        let new = inserted.filter(|answer| *answer == Inserted::New).count() as u64;
        all.desk.workspaces.entry(part.workspace).or_default().plan_version += 1;
        if let Some(record) = all.desk.campaigns.get_mut(&part.campaign) {
            record.ledger = part.ledger;
            record.last_at = part.last_at;
            record.scheduled += new;
        }
        if let Some(mark) = all.desk.plannings.get_mut(&part.campaign) {
            mark.interruptions = 0;
        }
        Ok(PartKept::Kept(new))
    }

    async fn by_keys(&self, workspace: &str, keys: Vec<String>) -> Result<Vec<Option<Keyed>>, StoreError> {
        let all = self.lock();
        let find = |key: &String| {
            let id = all.id_of_key(workspace, key)?;
            let message = all.get(&id).map(|row| row.message.clone());
            Some(Keyed { id, message })
        };
        Ok(keys.iter().map(find).collect())
    }

    async fn reserve(&self, request: ReserveRequest) -> Result<Reserved, StoreError> {
        Ok(self.lock().desk.reserve(&request))
    }

    async fn room(&self, request: ReserveRequest) -> Result<Room, StoreError> {
        Ok(self.lock().desk.room(&request))
    }

    async fn give_back(&self, keys: Vec<CounterKey>) -> Result<(), StoreError> {
        let mut all = self.lock();
        for key in keys {
            if let Some(used) = all.desk.counters.get_mut(&key) {
                *used = used.saturating_sub(1);
            }
        }
        Ok(())
    }

    async fn suppress(
        &self,
        workspace: &str,
        addresses: Vec<Suppression>,
        at: Timestamp,
        audit: Option<Audit>,
    ) -> Result<u64, StoreError> {
        let mut all = self.lock();
        let before = all.desk.suppressions.len();
        for Suppression { address, reason } in addresses {
            all.desk.suppressions.entry((workspace.into(), address)).or_insert((reason, at));
        }
        let new = all.desk.suppressions.len() - before;
        audit.into_iter().for_each(|audit| all.note_deed(audit));
        Ok(new as u64)
    }

    async fn unsuppress(&self, workspace: &str, address: &str, audit: Audit) -> Result<bool, StoreError> {
        let mut all = self.lock();
        let was_there = all.desk.suppressions.remove(&(workspace.into(), address.to_owned())).is_some();
        if was_there {
            all.note_deed(audit);
        }
        Ok(was_there)
    }

    async fn suppressed(&self, workspace: &str, address: &str) -> Result<Option<Name>, StoreError> {
        let all = self.lock();
        let found = all.desk.suppressions.get(&(workspace.into(), address.to_owned()));
        Ok(found.map(|(reason, _)| reason.clone()))
    }

    async fn suppressions(
        &self,
        workspace: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(Suppression, Timestamp)>, StoreError> {
        let all = self.lock();
        let own = all
            .desk
            .suppressions
            .iter()
            .filter(|((whose, address), _)| &**whose == workspace && address.as_str() > after);
        let view = |((_, address), (reason, since)): (&(Name, String), &(Name, Timestamp))| {
            (Suppression { address: address.clone(), reason: reason.clone() }, *since)
        };
        Ok(own.map(view).take(limit).collect())
    }

    async fn sent_by(&self, workspace: &str, campaign: &str) -> Result<Vec<(i64, u64)>, StoreError> {
        let all = self.lock();
        let is_asked = |key: &&CounterKey| {
            &*key.workspace == workspace && key.whose == Whose::Campaign && &*key.name == campaign
        };
        let days = all.desk.counters.keys().filter(is_asked).filter_map(|key| match key.bucket {
            Bucket::Day(day) => Some((day.number(), all.desk.used(key))),
            Bucket::Hour(_) => None,
        });
        Ok(days.filter(|(_, sent)| *sent > 0).collect())
    }

    async fn used_on(&self, workspace: &str, day: i64) -> Result<Vec<Used>, StoreError> {
        let all = self.lock();
        let rows = Whose::ALL.into_iter().flat_map(|whose| {
            let is_asked = move |key: &&CounterKey| {
                &*key.workspace == workspace && key.whose == whose && key.bucket.number() == (0, day)
            };
            all.desk.counters.keys().filter(is_asked)
        });
        let used = rows.map(|key| Used {
            whose: key.whose,
            name: key.name.clone(),
            used: all.desk.used(key),
            sending_days_before: all.desk.sending_days_before(key),
        });
        Ok(used.filter(|used| used.used > 0).collect())
    }
}
