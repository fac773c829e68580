//! Tends campaigns while an engine runs: plans those whom nobody has planned yet, which is how a launch that was cut short
//! goes on, and ends what has come to its end.

use redeliver_core::campaign::CampaignAction;
use redeliver_core::gate::GateKey;
use redeliver_core::{Message, State};

use super::plan::OnRival;
use super::{CampaignError, Desk, lock};
use crate::campaigns::Unfinished;
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
        let mut found = match desk.store.unfinished(self.clock.now()).await {
            Ok(found) => found,
            Err(error) => return self.observer.store_failed("looking for campaigns", &error),
        };
        // A second look that was cut short is known here only.
        for id in lock(&desk.again).keys() {
            found.retain(|campaign| campaign.id != *id);
            found.push(Unfinished { id: id.clone(), is_planned: false });
        }
        for campaign in found {
            let tended = match campaign.is_planned {
                false => self.schedule_unless(&campaign.id, OnRival::Yield).await.map(drop),
                true => self.finish_campaign(desk, &campaign.id).await,
            };
            match tended {
                Ok(()) => {}
                // Somebody has just paused or ended it.
                Err(CampaignError::NotNow(_) | CampaignError::NoCampaign(_)) => {
                    desk.remember(&campaign.id, None);
                }
                Err(CampaignError::Store(error)) => self.observer.store_failed("tending a campaign", &error),
                // Kept by an earlier version, which took what is refused now.
                Err(wrong @ CampaignError::Wrong(_)) => {
                    let reason = format!("it cannot be planned: {wrong}");
                    if let Err(CampaignError::Store(error)) = self.pause_for(&campaign.id, &reason).await {
                        self.observer.store_failed("pausing a campaign", &error);
                    }
                }
                Err(
                    wrong @ (CampaignError::Route(_)
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
        for _ in 0..LOOKS_MAX {
            // What was scheduled since may be anybody's: of one who was corrected, and stands before those who have ended.
            let ended = lock(&desk.ended).get(id).copied();
            let after =
                ended.filter(|(scheduled, _)| *scheduled == record.scheduled).map_or(0, |(_, last)| last);
            let prospects = desk.store.prospects(id, after, LOOK_PROSPECTS_MAX).await?;
            if prospects.is_empty() {
                self.move_campaign(id, CampaignAction::Finish, &"redeliver".into()).await?;
                lock(&desk.ended).remove(id);
                return Ok(());
            }
            let ids = prospects.iter().map(|one| one.prospect.id.as_str()).collect();
            let found = desk.mails_of(&record, ids).await?;
            let ended = prospects.iter().zip(found).take_while(|(_, mails)| {
                mails.iter().flatten().all(|keyed| keyed.message.as_ref().is_none_or(has_ended))
            });
            let Some(last) = ended.last().map(|(record, _)| record.position) else { return Ok(()) };
            lock(&desk.ended).insert(id.into(), (record.scheduled, last));
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
