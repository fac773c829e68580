//! Turns a campaign into messages, a part at a time: each part is kept together with the plan up to there, if nobody else
//! has planned anything meanwhile. Whoever breaks off goes on where the last part ended.

use std::collections::HashMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join;
use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::calendar::Zone;
use redeliver_core::campaign::{
    CampaignAction, CampaignState, Enrolled, Forecast, Ledger, MailOf, NotNow, Other, Plan, Planner,
    Prospect, Rules, Scheduled, Sending, StepKey, Unplanned, forecast,
};
use redeliver_core::change::NewRow;
use redeliver_core::{Route, Timestamp};

use super::{CampaignError, Desk, Ways, lock};
use crate::campaigns::{CampaignRecord, Keyed, PartKept, PlanPart, Planning, PlanningMark, ProspectRecord};
use crate::emit::Planned;
use crate::engine::Engine;

/// Prospects in one part.
const PART_PROSPECTS_MAX: usize = 1_000;
/// Prospects that are planned before others have a turn.
const TURN_PROSPECTS_MAX: usize = 25;
/// How long the mark of an instance that plans holds without being renewed. A part takes about a second.
const MARK_HOLDS: Duration = Duration::from_secs(5);
/// A campaign is paused when its planning was interrupted so often in a row without keeping a part. A process that is killed
/// or stopped interrupts a planning once; one that crashes because of it does so every time.
const INTERRUPTIONS_MAX: u32 = 3;

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
enum Turn<'a> {
    First,
    Second(&'a Known),
}

/// When the mails go out that somebody who is looked at again has already, step by step; by their position.
type Known = HashMap<u64, Vec<Option<Timestamp>>>;

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
#[derive(Clone, Debug, Default)]
pub(super) struct Again {
    /// The position of the last one who was looked at.
    after: u64,
    /// Who can't be planned this time either.
    still: Unplanned,
}

