//! Turns a campaign into messages, a part at a time: each part is kept together with the plan up to there, if nobody else
//! has planned anything meanwhile. Whoever breaks off goes on where the last part ended.

use std::future::poll_fn;
use std::task::Poll;

use futures_util::future::join;
use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::calendar::Zone;
use redeliver_core::campaign::{
    CampaignAction, CampaignState, Enrolled, Forecast, Ledger, MailOf, Other, Plan, Planner, Rules,
    Scheduled, Sending, StepKey, forecast,
};
use redeliver_core::change::NewRow;
use redeliver_core::{Route, Timestamp};

use super::{CampaignError, Desk, Ways};
use crate::campaigns::{CampaignRecord, PartKept, PlanPart, ProspectRecord};
use crate::engine::Engine;

/// Prospects in one part.
const PART_PROSPECTS_MAX: usize = 1_000;
/// Prospects that are planned before others have a turn.
const TURN_PROSPECTS_MAX: usize = 25;
/// Errors that are told one by one.
const ERRORS_TOLD_MAX: usize = 1_000;

/// What scheduling a campaign came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// Mails that were scheduled now.
    pub scheduled: u64,
    /// Mails that had been scheduled before.
    pub skipped: u64,
    /// What could not be scheduled, and why; the first thousand.
    pub errors: Vec<String>,
}

/// What whoever plans does when somebody else has planned something meanwhile.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum OnRival {
    /// Looks again, and goes on.
    GoOn,
    /// Leaves it to them.
    Yield,
}

/// A plan in the making, as it was read.
struct Drawing {
    record: CampaignRecord,
    ways: Ways,
    rules: Rules,
    planner: Planner,
    version: u64,
}

/// A part of a plan, and what could not be planned of it.
struct Drawn {
    part: PlanPart,
    errors: Vec<String>,
}

impl Engine {
    pub(super) fn desk(&self, id: &str) -> Result<&Desk, CampaignError> {
        self.desk.as_ref().ok_or_else(|| CampaignError::NoCampaign(id.to_owned()))
    }

    /// Schedules every mail of a running campaign that is not scheduled yet. Any number may do so at once; in one process,
    /// whoever comes second waits for the first.
    pub async fn schedule(&self, id: &str) -> Result<Scheduling, CampaignError> {
        self.schedule_unless(id, OnRival::GoOn).await
    }

    pub(super) async fn schedule_unless(
        &self,
        id: &str,
        on_rival: OnRival,
    ) -> Result<Scheduling, CampaignError> {
        let desk = self.desk(id)?;
        let record = self.campaign(id).await?;
        let planning = desk.planning(&record.workspace);
        let _alone = planning.lock().await;
        let mut told = Scheduling::default();
        'looking: loop {
            let mut drawing = self.draw(desk, id).await?;
            drawing.record.state.after(CampaignAction::Schedule)?;
            if drawing.record.state == CampaignState::Done
                && drawing.planner.state().after < drawing.record.prospects
            {
                self.move_campaign(id, CampaignAction::Schedule, &"redeliver".into()).await?;
            }
            let route = self.route_of(&drawing.ways.campaign.route)?;
            let mut next = drawing.next_part(desk, route, self).await?;
            while let Some(Drawn { part, errors }) = next {
                let mails = part.rows.len() as u64;
                // While the store keeps one part, the next one is drawn: it is worth nothing unless this one is kept.
                let (kept, following) =
                    join(desk.store.keep_part(part), drawing.next_part(desk, route, self)).await;
                match kept? {
                    PartKept::Superseded if on_rival == OnRival::Yield => return Ok(told),
                    PartKept::Superseded => continue 'looking,
                    PartKept::Kept(new) => {
                        told.scheduled += new;
                        told.skipped += mails - new;
                        told.note(errors);
                        self.wake_all();
                    }
                }
                next = following?;
            }
            // What is there and was not scheduled here was scheduled before, or by somebody else.
            let record = self.campaign(id).await?;
            told.skipped += record.scheduled.saturating_sub(told.scheduled);
            return Ok(told);
        }
    }

    /// When a campaign would be done, found out without writing anything.
    pub async fn forecast_campaign(&self, id: &str) -> Result<Forecast, CampaignError> {
        let desk = self.desk(id)?;
        let drawing = self.draw(desk, id).await?;
        let mut planner = drawing.planner;
        let mut whole = Forecast::default();
        let mut after = planner.state().after;
        loop {
            let prospects = desk.store.prospects(id, after, PART_PROSPECTS_MAX * 10).await?;
            let Some(last) = prospects.last() else { return Ok(whole) };
            after = last.position;
            let zones: Vec<Option<Zone>> = prospects.iter().map(zone_of).collect();
            let live = prospects.iter().zip(&zones).filter(|(record, _)| record.stopped_for.is_none());
            let enrolled =
                live.map(|(record, zone)| Enrolled { position: record.position, zone: zone.as_ref() });
            planner = forecast(planner, enrolled, &mut whole);
        }
    }

    /// The rules that a campaign is planned by and what has been planned, and its settings understood.
    pub(super) async fn drawn(&self, id: &str) -> Result<(Sending, Rules, Plan), CampaignError> {
        let drawing = self.draw(self.desk(id)?, id).await?;
        Ok((drawing.ways.sending, drawing.rules, drawing.planner.state().clone()))
    }

    /// Reads everything that a plan goes by.
    async fn draw(&self, desk: &Desk, id: &str) -> Result<Drawing, CampaignError> {
        // The version first: what is read after it may only be newer.
        let record = self.campaign(id).await?;
        let workspace = desk.store.workspace(&record.workspace).await?;
        let all = desk.store.campaigns(&record.workspace).await?;
        let no_campaign = || CampaignError::NoCampaign(id.to_owned());
        let record = all.iter().find(|other| other.id == record.id).cloned().ok_or_else(no_campaign)?;
        let ways = Ways::new(record.workspace.clone(), record.definition.clone(), &workspace.settings)?;
        let now = self.clock.now();
        let mut rules = Rules::new(&ways.campaign, &ways.sending, ways.sender(), now);
        let today = ways.sending.zone.local_day(now);
        for other in all.iter().filter(|other| other.id != record.id) {
            let sender = other.definition.from.as_ref().map(|from| &from.address);
            let is_same_sender = sender.map(String::as_str) == Some(ways.sender());
            let ended_on = (other.state == CampaignState::Cancelled).then_some(today);
            other.ledger.count_in(&mut rules, Other { is_same_sender, ended_on });
        }
        let planner = Planner::new(rules.clone(), record.ledger.plan_for(&rules));
        Ok(Drawing { record, ways, rules, planner, version: workspace.plan_version })
    }

    /// The campaign with this id.
    pub async fn campaign(&self, id: &str) -> Result<CampaignRecord, CampaignError> {
        let found = self.desk(id)?.store.campaign(id).await?;
        found.ok_or_else(|| CampaignError::NoCampaign(id.to_owned()))
    }
}

