//! Turns a campaign into messages, a part at a time: each part is kept together with the plan up to there, if nobody else
//! has planned anything meanwhile. Whoever breaks off goes on where the last part ended.

use std::future::poll_fn;
use std::task::Poll;

use futures_util::future::join;
use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::calendar::Zone;
use redeliver_core::campaign::{
    CampaignAction, CampaignState, Enrolled, Forecast, Ledger, MailOf, Other, Plan, Planner, Rules,
    Scheduled, Sending, StepKey, Unplanned, forecast,
};
use redeliver_core::change::NewRow;
use redeliver_core::{Route, Timestamp};

use super::{CampaignError, Desk, Ways};
use crate::campaigns::{CampaignRecord, PartKept, PlanPart, ProspectRecord};
use crate::emit::Planned;
use crate::engine::Engine;

/// Prospects in one part.
const PART_PROSPECTS_MAX: usize = 1_000;
/// Prospects that are planned before others have a turn.
const TURN_PROSPECTS_MAX: usize = 25;

/// What scheduling a campaign came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// Mails that were scheduled now.
    pub scheduled: u64,
    /// Mails that had been scheduled before.
    pub skipped: u64,
    /// Prospects of the campaign who could not be scheduled, and why.
    pub unplanned: Unplanned,
}

/// What whoever plans does when somebody else has planned something meanwhile.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum OnRival {
    /// Looks again, and goes on.
    GoOn,
    /// Leaves it to them.
    Yield,
}

/// Whether it is a prospect's turn in the order, or they are looked at again.
#[derive(Copy, Clone)]
enum Turn {
    First,
    Second,
}

/// A plan in the making, as it was read.
struct Drawing {
    record: CampaignRecord,
    ways: Ways,
    rules: Rules,
    planner: Planner,
    version: u64,
    /// Whom the plan leaves out so far.
    unplanned: Unplanned,
    /// The second look at those whom it has left out.
    again: Option<Again>,
}