/// A part that was drawn, and how far the second look is once it is kept.
struct Drawn {
    part: PlanPart,
    again: Option<Again>,
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
        if !self.begin_planning(desk, id, on_rival).await? {
            return Ok(Scheduling::default());
        }
        let planned = self.plan_all(desk, id, on_rival).await;
        // Whatever came of it, it did not end the process.
        desk.store.end_planning(id, self.instance).await?;
        planned
    }

    /// Marks that this instance plans a campaign, or renews the mark; `false` if it is left to another instance. A campaign whose
    /// planning was interrupted too often is paused.
    async fn begin_planning(&self, desk: &Desk, id: &str, on_rival: OnRival) -> Result<bool, CampaignError> {
        let now = self.clock.now();
        let mark =
            PlanningMark { campaign: id.into(), planner: self.instance, now, until_at: now.plus(MARK_HOLDS) };
        match desk.store.begin_planning(mark).await? {
            Planning::Begun { interruptions } if interruptions >= INTERRUPTIONS_MAX => {
                let reason = format!(
                    "planning was interrupted {interruptions} times in a row without progress, probably because it \
                     ended the process: check its templates and prospects, then resume it or make it anew"
                );
                self.pause_for(id, &reason).await?;
                Err(NotNow { action: CampaignAction::Schedule, state: CampaignState::Paused }.into())
            }
            Planning::Begun { .. } => Ok(true),
            // What a person asks for is done at once. Whether it is planned twice is found out when a part is kept.
            Planning::Taken => Ok(on_rival == OnRival::GoOn),
        }
    }

    async fn plan_all(&self, desk: &Desk, id: &str, on_rival: OnRival) -> Result<Scheduling, CampaignError> {
        let mut told = Scheduling::default();
        'looking: loop {
            let mut drawing = self.draw(desk, id).await?;
            drawing.record.state.after(CampaignAction::Schedule)?;
            let is_passed = drawing.planner.state().after >= drawing.record.prospects;
            // Whoever only tends has nothing new for those who could not be planned; a person may have corrected them. Once
            // such a look has begun, whoever plans next goes on with it.
            if on_rival == OnRival::GoOn && !drawing.unplanned.is_empty() {
                lock(&desk.again).entry(id.into()).or_default();
            }
            drawing.again = lock(&desk.again).get(id).cloned();
            if drawing.record.state == CampaignState::Done && (!is_passed || drawing.again.is_some()) {
                self.move_campaign(id, CampaignAction::Schedule, &"redeliver".into()).await?;
            }
            let route = self.route_of(&drawing.ways.campaign.route)?;
            let mut known = drawing.unplanned.count;
            let mut next = drawing.next_part(desk, route, self).await?;
            while let Some(Drawn { part, again }) = next {
                let (mails, all) = (part.rows.len() as u64, part.ledger.unplanned.count);
                let unplanned = all.saturating_sub(std::mem::replace(&mut known, all));
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
                        self.begin_planning(desk, id, OnRival::GoOn).await?;
                        desk.remember(id, again);
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
            let zones: Vec<Option<Zone>> = prospects.iter().map(|record| zone_of(&record.prospect)).collect();
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
    ) -> Result<Option<Drawn>, CampaignError> {
        if let Some(again) = &self.again {
            let planned_up_to = self.planner.state().after;
            let mut prospects =
                desk.store.prospects(&self.record.id, again.after, PART_PROSPECTS_MAX).await?;
            prospects.retain(|record| record.position <= planned_up_to);
            let Some(last) = prospects.last().map(|record| record.position) else {
                self.unplanned = self.again.take().map(|again| again.still).unwrap_or_default();
                return Ok(Some(self.finish_part(Vec::new())));
            };
            let (left, known) = self.not_wholly_planned(desk, prospects).await?;
            let (rows, still) = self.rows_of(route, &left, engine, Turn::Second(&known)).await;
            let again = self.again.get_or_insert_default();
            again.after = last;
            again.still.add(still);
            return Ok(Some(self.finish_part(rows)));
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

    /// Those of some prospects that a step is missing of, and when the steps go out that they have.
    async fn not_wholly_planned(
        &self,
        desk: &Desk,
        prospects: Vec<ProspectRecord>,
    ) -> Result<(Vec<ProspectRecord>, Known), CampaignError> {
        let ids = prospects.iter().map(|record| record.prospect.id.as_str()).collect();
        let found = desk.mails_of(&self.record, ids).await?;
        // What is gone went out long ago.
        let time = |keyed: Keyed| keyed.message.map(|message| message.due_at).unwrap_or_default();
        let each = prospects.into_iter().zip(found);
        let missing = each.filter(|(_, mails)| mails.iter().any(Option::is_none));
        let (mut left, mut known) = (Vec::new(), Known::new());
        for (record, mails) in missing {
            known.insert(record.position, mails.into_iter().map(|mail| mail.map(time)).collect());
            left.push(record);
        }
        Ok((left, known))
    }

    /// The mails of some prospects, and who could not be planned.
    async fn rows_of(
        &mut self,
        route: &Route,
        prospects: &[ProspectRecord],
        engine: &Engine,
        turn: Turn<'_>,
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
        turn: Turn<'_>,
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
        turn: Turn<'_>,
        mails: &mut Vec<Scheduled>,
    ) -> Result<(), String> {
        for step in self.ways.campaign.in_order() {
            self.ways.templates.write(&self.ways.campaign, step.order, &record.prospect)?;
        }
        let zone = zone_of(&record.prospect);
        let enrolled = Enrolled { position: record.position, zone: zone.as_ref() };
        let planned = match turn {
            Turn::First => self.planner.plan(enrolled, mails).map(drop),
            Turn::Second(known) => {
                let known = known.get(&record.position).map_or(&[][..], Vec::as_slice);
                self.planner.plan_again(enrolled, known, mails)
            }
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

    fn finish_part(&mut self, rows: Vec<NewRow>) -> Drawn {
        let last = rows.iter().map(|row| row.message.due_at).max();
        self.record.last_at = self.record.last_at.max(last);
        self.version += 1;
        let part = PlanPart {
            campaign: self.record.id.clone(),
            workspace: self.record.workspace.clone(),
            expected_version: self.version - 1,
            ledger: Ledger {
                unplanned: self.unplanned.clone(),
                ..Ledger::new(&self.rules, self.planner.state().clone())
            },
            last_at: self.record.last_at,
            rows,
        };
        Drawn { part, again: self.again.clone() }
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

/// Where a prospect lives, if that is known.
pub(super) fn zone_of(prospect: &Prospect) -> Option<Zone> {
    prospect.zone.as_deref().and_then(|zone| zone.parse().ok())
}