impl Drawing {
    /// The next part of the plan; `None` if nobody is left to be planned.
    async fn next_part(
        &mut self,
        desk: &Desk,
        route: &Route,
        engine: &Engine,
    ) -> Result<Option<Drawn>, CampaignError> {
        let after = self.planner.state().after;
        let prospects = desk.store.prospects(&self.record.id, after, PART_PROSPECTS_MAX).await?;
        if prospects.is_empty() {
            return Ok(None);
        }
        let (mut rows, mut errors) = (Vec::new(), Vec::new());
        for some in prospects.chunks(TURN_PROSPECTS_MAX) {
            let (more_rows, more_errors) = self.part(route, some, engine);
            rows.extend(more_rows);
            errors.extend(more_errors);
            // Whoever has the part before this one kept has a turn, too.
            turn().await;
        }
        Ok(Some(Drawn { part: self.finish_part(rows), errors }))
    }

    /// The mails of some prospects, and what is wrong with the others.
    fn part(
        &mut self,
        route: &Route,
        prospects: &[ProspectRecord],
        engine: &Engine,
    ) -> (Vec<NewRow>, Vec<String>) {
        let now = engine.clock.now();
        let (mut rows, mut errors, mut mails) = (Vec::new(), Vec::new(), Vec::new());
        for record in prospects {
            if record.stopped_for.is_some() {
                continue;
            }
            let steps = self.ways.campaign.in_order();
            let written = steps.iter().try_for_each(|step| {
                self.ways.templates.write(&self.ways.campaign, step.order, &record.prospect).map(drop)
            });
            let zone = zone_of(record);
            let planned = written.and_then(|()| {
                let enrolled = Enrolled { position: record.position, zone: zone.as_ref() };
                self.planner.plan(enrolled, &mut mails).map_err(|no_room| no_room.to_string())
            });
            if let Err(wrong) = planned {
                errors.push(format!("prospect {}: {wrong}", record.prospect.id));
            }
            for mail in mails.drain(..) {
                match self.row(route, record, mail, engine, now) {
                    Ok(row) => rows.push(row),
                    Err(wrong) => errors.push(format!("prospect {}: {wrong}", record.prospect.id)),
                }
            }
        }
        let last = prospects.last().map_or(0, |record| record.position);
        self.planner.pass(last);
        (rows, errors)
    }

    fn row(
        &self,
        route: &Route,
        record: &ProspectRecord,
        mail: Scheduled,
        engine: &Engine,
        now: Timestamp,
    ) -> Result<NewRow, String> {
        let campaign = &self.ways.campaign;
        let key = StepKey::new(&record.prospect.id, &campaign.sequence_id, mail.step)
            .map_err(|bad| bad.to_string())?;
        let of = MailOf {
            campaign: self.record.id.to_string(),
            prospect: record.prospect.id.clone(),
            step: mail.step,
            sender: self.ways.sender().to_owned(),
        };
        let mut new = NewMessage::new(route.name.clone(), of.to_content());
        new.workspace = self.record.workspace.clone();
        new.key = Some(key.to_string().into());
        new.due_at = Some(mail.at);
        // What has a time of its own is late from that time on, not from the day it was planned.
        new.expires_at = route.travel(new.lane).policy.expires_after.map(|span| mail.at.plus(span));
        Ok(admit(new, route, engine.clock.message_id(now), None, now))
    }

    fn finish_part(&mut self, rows: Vec<NewRow>) -> PlanPart {
        let last = rows.iter().map(|row| row.message.due_at).max();
        self.record.last_at = self.record.last_at.max(last);
        self.version += 1;
        PlanPart {
            campaign: self.record.id.clone(),
            workspace: self.record.workspace.clone(),
            expected_version: self.version - 1,
            ledger: Ledger::new(&self.rules, self.planner.state().clone()),
            last_at: self.record.last_at,
            rows,
        }
    }
}

impl Scheduling {
    fn note(&mut self, errors: Vec<String>) {
        let room = ERRORS_TOLD_MAX.saturating_sub(self.errors.len());
        self.errors.extend(errors.into_iter().take(room));
    }
}

/// Lets others have a turn.
async fn turn() {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn zone_of(record: &ProspectRecord) -> Option<Zone> {
    record.prospect.zone.as_deref().and_then(|zone| zone.parse().ok())
}
