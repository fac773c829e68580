//! Campaigns: what they are, whom they write to, what of them has been planned, and how much of each quota is used.

use async_trait::async_trait;
use redeliver_core::campaign::{Ends, Prospect, Settings};
use redeliver_core::change::Audit;
use redeliver_core::quota::{CounterKey, Whose};
use redeliver_core::{InstanceId, Name, Timestamp};
use redeliver_engine::campaigns::{
    CampaignChange, CampaignRecord, Campaigns, Dossier, Keyed, PartKept, PlanPart, Planning, PlanningMark,
    ProspectRecord, ReserveRequest, Reserved, Room, Suppression, Unfinished, Used, WorkspaceRecord,
};
use redeliver_engine::store::{Inserted, StoreError};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::apply::write_audit;
use super::errors::Fault;
use super::insert::insert;
use super::quotas::{give_back, reserve, room};
use super::rows::{id, number, text, time, time_if_any};
use super::suppressions::{suppress, suppressed, suppressions, unsuppress};
use super::{Runs, SqliteOn, limit, read};
use crate::encode::{campaign_state, from_text, planning, to_text};

#[async_trait]
impl<R: Runs> Campaigns for SqliteOn<R> {
    async fn workspace(&self, workspace: &str) -> Result<WorkspaceRecord, StoreError> {
        let workspace = workspace.to_owned();
        self.runs.read(move |db| find_workspace(db, &workspace)).await
    }

    async fn put_settings(
        &self,
        workspace: Name,
        settings: Settings,
        audit: Audit,
    ) -> Result<(), StoreError> {
        self.runs.write(1, move |db| put_settings(db, &workspace, &settings, &audit)).await
    }

    async fn add_campaign(&self, campaign: CampaignRecord, audit: Audit) -> Result<bool, StoreError> {
        self.runs.write(1, move |db| add_campaign(db, &campaign, &audit)).await
    }

    async fn campaign(&self, id: &str) -> Result<Option<CampaignRecord>, StoreError> {
        let id = id.to_owned();
        self.runs.read(move |db| Ok(campaigns(db, include_str!("sql/campaign.sql"), &id)?.pop())).await
    }

    async fn campaigns(&self, workspace: &str) -> Result<Vec<CampaignRecord>, StoreError> {
        let workspace = workspace.to_owned();
        self.runs.read(move |db| campaigns(db, include_str!("sql/campaigns.sql"), &workspace)).await
    }

    async fn unfinished(&self, now: Timestamp) -> Result<Vec<Unfinished>, StoreError> {
        self.runs.read(move |db| unfinished(db, now)).await
    }

    async fn move_campaign(&self, change: CampaignChange) -> Result<bool, StoreError> {
        self.runs.write(1, move |db| move_campaign(db, &change)).await
    }

    async fn enrol(&self, campaign: &str, prospects: Vec<Prospect>) -> Result<Vec<bool>, StoreError> {
        let campaign = campaign.to_owned();
        self.runs.write(prospects.len(), move |db| enrol(db, &campaign, &prospects)).await
    }

    async fn correct(&self, campaign: &str, prospect: Prospect) -> Result<bool, StoreError> {
        let campaign = campaign.to_owned();
        self.runs.write(1, move |db| correct(db, &campaign, &prospect)).await
    }