/// A second look at everybody who was passed: whoever is not wholly planned is tried once more.
#[derive(Default)]
struct Again {
    after: u64,
    still: Unplanned,
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
            let is_passed = drawing.planner.state().after >= drawing.record.prospects;
            // Whoever only tends has nothing new for those who could not be planned; a person may have corrected them.
            if is_passed && on_rival == OnRival::GoOn && !drawing.unplanned.is_empty() {
                drawing.again = Some(Again::default());
            }
            if drawing.record.state == CampaignState::Done && (!is_passed || drawing.again.is_some()) {
                self.move_campaign(id, CampaignAction::Schedule, &"redeliver".into()).await?;
            }
            let route = self.route_of(&drawing.ways.campaign.route)?;
            let mut next = drawing.next_part(desk, route, self).await?;
            while let Some(part) = next {
                let (mails, unplanned) = (part.rows.len() as u64, part.ledger.unplanned.count);
                // While the store keeps one part, the next one is drawn: it is worth nothing unless this one is kept.
                let (kept, following) =
                    join(desk.store.keep_part(part), drawing.next_part(desk, route, self)).await;
                match kept? {
                    PartKept::Superseded if on_rival == OnRival::Yield => return Ok(told),
                    PartKept::Superseded => continue 'looking,
                    PartKept::Kept(new) => {
                        told.scheduled += new;
                        told.skipped += mails - new;
                        let part = Planned { campaign: id, scheduled: new, skipped: mails - new, unplanned };
                        self.observer.planned(&part);
                        self.wake_all();
                    }
                }
                next = following?;
            }
            // What is there and was not scheduled here was scheduled before, or by somebody else.
            let record = self.campaign(id).await?;
            told.skipped += record.scheduled.saturating_sub(told.scheduled);
            told.unplanned = record.ledger.unplanned;
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
        let unplanned = record.ledger.unplanned.clone();
        Ok(Drawing { record, ways, rules, planner, version: workspace.plan_version, unplanned, again: None })
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
    ) -> Result<Option<PlanPart>, CampaignError> {
        while let Some(again) = &self.again {
            let planned_up_to = self.planner.state().after;
            let mut prospects =
                desk.store.prospects(&self.record.id, again.after, PART_PROSPECTS_MAX).await?;
            prospects.retain(|record| record.position <= planned_up_to);
            let Some(last) = prospects.last().map(|record| record.position) else {
                self.unplanned = self.again.take().map(|again| again.still).unwrap_or_default();
                return Ok(Some(self.finish_part(Vec::new())));
            };
            let left = self.not_wholly_planned(desk, prospects).await?;
            let (rows, still) = self.rows_of(route, &left, engine, Turn::Second).await;
            let again = self.again.get_or_insert_default();
            again.after = last;
            again.still.add(still);
            if !rows.is_empty() {
                return Ok(Some(self.finish_part(rows)));
            }
        }
        let after = self.planner.state().after;
        let prospects = desk.store.prospects(&self.record.id, after, PART_PROSPECTS_MAX).await?;
        if prospects.is_empty() {
            return Ok(None);
        }
        let (rows, unplanned) = self.rows_of(route, &prospects, engine, Turn::First).await;
        self.unplanned.add(unplanned);
        Ok(Some(self.finish_part(rows)))
    }

    /// Those of some prospects that a step is missing of.
    async fn not_wholly_planned(
        &self,
        desk: &Desk,
        prospects: Vec<ProspectRecord>,
    ) -> Result<Vec<ProspectRecord>, CampaignError> {
        let steps = self.ways.campaign.in_order();
        let keys = prospects.iter().flat_map(|record| steps.iter().map(|step| self.key(record, step.order)));
        let found = desk.store.by_keys(&self.record.workspace, keys.collect()).await?;
        let each = prospects.into_iter().zip(found.chunks(steps.len().max(1)));
        let missing = each.filter(|(_, mails)| mails.iter().any(Option::is_none));
        Ok(missing.map(|(record, _)| record).collect())
    }

    /// The key of a step to a prospect; one that can't be made is nobody's.
    fn key(&self, record: &ProspectRecord, step: u32) -> String {
        let key = StepKey::new(&record.prospect.id, &self.ways.campaign.sequence_id, step);
        key.map(String::from).unwrap_or_default()
    }

    /// The mails of some prospects, and who could not be planned.
    async fn rows_of(
        &mut self,
        route: &Route,
        prospects: &[ProspectRecord],
        engine: &Engine,
        turn: Turn,
    ) -> (Vec<NewRow>, Unplanned) {
        let (mut rows, mut unplanned) = (Vec::new(), Unplanned::default());
        for some in prospects.chunks(TURN_PROSPECTS_MAX) {
            self.plan_some(route, some, engine, turn, &mut rows, &mut unplanned);
            // Whoever has the part before this one kept has a turn, too.
            let_others().await;
        }
        (rows, unplanned)
    }

    fn plan_some(
        &mut self,
        route: &Route,
        prospects: &[ProspectRecord],
        engine: &Engine,
        turn: Turn,
        rows: &mut Vec<NewRow>,
        unplanned: &mut Unplanned,
    ) {
        let now = engine.clock.now();
        let mut mails = Vec::new();
        for record in prospects.iter().filter(|record| record.stopped_for.is_none()) {
            let mut wrong = self.plan_one(record, turn, &mut mails).err();
            for mail in mails.drain(..) {
                match self.row(route, record, mail, engine, now) {
                    Ok(row) => rows.push(row),
                    Err(bad) => wrong = Some(bad),
                }
            }
            if let Some(wrong) = wrong {
                unplanned.note(format!("prospect {}: {wrong}", record.prospect.id));
            }
        }
        self.planner.pass(prospects.last().map_or(0, |record| record.position));
    }

    /// The times of a prospect's mails, if each of them can be written.
    fn plan_one(
        &mut self,
        record: &ProspectRecord,
        turn: Turn,
        mails: &mut Vec<Scheduled>,
    ) -> Result<(), String> {
        for step in self.ways.campaign.in_order() {
            self.ways.templates.write(&self.ways.campaign, step.order, &record.prospect)?;
        }
        let zone = zone_of(record);
        let enrolled = Enrolled { position: record.position, zone: zone.as_ref() };
        let planned = match turn {
            Turn::First => self.planner.plan(enrolled, mails).map(drop),
            Turn::Second => self.planner.plan_again(enrolled, mails),
        };
        planned.map_err(|no_room| no_room.to_string())
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
        new.lane = campaign.lane();
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
            ledger: Ledger {
                unplanned: self.unplanned.clone(),
                ..Ledger::new(&self.rules, self.planner.state().clone())
            },
            last_at: self.record.last_at,
            rows,
        }
    }
}

/// Lets others have a turn.
async fn let_others() {
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
