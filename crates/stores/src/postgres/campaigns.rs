//! Campaigns: what they are, whom they write to, what of them has been planned, and how much of each quota is used.

use std::collections::HashSet;

use async_trait::async_trait;
use redeliver_core::campaign::{Ends, Prospect, Settings};
use redeliver_core::change::{Audit, NewRow};
use redeliver_core::quota::{CounterKey, Whose};
use redeliver_core::{InstanceId, Name, Timestamp};
use redeliver_engine::campaigns::{
    CampaignChange, CampaignRecord, Campaigns, Dossier, Keyed, PartKept, PlanPart, Planning, PlanningMark,
    ProspectRecord, ReserveRequest, Reserved, Room, Suppression, Unfinished, Used, WorkspaceRecord,
};
use redeliver_engine::store::{Inserted, StoreError};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::Postgres;
use super::apply::write_audit;
use super::columns::Param;
use super::connections::{ask, transact};
use super::errors::{Fault, odd};
use super::insert::{How, insert_all, is_there_already};
use super::line::Line;
use super::quotas::{give_back, reserve, room};
use super::rows::{get, id, number, text, text_if_any, time, time_if_any};
use super::suppressions::{suppress, suppressed, suppressions, unsuppress};
use super::{limit, read};
use crate::encode::{campaign_state, from_text, planning, to_text};

#[async_trait]
impl Campaigns for Postgres {
    async fn workspace(&self, workspace: &str) -> Result<WorkspaceRecord, StoreError> {
        ask!(self, |db| find_workspace(db, workspace))
    }

    async fn put_settings(
        &self,
        workspace: Name,
        settings: Settings,
        audit: Audit,
    ) -> Result<(), StoreError> {
        transact!(self, |db| put_settings(db, &workspace, &settings, &audit))
    }

    async fn add_campaign(&self, campaign: CampaignRecord, audit: Audit) -> Result<bool, StoreError> {
        transact!(self, |db| add_campaign(db, &campaign, &audit))
    }

    async fn campaign(&self, id: &str) -> Result<Option<CampaignRecord>, StoreError> {
        let mut found = ask!(self, |db| campaigns(db, include_str!("sql/campaign.sql"), id))?;
        Ok(found.pop())
    }

    async fn campaigns(&self, workspace: &str) -> Result<Vec<CampaignRecord>, StoreError> {
        ask!(self, |db| campaigns(db, include_str!("sql/campaigns.sql"), workspace))
    }

    async fn unfinished(&self, now: Timestamp) -> Result<Vec<Unfinished>, StoreError> {
        ask!(self, |db| unfinished(db, now))
    }

    async fn move_campaign(&self, change: CampaignChange) -> Result<bool, StoreError> {
        transact!(self, |db| move_campaign(db, &change))
    }

    async fn enrol(&self, campaign: &str, prospects: Vec<Prospect>) -> Result<Vec<bool>, StoreError> {
        transact!(self, |db| enrol(db, campaign, &prospects))
    }

    async fn correct(&self, campaign: &str, prospect: Prospect) -> Result<bool, StoreError> {
        ask!(self, |db| correct(db, campaign, &prospect))
    }