    async fn prospects(
        &self,
        campaign: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<ProspectRecord>, StoreError> {
        let campaign = campaign.to_owned();
        self.runs.read(move |db| prospects(db, &campaign, after, limit)).await
    }

    async fn stop_prospect(
        &self,
        campaign: &str,
        prospect: &str,
        reason: &str,
        audit: Audit,
    ) -> Result<bool, StoreError> {
        let [campaign, prospect, reason] = [campaign, prospect, reason].map(str::to_owned);
        self.runs.write(1, move |db| stop_prospect(db, [&campaign, &prospect, &reason], &audit)).await
    }

    async fn pause_prospect(&self, campaign: &str, prospect: &str, audit: Audit) -> Result<bool, StoreError> {
        let [campaign, prospect] = [campaign, prospect].map(str::to_owned);
        self.runs.write(1, move |db| pause_prospect(db, &campaign, &prospect, &audit)).await
    }

    async fn resume_prospect(
        &self,
        campaign: &str,
        prospect: &str,
        audit: Audit,
    ) -> Result<bool, StoreError> {
        let [campaign, prospect] = [campaign, prospect].map(str::to_owned);
        self.runs.write(1, move |db| resume_prospect(db, &campaign, &prospect, &audit)).await
    }

    async fn dossier(&self, campaign: &str, prospect: &str) -> Result<Option<Dossier>, StoreError> {
        let [campaign, prospect] = [campaign, prospect].map(str::to_owned);
        self.runs.read(move |db| dossier(db, &campaign, &prospect)).await
    }

    async fn begin_planning(&self, mark: PlanningMark) -> Result<Planning, StoreError> {
        self.runs.write(1, move |db| begin_planning(db, &mark)).await
    }

    async fn end_planning(&self, campaign: &str, planner: InstanceId) -> Result<(), StoreError> {
        let campaign = campaign.to_owned();
        self.runs.write(1, move |db| end_planning(db, &campaign, planner)).await
    }

    async fn keep_part(&self, part: PlanPart) -> Result<PartKept, StoreError> {
        self.runs.write(part.rows.len().max(1), move |db| keep_part(db, &part)).await
    }

    async fn by_keys(&self, workspace: &str, keys: Vec<String>) -> Result<Vec<Option<Keyed>>, StoreError> {
        let workspace = workspace.to_owned();
        self.runs.read(move |db| keys.iter().map(|key| by_key(db, &workspace, key)).collect()).await
    }

    async fn reserve(&self, request: ReserveRequest) -> Result<Reserved, StoreError> {
        self.runs.write(1, move |db| reserve(db, &request)).await
    }

    async fn room(&self, request: ReserveRequest) -> Result<Room, StoreError> {
        self.runs.read(move |db| room(db, &request)).await
    }

    async fn give_back(&self, keys: Vec<CounterKey>) -> Result<(), StoreError> {
        self.runs.write(1, move |db| give_back(db, &keys)).await
    }

    async fn suppress(
        &self,
        workspace: &str,
        addresses: Vec<Suppression>,
        at: Timestamp,
        audit: Option<Audit>,
    ) -> Result<u64, StoreError> {
        let workspace = workspace.to_owned();
        let write = move |db: &Connection| suppress(db, &workspace, &addresses, at, audit.as_ref());
        self.runs.write(1, write).await
    }

    async fn unsuppress(&self, workspace: &str, address: &str, audit: Audit) -> Result<bool, StoreError> {
        let [workspace, address] = [workspace, address].map(str::to_owned);
        self.runs.write(1, move |db| unsuppress(db, &workspace, &address, &audit)).await
    }

    async fn suppressed(&self, workspace: &str, address: &str) -> Result<Option<Name>, StoreError> {
        let [workspace, address] = [workspace, address].map(str::to_owned);
        self.runs.read(move |db| suppressed(db, &workspace, &address)).await
    }

    async fn suppressions(
        &self,
        workspace: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(Suppression, Timestamp)>, StoreError> {
        let [workspace, after] = [workspace, after].map(str::to_owned);
        self.runs.read(move |db| suppressions(db, &workspace, &after, limit)).await
    }

    async fn sent_by(&self, workspace: &str, campaign: &str) -> Result<Vec<(i64, u64)>, StoreError> {
        let [workspace, campaign] = [workspace, campaign].map(str::to_owned);
        self.runs.read(move |db| sent_by(db, &workspace, &campaign)).await
    }

    async fn used_on(&self, workspace: &str, day: i64) -> Result<Vec<Used>, StoreError> {
        let workspace = workspace.to_owned();
        self.runs.read(move |db| used_on(db, &workspace, day)).await
    }
}

fn find_workspace(db: &Connection, workspace: &str) -> Result<WorkspaceRecord, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/workspace.sql"))?;
    let mut found = get.query([workspace])?;
    let Some(row) = found.next()? else { return Ok(WorkspaceRecord::default()) };
    Ok(WorkspaceRecord {
        settings: json(row, 0, "settings")?,
        settings_version: number(row, 1)?,
        plan_version: number(row, 2)?,
    })
}

fn put_settings(db: &Connection, workspace: &str, settings: &Settings, audit: &Audit) -> Result<(), Fault> {
    let mut put = db.prepare_cached(include_str!("sql/put_settings.sql"))?;
    put.execute(params![workspace, to_text("settings", settings)?])?;
    write_audit(db, audit)
}

fn add_campaign(db: &Connection, record: &CampaignRecord, audit: &Audit) -> Result<bool, Fault> {
    let mut add = db.prepare_cached(include_str!("sql/add_campaign.sql"))?;
    let is_new = add.execute(params![
        &*record.id,
        &*record.workspace,
        to_text("campaign", &record.definition)?,
        record.state.name(),
        to_text("ledger", &record.ledger)?,
        record.prospects as i64,
        record.scheduled as i64,
        record.last_at.map(|at| at.as_ms()),
        record.created_at.as_ms(),
    ])? == 1;
    if is_new {
        write_audit(db, audit)?;
    }
    Ok(is_new)
}

fn campaigns(db: &Connection, sql: &str, name: &str) -> Result<Vec<CampaignRecord>, Fault> {
    let mut get = db.prepare_cached(sql)?;
    let mut found = get.query([name])?;
    let mut records = Vec::new();
    while let Some(row) = found.next()? {
        records.push(CampaignRecord {
            id: text(row, 0)?.unwrap_or_default(),
            workspace: text(row, 1)?.unwrap_or_default(),
            definition: json(row, 2, "campaign")?,
            state: campaign_state(&text(row, 3)?.unwrap_or_default())?,
            ledger: json(row, 4, "ledger")?,
            prospects: number(row, 5)?,
            scheduled: number(row, 6)?,
            last_at: time_if_any(row, 7)?,
            ends: Ends { dead: number(row, 9)?, dismissed: number(row, 10)?, cancelled: number(row, 11)? },
            created_at: time(row, 8)?,
            paused_for: text(row, 12)?,
        });
    }
    Ok(records)
}

fn unfinished(db: &Connection, now: Timestamp) -> Result<Vec<Unfinished>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/unfinished.sql"))?;
    let mut found = get.query([now.as_ms()])?;
    let mut left = Vec::new();
    while let Some(row) = found.next()? {
        left.push(Unfinished { id: text(row, 0)?.unwrap_or_default(), is_planned: row.get(1)? });
    }
    Ok(left)
}

