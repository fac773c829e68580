//! What people see of campaigns: their schedules, their settings, what is used of their quotas.

use std::collections::BTreeMap;

use redeliver_core::calendar::{Day, Zone};
use redeliver_core::campaign::{PlannedDay, Settings, planned_days};
use redeliver_core::email::message_id;
use redeliver_core::{Message, MessageId};

use super::CampaignError;
use crate::campaigns::{CampaignRecord, Used};
use crate::engine::Engine;

/// Prospects that are looked at together, at least.
const LOOK_PROSPECTS_MIN: usize = 50;
/// Looks for one page, at most.
const LOOKS_MAX: usize = 20;

/// A place in a schedule: behind this step of the prospect at this position.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The prospect's position.
    pub position: u64,
    /// The step's number.
    pub step: u32,
}

/// One mail of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledMail {
    /// Whom it goes to.
    pub prospect: String,
    /// Which step.
    pub step: u32,
    /// What it is called.
    pub key: String,
    /// Which message.
    pub id: MessageId,
    /// As it stands, while it is kept.
    pub message: Option<Message>,
    /// Its own Message-ID.
    pub message_id: String,
    /// The Message-ID of the first mail to the same prospect.
    pub thread_id: String,
}

/// A campaign's days.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignCalendar {
    /// The zone of its days.
    pub zone: Zone,
    /// Today there.
    pub today: Day,
    /// The days with a mail planned or sent, in order.
    pub days: Vec<CampaignDay>,
}

/// One of them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CampaignDay {
    /// Which day.
    pub day: Day,
    /// What was planned for it, and what it takes.
    pub plan: PlannedDay,
    /// Mails that went out, or may have.
    pub sent: u64,
}

impl CampaignCalendar {
    /// Mails that went out, or may have, on all days.
    pub fn sent(&self) -> u64 {
        self.days.iter().map(|day| day.sent).sum()
    }
}

impl Engine {
    /// The scheduled mails of a campaign behind a place, in the order of enrolment; and where to go on.
    pub async fn schedule_of(
        &self,
        record: &CampaignRecord,
        after: Place,
        limit: usize,
    ) -> Result<(Vec<ScheduledMail>, Option<Place>), CampaignError> {
        let desk = self.desk(&record.id)?;
        let steps: Vec<u32> = record.definition.in_order().iter().map(|step| step.order).collect();
        let sender = record.definition.from.as_ref().map_or("", |from| from.address.as_str());
        let (mut place, mut mails) = (after, Vec::new());
        for _ in 0..LOOKS_MAX {
            // A prospect whose steps were not all told is looked at again.
            let is_whole = place.step as usize >= steps.len();
            let behind = if is_whole { place.position } else { place.position.saturating_sub(1) };
            let count = limit.div_ceil(steps.len().max(1)).max(LOOK_PROSPECTS_MIN);
            let mut prospects = desk.store.prospects(&record.id, behind, count).await?;
            prospects.retain(|prospect| prospect.position <= record.ledger.plan.after);
            if prospects.is_empty() {
                return Ok((mails, None));
            }
            let ids = prospects.iter().map(|one| one.prospect.id.as_str()).collect();
            let mails_of = desk.mails_of(record, ids).await?;
            for (prospect, found) in prospects.iter().zip(mails_of) {
                let first = found.iter().flatten().next().map(|keyed| message_id(&keyed.id, sender));
                for (keyed, step) in found.into_iter().zip(&steps) {
                    let here = Place { position: prospect.position, step: *step };
                    if here <= place {
                        continue;
                    }
                    if mails.len() >= limit {
                        return Ok((mails, Some(place)));
                    }
                    place = here;
                    let Some(keyed) = keyed else { continue };
                    mails.push(ScheduledMail {
                        prospect: prospect.prospect.id.clone(),
                        step: *step,
                        key: record.key(&prospect.prospect.id, *step),
                        message_id: message_id(&keyed.id, sender),
                        thread_id: first.clone().unwrap_or_default(),
                        id: keyed.id,
                        message: keyed.message,
                    });
                }
            }
        }
        Ok((mails, Some(place)))
    }

    /// A campaign's calendar: the days with a mail planned or sent.
    pub async fn campaign_calendar(&self, id: &str) -> Result<CampaignCalendar, CampaignError> {
        let (sending, rules, plan) = self.drawn(id).await?;
        let record = self.campaign(id).await?;
        let mut days: BTreeMap<Day, CampaignDay> = planned_days(&rules, &plan)
            .into_iter()
            .map(|(day, plan)| (day, CampaignDay { day, plan, sent: 0 }))
            .collect();
        for (number, sent) in self.desk(id)?.store.sent_by(&record.workspace, id).await? {
            let day = Day::from_number(number);
            let empty = CampaignDay { day, plan: PlannedDay::default(), sent: 0 };
            days.entry(day).or_insert(empty).sent = sent;
        }
        let zone = sending.zone_of_days().clone();
        let today = zone.local_day(self.clock.now());
        Ok(CampaignCalendar { zone, today, days: days.into_values().collect() })
    }

    /// How many mails of a campaign went out, or may have.
    pub async fn campaign_sent(&self, record: &CampaignRecord) -> Result<u64, CampaignError> {
        let days = self.desk(&record.id)?.store.sent_by(&record.workspace, &record.id).await?;
        Ok(days.into_iter().map(|(_, sent)| sent).sum())
    }

    /// All campaigns of a workspace, oldest first.
    pub async fn campaigns_of(&self, workspace: &str) -> Result<Vec<CampaignRecord>, CampaignError> {
        Ok(self.desk("")?.store.campaigns(workspace).await?)
    }

    /// A workspace's settings.
    pub async fn workspace_settings(&self, workspace: &str) -> Result<Settings, CampaignError> {
        Ok(self.desk("")?.store.workspace(workspace).await?.settings)
    }

    /// What is counted in a workspace on a day, or today in its zone; and which day that is.
    pub async fn quotas_used(
        &self,
        workspace: &str,
        day: Option<Day>,
    ) -> Result<(Day, Vec<Used>), CampaignError> {
        let store = &self.desk("")?.store;
        let day = match day {
            Some(day) => day,
            None => {
                let settings = store.workspace(workspace).await?.settings;
                let zone = settings.zone.and_then(|zone| zone.parse().ok()).unwrap_or_else(Zone::utc);
                zone.local_day(self.clock.now())
            }
        };
        Ok((day, store.used_on(workspace, day.number()).await?))
    }
}
