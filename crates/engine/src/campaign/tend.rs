//! Tends campaigns while an engine runs: plans those whom nobody has planned yet, which is how a launch that was cut short
//! goes on, and ends what has come to its end.

use redeliver_core::campaign::{CampaignAction, StepKey};
use redeliver_core::gate::GateKey;
use redeliver_core::{Message, State};

use super::plan::OnRival;
use super::{CampaignError, Desk, lock};
use crate::engine::Engine;
use crate::stop::Stop;
use crate::store::StoreError;

/// It looks once in so many looks at lost leases and gates, unless it is woken.
const KEEPS_PER_TEND: u32 = 10;
/// Prospects whose mails are looked at together.
const LOOK_PROSPECTS_MAX: usize = 500;
/// Such looks at one campaign, at most, before the others have their turn.
const LOOKS_MAX: usize = 100;

impl Engine {
    /// Has whoever tends campaigns look at once.
    pub fn wake_planner(&self) {
        if let Some(desk) = &self.desk {
            desk.woken.notify_one();
        }
    }

    /// Tends campaigns until told to stop.
    pub(crate) async fn tend(&self, mut stop: Stop) {
        while !stop.is_stopped() {
            tokio::select! {
                biased;
                () = stop.stopped() => return,
                () = self.tend_once() => {}
            }
            let Some(desk) = &self.desk else { return stop.stopped().await };
            tokio::select! {
                biased;
                () = stop.stopped() => {}
                () = desk.woken.notified() => {}
                () = self.clock.sleep(self.settings.keep_interval * KEEPS_PER_TEND) => {}
            }
        }
    }

    /// Looks once at every campaign that has something left to be done.
    pub async fn tend_once(&self) {
        let Some(desk) = &self.desk else { return };
        let found = match desk.store.unfinished(self.clock.now()).await {
            Ok(found) => found,
            Err(error) => return self.observer.store_failed("looking for campaigns", &error),
        };
        for campaign in found {
            let tended = match campaign.is_planned {
                false => self.schedule_unless(&campaign.id, OnRival::Yield).await.map(drop),
                true => self.finish_campaign(desk, &campaign.id).await,
            };
            match tended {
                // Somebody has just paused or ended it.
                Ok(()) | Err(CampaignError::NotNow(_) | CampaignError::NoCampaign(_)) => {}
                Err(CampaignError::Store(error)) => self.observer.store_failed("tending a campaign", &error),
                Err(
                    wrong @ (CampaignError::Wrong(_)
                    | CampaignError::Route(_)
                    | CampaignError::NoProspect(_)
                    | CampaignError::Stopped { .. }),
                ) => {
                    let error = StoreError::Unfit(format!("campaign {}: {wrong}", campaign.id));
                    self.observer.store_failed("tending a campaign", &error);
                }
            }
        }
    }

    /// Ends a campaign if each of its mails has come to its end. What was looked at is not looked at again.
    async fn finish_campaign(&self, desk: &Desk, id: &str) -> Result<(), CampaignError> {
        let record = self.campaign(id).await?;
        let steps: Vec<u32> = record.definition.in_order().iter().map(|step| step.order).collect();
        for _ in 0..LOOKS_MAX {
            let after = lock(&desk.ended).get(id).copied().unwrap_or(0);
            let prospects = desk.store.prospects(id, after, LOOK_PROSPECTS_MAX).await?;
            if prospects.is_empty() {
                self.move_campaign(id, CampaignAction::Finish, &"redeliver".into()).await?;
                lock(&desk.ended).remove(id);
                return Ok(());
            }
            let key = |prospect: &str, step: &u32| {
                let key = StepKey::new(prospect, &record.definition.sequence_id, *step);
                key.map(String::from).unwrap_or_default()
            };
            let keys = prospects
                .iter()
                .flat_map(|record| steps.iter().map(|step| key(&record.prospect.id, step)))
                .collect();
            let found = desk.store.by_keys(&record.workspace, keys).await?;
            let ended = prospects.iter().zip(found.chunks(steps.len().max(1))).take_while(|(_, mails)| {
                mails.iter().flatten().all(|keyed| keyed.message.as_ref().is_none_or(has_ended))
            });
            let Some(last) = ended.last().map(|(record, _)| record.position) else { return Ok(()) };
            lock(&desk.ended).insert(id.into(), last);
        }
        Ok(())
    }
}

/// Whether nothing more happens to a mail by itself. One to an address that wants none waits for a person.
fn has_ended(message: &Message) -> bool {
    match &message.state {
        State::Delivered { .. } | State::Dead { .. } | State::Cancelled { .. } => true,
        State::Waiting { parked_for } => parked_for.as_ref().is_some_and(GateKey::is_suppression),
        State::Claimed(_) | State::HandedOff { .. } => false,
    }
}