fn move_campaign(db: &Connection, change: &CampaignChange) -> Result<bool, Fault> {
    let paused_for = change.paused_for.as_deref();
    let params = params![&*change.id, change.from.name(), change.to.name(), paused_for];
    write_as_a_deed(db, include_str!("sql/move_campaign.sql"), params, &change.audit)
}

fn begin_planning(db: &Connection, mark: &PlanningMark) -> Result<Planning, Fault> {
    let mut begin = db.prepare_cached(include_str!("sql/begin_planning.sql"))?;
    let params = params![&*mark.campaign, mark.planner.0 as i64, mark.now.as_ms(), mark.until_at.as_ms()];
    let found: Option<i64> = begin.query_row(params, |row| row.get(0)).optional()?;
    Ok(found.map_or(Planning::Taken, planning))
}

fn end_planning(db: &Connection, campaign: &str, planner: InstanceId) -> Result<(), Fault> {
    let mut end = db.prepare_cached(include_str!("sql/end_planning.sql"))?;
    end.execute(params![campaign, planner.0 as i64])?;
    Ok(())
}

fn enrol(db: &Connection, campaign: &str, prospects: &[Prospect]) -> Result<Vec<bool>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/prospect_count.sql"))?;
    let count: Option<i64> = get.query_row([campaign], |row| row.get(0)).optional()?;
    let Some(mut position) = count else { return Ok(vec![false; prospects.len()]) };
    let mut add = db.prepare_cached(include_str!("sql/enrol.sql"))?;
    let mut answers = Vec::with_capacity(prospects.len());
    for prospect in prospects {
        let is_new =
            add.execute(params![campaign, position + 1, prospect.id, to_text("prospect", prospect)?])? == 1;
        position += i64::from(is_new);
        answers.push(is_new);
    }
    let mut put = db.prepare_cached(include_str!("sql/put_prospect_count.sql"))?;
    put.execute(params![campaign, position])?;
    Ok(answers)
}

fn prospects(
    db: &Connection,
    campaign: &str,
    after: u64,
    count_max: usize,
) -> Result<Vec<ProspectRecord>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/prospects.sql"))?;
    let mut found =
        get.query(params![campaign, i64::try_from(after).unwrap_or(i64::MAX), limit(count_max)])?;
    let mut records = Vec::new();
    while let Some(row) = found.next()? {
        records.push(prospect(row)?);
    }
    Ok(records)
}

fn correct(db: &Connection, campaign: &str, prospect: &Prospect) -> Result<bool, Fault> {
    let mut update = db.prepare_cached(include_str!("sql/correct.sql"))?;
    Ok(update.execute([campaign, &prospect.id, &to_text("prospect", prospect)?])? == 1)
}