    async fn prospects(
        &self,
        campaign: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<ProspectRecord>, StoreError> {
        ask!(self, |db| prospects(db, campaign, after, limit))
    }

    async fn stop_prospect(
        &self,
        campaign: &str,
        prospect: &str,
        reason: &str,
        audit: Audit,
    ) -> Result<bool, StoreError> {
        transact!(self, |db| stop_prospect(db, [campaign, prospect, reason], &audit))
    }

    async fn pause_prospect(&self, campaign: &str, prospect: &str, audit: Audit) -> Result<bool, StoreError> {
        transact!(self, |db| pause_prospect(db, campaign, prospect, &audit))
    }

    async fn resume_prospect(
        &self,
        campaign: &str,
        prospect: &str,
        audit: Audit,
    ) -> Result<bool, StoreError> {
        transact!(self, |db| resume_prospect(db, campaign, prospect, &audit))
    }

    async fn dossier(&self, campaign: &str, prospect: &str) -> Result<Option<Dossier>, StoreError> {
        ask!(self, |db| dossier(db, campaign, prospect))
    }

    async fn begin_planning(&self, mark: PlanningMark) -> Result<Planning, StoreError> {
        ask!(self, |db| begin_planning(db, &mark))
    }

    async fn end_planning(&self, campaign: &str, planner: InstanceId) -> Result<(), StoreError> {
        ask!(self, |db| end_planning(db, campaign, planner))
    }

    async fn keep_part(&self, part: PlanPart) -> Result<PartKept, StoreError> {
        let kept = transact!(self, |db| keep_part(db, &part))?;
        if matches!(kept, PartKept::Kept(new) if new > 0) {
            self.news.ring();
        }
        Ok(kept)
    }

    async fn by_keys(&self, workspace: &str, keys: Vec<String>) -> Result<Vec<Option<Keyed>>, StoreError> {
        ask!(self, |db| by_keys(db, workspace, &keys))
    }

    async fn reserve(&self, request: ReserveRequest) -> Result<Reserved, StoreError> {
        transact!(self, |db| reserve(db, &request))
    }

    async fn room(&self, request: ReserveRequest) -> Result<Room, StoreError> {
        ask!(self, |db| room(db, &request))
    }

    async fn give_back(&self, keys: Vec<CounterKey>) -> Result<(), StoreError> {
        transact!(self, |db| give_back(db, &keys))
    }

    async fn suppress(
        &self,
        workspace: &str,
        addresses: Vec<Suppression>,
        at: Timestamp,
        audit: Option<Audit>,
    ) -> Result<u64, StoreError> {
        transact!(self, |db| suppress(db, workspace, &addresses, at, audit.as_ref()))
    }

    async fn unsuppress(&self, workspace: &str, address: &str, audit: Audit) -> Result<bool, StoreError> {
        transact!(self, |db| unsuppress(db, workspace, address, &audit))
    }

    async fn suppressed(&self, workspace: &str, address: &str) -> Result<Option<Name>, StoreError> {
        ask!(self, |db| suppressed(db, workspace, address))
    }

    async fn suppressions(
        &self,
        workspace: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(Suppression, Timestamp)>, StoreError> {
        ask!(self, |db| suppressions(db, workspace, after, limit))
    }

    async fn sent_by(&self, workspace: &str, campaign: &str) -> Result<Vec<(i64, u64)>, StoreError> {
        ask!(self, |db| sent_by(db, workspace, campaign))
    }

    async fn used_on(&self, workspace: &str, day: i64) -> Result<Vec<Used>, StoreError> {
        ask!(self, |db| used_on(db, workspace, day))
    }
}

async fn find_workspace(db: &Client, workspace: &str) -> Result<WorkspaceRecord, Fault> {
    let params = [(&workspace as _, Type::TEXT)];
    let found = match is_text(workspace) {
        true => db.query_typed_opt(include_str!("sql/workspace.sql"), &params).await?,
        false => None,
    };
    let Some(row) = found else { return Ok(WorkspaceRecord::default()) };
    Ok(WorkspaceRecord {
        settings: from_text("settings", get(&row, 0)?)?,
        settings_version: number(&row, 1)?,
        plan_version: number(&row, 2)?,
    })
}

async fn put_settings(
    db: &mut Line<'_>,
    workspace: &str,
    settings: &Settings,
    audit: &Audit,
) -> Result<(), Fault> {
    let settings = to_text("settings", settings)?;
    let params = [(&workspace as _, Type::TEXT), (&settings as _, Type::TEXT)];
    let transaction = db.begin().await?;
    transaction.execute_typed(include_str!("sql/put_settings.sql"), &params).await?;
    write_audit(transaction.client(), &[audit]).await?;
    Ok(transaction.commit().await?)
}

/// Writes one row and who did that, if the row is as the statement wants it. Says whether it was.
async fn write_as_a_deed(
    db: &mut Line<'_>,
    sql: &str,
    params: &[Param<'_>],
    audit: &Audit,
) -> Result<bool, Fault> {
    let transaction = db.begin().await?;
    let is_written = transaction.execute_typed(sql, params).await? == 1;
    if is_written {
        write_audit(transaction.client(), &[audit]).await?;
    }
    transaction.commit().await?;
    Ok(is_written)
}

async fn add_campaign(db: &mut Line<'_>, record: &CampaignRecord, audit: &Audit) -> Result<bool, Fault> {
    let (definition, ledger) = (to_text("campaign", &record.definition)?, to_text("ledger", &record.ledger)?);
    let params = [
        (&&*record.id as _, Type::TEXT),
        (&&*record.workspace as _, Type::TEXT),
        (&definition as _, Type::TEXT),
        (&record.state.name() as _, Type::TEXT),
        (&ledger as _, Type::TEXT),
        (&(record.prospects as i64) as _, Type::INT8),
        (&(record.scheduled as i64) as _, Type::INT8),
        (&record.last_at.map(Timestamp::as_ms) as _, Type::INT8),
        (&record.created_at.as_ms() as _, Type::INT8),
    ];
    write_as_a_deed(db, include_str!("sql/add_campaign.sql"), &params, audit).await
}

async fn campaigns(db: &Client, sql: &str, name: &str) -> Result<Vec<CampaignRecord>, Fault> {
    if !is_text(name) {
        return Ok(Vec::new());
    }
    let found = db.query_typed(sql, &[(&name as _, Type::TEXT)]).await?;
    let record = |row: &Row| {
        Ok(CampaignRecord {
            id: text(row, 0)?,
            workspace: text(row, 1)?,
            definition: from_text("campaign", get(row, 2)?)?,
            state: campaign_state(get(row, 3)?)?,
            ledger: from_text("ledger", get(row, 4)?)?,
            prospects: number(row, 5)?,
            scheduled: number(row, 6)?,
            last_at: time_if_any(row, 7)?,
            ends: Ends { dead: number(row, 9)?, dismissed: number(row, 10)?, cancelled: number(row, 11)? },
            created_at: time(row, 8)?,
            paused_for: text_if_any(row, 12)?,
        })
    };
    found.iter().map(record).collect()
}

async fn unfinished(db: &Client, now: Timestamp) -> Result<Vec<Unfinished>, Fault> {
    let params = [(&now.as_ms() as _, Type::INT8)];
    let found = db.query_typed(include_str!("sql/unfinished.sql"), &params).await?;
    found.iter().map(|row| Ok(Unfinished { id: text(row, 0)?, is_planned: get(row, 1)? })).collect()
}

async fn move_campaign(db: &mut Line<'_>, change: &CampaignChange) -> Result<bool, Fault> {
    let (from, to) = (change.from.name(), change.to.name());
    let paused_for = change.paused_for.as_deref();
    let params = [
        (&&*change.id as _, Type::TEXT),
        (&from as _, Type::TEXT),
        (&to as _, Type::TEXT),
        (&paused_for as _, Type::TEXT),
    ];
    write_as_a_deed(db, include_str!("sql/move_campaign.sql"), &params, &change.audit).await
}

async fn begin_planning(db: &Client, mark: &PlanningMark) -> Result<Planning, Fault> {
    let params = [
        (&&*mark.campaign as _, Type::TEXT),
        (&(mark.planner.0 as i64) as _, Type::INT8),
        (&mark.now.as_ms() as _, Type::INT8),
        (&mark.until_at.as_ms() as _, Type::INT8),
    ];
    let found = db.query_typed_opt(include_str!("sql/begin_planning.sql"), &params).await?;
    found.map_or(Ok(Planning::Taken), |row| Ok(planning(get(&row, 0)?)))
}

async fn end_planning(db: &Client, campaign: &str, planner: InstanceId) -> Result<(), Fault> {
    let params = [(&campaign as _, Type::TEXT), (&(planner.0 as i64) as _, Type::INT8)];
    db.execute_typed(include_str!("sql/end_planning.sql"), &params).await?;
    Ok(())
}

async fn enrol(db: &mut Line<'_>, campaign: &str, prospects: &[Prospect]) -> Result<Vec<bool>, Fault> {
    let name = (&campaign as _, Type::TEXT);
    let transaction = db.begin().await?;
    let locked =
        transaction.query_typed(include_str!("sql/prospect_count.sql"), std::slice::from_ref(&name)).await?;
    let Some(count) = locked.first().map(|row| get::<i64>(row, 0)).transpose()? else {
        return Ok(vec![false; prospects.len()]);
    };
    let ids: Vec<&str> = prospects.iter().map(|prospect| &*prospect.id).collect();
    let texts: Vec<String> =
        prospects.iter().map(|prospect| to_text("prospect", prospect)).collect::<Result<_, _>>()?;
    let params = [
        name.clone(),
        (&count as _, Type::INT8),
        (&ids as _, Type::TEXT_ARRAY),
        (&texts as _, Type::TEXT_ARRAY),
    ];
    let rows = transaction.query_typed(include_str!("sql/enrol.sql"), &params).await?;
    let added = rows.len() as i64;
    let put = [name, (&added as _, Type::INT8)];
    transaction.execute_typed(include_str!("sql/put_prospect_count.sql"), &put).await?;
    let mut new: HashSet<&str> = rows.iter().map(|row| get(row, 0)).collect::<Result<_, Fault>>()?;
    // Said twice in one batch, it is enrolled once.
    let answers = ids.iter().map(|id| new.remove(id)).collect();
    transaction.commit().await?;
    Ok(answers)
}

async fn prospects(
    db: &Client,
    campaign: &str,
    after: u64,
    count_max: usize,
) -> Result<Vec<ProspectRecord>, Fault> {
    let params = [
        (&campaign as _, Type::TEXT),
        (&i64::try_from(after).unwrap_or(i64::MAX) as _, Type::INT8),
        (&limit(count_max) as _, Type::INT8),
    ];
    let found = db.query_typed(include_str!("sql/prospects.sql"), &params).await?;
    found.iter().map(prospect).collect()
}

async fn correct(db: &Client, campaign: &str, prospect: &Prospect) -> Result<bool, Fault> {
    if !is_text(campaign) || !is_text(&prospect.id) {
        return Ok(false);
    }
    let text = to_text("prospect", prospect)?;
    let params = [(&campaign as _, Type::TEXT), (&prospect.id as _, Type::TEXT), (&text as _, Type::TEXT)];
    Ok(db.execute_typed(include_str!("sql/correct.sql"), &params).await? == 1)
}

async fn stop_prospect(
    db: &mut Line<'_>,
    [campaign, prospect, reason]: [&str; 3],
    audit: &Audit,
) -> Result<bool, Fault> {
    if !is_text(campaign) || !is_text(prospect) {
        return Ok(false);
    }
    let params = [(&campaign as _, Type::TEXT), (&prospect as _, Type::TEXT), (&reason as _, Type::TEXT)];
    write_as_a_deed(db, include_str!("sql/stop_prospect.sql"), &params, audit).await
}

async fn pause_prospect(
    db: &mut Line<'_>,
    campaign: &str,
    prospect: &str,
    audit: &Audit,
) -> Result<bool, Fault> {
    if !is_text(campaign) || !is_text(prospect) {
        return Ok(false);
    }
    let params =
        [(&campaign as _, Type::TEXT), (&prospect as _, Type::TEXT), (&audit.at.as_ms() as _, Type::INT8)];
    write_as_a_deed(db, include_str!("sql/pause_prospect.sql"), &params, audit).await
}

async fn resume_prospect(
    db: &mut Line<'_>,
    campaign: &str,
    prospect: &str,
    audit: &Audit,
) -> Result<bool, Fault> {
    if !is_text(campaign) || !is_text(prospect) {
        return Ok(false);
    }
    let params = [(&campaign as _, Type::TEXT), (&prospect as _, Type::TEXT)];
    write_as_a_deed(db, include_str!("sql/resume_prospect.sql"), &params, audit).await
}

async fn dossier(db: &Client, campaign: &str, id: &str) -> Result<Option<Dossier>, Fault> {
    if !is_text(campaign) || !is_text(id) {
        return Ok(None);
    }
    let params = [(&campaign as _, Type::TEXT), (&id as _, Type::TEXT)];
    let found = db.query_typed_opt(include_str!("sql/dossier.sql"), &params).await?;
    let Some(row) = found else { return Ok(None) };
    Ok(Some(Dossier {
        workspace: get::<&str>(&row, 6)?.into(),
        prospect: prospect(&row)?,
        state: campaign_state(get(&row, 4)?)?,
        settings_version: get::<Option<i64>>(&row, 5)?.unwrap_or(0) as u64,
    }))
}

async fn keep_part(db: &mut Line<'_>, part: &PlanPart) -> Result<PartKept, Fault> {
    let rows: Vec<&NewRow> = part.rows.iter().collect();
    match keep_part_by(db, part, &rows, How::quickest_for(&rows)).await {
        // Nobody makes an id twice, but the other way takes even that.
        Err(fault) if is_there_already(&fault) => keep_part_by(db, part, &rows, How::Carefully).await,
        kept => kept,
    }
}

async fn keep_part_by(
    db: &mut Line<'_>,
    part: &PlanPart,
    rows: &[&NewRow],
    how: How,
) -> Result<PartKept, Fault> {
    let transaction = db.begin().await?;
    let begin = [(&&*part.workspace as _, Type::TEXT), (&(part.expected_version as i64) as _, Type::INT8)];
    if transaction.execute_typed(include_str!("sql/begin_part.sql"), &begin).await? == 0 {
        return Ok(PartKept::Superseded);
    }
    let inserted = insert_all(transaction.client(), rows, how).await?;
    let new = inserted.iter().filter(|answer| **answer == Inserted::New).count() as i64;
    let ledger = to_text("ledger", &part.ledger)?;
    let keep = [
        (&&*part.campaign as _, Type::TEXT),
        (&ledger as _, Type::TEXT),
        (&part.last_at.map(Timestamp::as_ms) as _, Type::INT8),
        (&new as _, Type::INT8),
    ];
    if transaction.execute_typed(include_str!("sql/keep_part.sql"), &keep).await? == 0 {
        return Ok(PartKept::Superseded);
    }
    transaction.commit().await?;
    Ok(PartKept::Kept(new as u64))
}

async fn by_keys(db: &Client, workspace: &str, keys: &[String]) -> Result<Vec<Option<Keyed>>, Fault> {
    let params = [(&workspace as _, Type::TEXT), (&keys as _, Type::TEXT_ARRAY)];
    let found = db.query_typed(include_str!("sql/ids_of_keys.sql"), &params).await?;
    let ids: Vec<Uuid> = found.iter().map(|row| get(row, 1)).collect::<Result<_, Fault>>()?;
    let mut messages = read::get_many(db, &ids).await?;
    let mut answers = vec![None; keys.len()];
    for row in &found {
        let (place, id) = (get::<i64>(row, 0)?, id(row, 1)?);
        if let Some(answer) = answers.get_mut(place as usize - 1) {
            *answer = Some(Keyed { message: messages.remove(&id), id });
        }
    }
    Ok(answers)
}

async fn sent_by(db: &Client, workspace: &str, campaign: &str) -> Result<Vec<(i64, u64)>, Fault> {
    let params = [(&workspace as _, Type::TEXT), (&campaign as _, Type::TEXT)];
    let found = db.query_typed(include_str!("sql/sent_by.sql"), &params).await?;
    found.iter().map(|row| Ok((get(row, 0)?, number(row, 1)?))).collect()
}

async fn used_on(db: &Client, workspace: &str, day: i64) -> Result<Vec<Used>, Fault> {
    let params = [(&workspace as _, Type::TEXT), (&day as _, Type::INT8)];
    let found = db.query_typed(include_str!("sql/quotas_on.sql"), &params).await?;
    let used = |row: &Row| {
        let whose = get::<i16>(row, 0)?;
        let known = Whose::ALL.get(usize::try_from(whose).unwrap_or(usize::MAX)).copied();
        Ok(Used {
            whose: known.ok_or_else(|| odd("whose", whose))?,
            name: text(row, 1)?,
            used: number(row, 2)?,
            sending_days_before: number(row, 3)? as u32,
        })
    };
    found.iter().map(used).collect()
}

fn prospect(row: &Row) -> Result<ProspectRecord, Fault> {
    Ok(ProspectRecord {
        position: number(row, 0)?,
        prospect: from_text("prospect", get(row, 1)?)?,
        stopped_for: text_if_any(row, 2)?,
        paused_at: time_if_any(row, 3)?,
    })
}

/// Whether it can be a text of the database: none has a NUL in it, and so nothing is called by it.
pub(super) fn is_text(name: &str) -> bool {
    !name.contains('\0')
}