fn stop_prospect(
    db: &Connection,
    [campaign, prospect, reason]: [&str; 3],
    audit: &Audit,
) -> Result<bool, Fault> {
    let params = params![campaign, prospect, reason];
    write_as_a_deed(db, include_str!("sql/stop_prospect.sql"), params, audit)
}

fn pause_prospect(db: &Connection, campaign: &str, prospect: &str, audit: &Audit) -> Result<bool, Fault> {
    let params = params![campaign, prospect, audit.at.as_ms()];
    write_as_a_deed(db, include_str!("sql/pause_prospect.sql"), params, audit)
}

fn resume_prospect(db: &Connection, campaign: &str, prospect: &str, audit: &Audit) -> Result<bool, Fault> {
    write_as_a_deed(db, include_str!("sql/resume_prospect.sql"), params![campaign, prospect], audit)
}

/// Writes one row and who did that, if the row is as the statement wants it. Says whether it was.
fn write_as_a_deed(db: &Connection, sql: &str, params: &[&dyn ToSql], audit: &Audit) -> Result<bool, Fault> {
    let is_written = db.prepare_cached(sql)?.execute(params)? == 1;
    if is_written {
        write_audit(db, audit)?;
    }
    Ok(is_written)
}

fn dossier(db: &Connection, campaign: &str, id: &str) -> Result<Option<Dossier>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/dossier.sql"))?;
    let mut found = get.query([campaign, id])?;
    let Some(row) = found.next()? else { return Ok(None) };
    Ok(Some(Dossier {
        workspace: text(row, 6)?.unwrap_or_default(),
        prospect: prospect(row)?,
        state: campaign_state(&text(row, 4)?.unwrap_or_default())?,
        settings_version: row.get::<_, Option<i64>>(5)?.unwrap_or(0) as u64,
    }))
}

fn keep_part(db: &Connection, part: &PlanPart) -> Result<PartKept, Fault> {
    let mut begin = db.prepare_cached(include_str!("sql/begin_part.sql"))?;
    let mut keep = db.prepare_cached(include_str!("sql/keep_part.sql"))?;
    let last_at = part.last_at.map(|at| at.as_ms());
    let ledger = to_text("ledger", &part.ledger)?;
    if begin.execute(params![&*part.workspace, part.expected_version as i64])? == 0
        || keep.execute(params![&*part.campaign, ledger, last_at, 0])? == 0
    {
        return Ok(PartKept::Superseded);
    }
    let inserted = insert(db, &part.rows)?;
    let new = inserted.iter().filter(|answer| **answer == Inserted::New).count();
    keep.execute(params![&*part.campaign, ledger, last_at, new as i64])?;
    Ok(PartKept::Kept(new as u64))
}

fn by_key(db: &Connection, workspace: &str, key: &str) -> Result<Option<Keyed>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/id_of_key.sql"))?;
    let mut found = get.query([key, workspace])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let id = id(row, 0)?;
    Ok(Some(Keyed { message: read::get(db, &id)?, id }))
}

fn sent_by(db: &Connection, workspace: &str, campaign: &str) -> Result<Vec<(i64, u64)>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/sent_by.sql"))?;
    let mut found = get.query([workspace, campaign])?;
    let mut all = Vec::new();
    while let Some(row) = found.next()? {
        all.push((row.get(0)?, number(row, 1)?));
    }
    Ok(all)
}

fn used_on(db: &Connection, workspace: &str, day: i64) -> Result<Vec<Used>, Fault> {
    let mut get = db.prepare_cached(include_str!("sql/quotas_on.sql"))?;
    let mut found = get.query(params![workspace, day])?;
    let mut all = Vec::new();
    while let Some(row) = found.next()? {
        let whose = Whose::ALL.get(usize::from(row.get::<_, u8>(0)?)).copied();
        all.push(Used {
            whose: whose.ok_or_else(|| Fault::Unfit("a quota is nobody's".to_owned()))?,
            name: text(row, 1)?.unwrap_or_default(),
            used: number(row, 2)?,
            sending_days_before: row.get(3)?,
        });
    }
    Ok(all)
}

fn prospect(row: &Row<'_>) -> Result<ProspectRecord, Fault> {
    Ok(ProspectRecord {
        position: number(row, 0)?,
        prospect: json(row, 1, "prospect")?,
        stopped_for: text(row, 2)?,
        paused_at: time_if_any(row, 3)?,
    })
}

fn json<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
    what: &'static str,
) -> Result<T, Fault> {
    Ok(from_text(what, &text(row, column)?.unwrap_or_default())?)
}
