//! What people do to a campaign: launch, pause, resume, cancel; and to one prospect of it: pause, resume, stop.

use std::sync::Arc;

use redeliver_core::Name;
use redeliver_core::campaign::{CampaignAction, CampaignState, StepKey};
use redeliver_core::change::Audit;
use redeliver_core::gate::{GateKey, Scope};
use redeliver_core::operate::Action;

use super::{CampaignError, Scheduling};
use crate::campaigns::{CampaignChange, CampaignRecord, ProspectRecord, Suppression};
use crate::engine::Engine;
use crate::operate::OperateError;
use crate::store::StoreError;

/// How often a campaign that keeps changing under our hands is looked at again.
const LOOKS_MAX: usize = 8;
/// Reasons to stop a prospect that hold for every campaign of the workspace.
const SUPPRESSING: [&str; 2] = ["unsubscribed", "bounced"];

impl Engine {
    /// Lets a campaign run, and schedules its mails.
    pub async fn launch_campaign(&self, id: &str, actor: &Arc<str>) -> Result<Scheduling, CampaignError> {
        self.move_campaign(id, CampaignAction::Launch, actor).await?;
        self.schedule(id).await
    }

    /// Stops a campaign for a while: first nothing passes, then it is written down that it is paused.
    pub async fn pause_campaign(&self, id: &str, actor: &Arc<str>) -> Result<CampaignRecord, CampaignError> {
        self.campaign(id).await?.state.after(CampaignAction::Pause)?;
        self.pause(Scope::Campaign, id, actor).await?;
        self.move_campaign(id, CampaignAction::Pause, actor).await
    }

    /// Pauses a campaign that cannot be planned, and says why.
    pub(super) async fn pause_for(&self, id: &str, reason: &str) -> Result<(), CampaignError> {
        let actor = "redeliver".into();
        self.campaign(id).await?.state.after(CampaignAction::Pause)?;
        self.pause(Scope::Campaign, id, &actor).await?;
        self.move_campaign_for(id, CampaignAction::Pause, &actor, Some(reason)).await?;
        self.observer.campaign_paused(id, reason);
        Ok(())
    }

    /// Lets a campaign go on: first it is written down that it runs, then what waits is released.
    pub async fn resume_campaign(&self, id: &str, actor: &Arc<str>) -> Result<CampaignRecord, CampaignError> {
        let record = self.move_campaign(id, CampaignAction::Resume, actor).await?;
        self.resume(Scope::Campaign, id, actor).await?;
        Ok(record)
    }

    /// Ends a campaign. What is scheduled is cancelled when its time comes; what waits for it to go on, at once.
    pub async fn cancel_campaign(&self, id: &str, actor: &Arc<str>) -> Result<CampaignRecord, CampaignError> {
        let record = self.move_campaign(id, CampaignAction::Cancel, actor).await?;
        for gate in self.store.gates().await? {
            if gate.key.as_str().starts_with(GateKey::prospect(id, "").as_str()) {
                self.set_gate(gate.key, None, None).await?;
            }
        }
        self.resume(Scope::Campaign, id, actor).await?;
        Ok(record)
    }

    /// One prospect of a campaign, as they stand.
    pub async fn prospect(&self, id: &str, prospect: &str) -> Result<ProspectRecord, CampaignError> {
        let found = self.desk(id)?.store.dossier(id, prospect).await?;
        found.map(|dossier| dossier.prospect).ok_or_else(|| CampaignError::NoProspect(prospect.to_owned()))
    }

    /// Stops one prospect for a while: it is written down once, and each mail to them that comes to its time waits.
    pub async fn pause_prospect(
        &self,
        id: &str,
        prospect: &str,
        actor: &Arc<str>,
    ) -> Result<ProspectRecord, CampaignError> {
        let audit = self.deed("pause", id, prospect, actor);
        self.desk(id)?.store.pause_prospect(id, prospect, audit).await?;
        self.unless_stopped(id, prospect).await
    }

    /// Lets one prospect go on: first that is written down, then what waits for it is released.
    pub async fn resume_prospect(
        &self,
        id: &str,
        prospect: &str,
        actor: &Arc<str>,
    ) -> Result<ProspectRecord, CampaignError> {
        let audit = self.deed("resume", id, prospect, actor);
        self.desk(id)?.store.resume_prospect(id, prospect, audit).await?;
        let record = self.unless_stopped(id, prospect).await?;
        self.set_gate(GateKey::prospect(id, prospect), None, None).await?;
        self.wake_all();
        Ok(record)
    }

    /// A prospect as they stand, if they were not stopped for good.
    async fn unless_stopped(&self, id: &str, prospect: &str) -> Result<ProspectRecord, CampaignError> {
        let record = self.prospect(id, prospect).await?;
        match record.stopped_for {
            Some(reason) => Err(CampaignError::Stopped { prospect: prospect.to_owned(), reason }),
            None => Ok(record),
        }
    }

    /// Stops one prospect: nothing more goes out to them, and what is scheduled is cancelled. Says for what they are stopped:
    /// the first reason stays; `None` if they are not there.
    pub async fn stop_prospect(
        &self,
        id: &str,
        prospect: &str,
        reason: &str,
        actor: &Arc<str>,
    ) -> Result<Option<Name>, CampaignError> {
        let record = self.campaign(id).await?;
        let store = &self.desk(id)?.store;
        store.stop_prospect(id, prospect, reason, self.deed("stop", id, prospect, actor)).await?;
        let Some(dossier) = store.dossier(id, prospect).await? else { return Ok(None) };
        if SUPPRESSING.contains(&reason) {
            let address = dossier.prospect.prospect.email.clone();
            self.suppress(&record.workspace, vec![Suppression { address, reason: reason.into() }], actor)
                .await?;
        }
        let steps = record.definition.in_order().into_iter().map(|step| step.order);
        let keys = steps.filter_map(|step| StepKey::new(prospect, &record.definition.sequence_id, step).ok());
        let keys = keys.map(|key| key.to_string()).collect();
        for keyed in store.by_keys(&record.workspace, keys).await?.into_iter().flatten() {
            match self.operate(&keyed.id, Action::Cancel, actor).await {
                // One that has ended, or is gone, needs no cancelling.
                Ok(_) | Err(OperateError::Unfit(_) | OperateError::NoMessage(_)) => {}
                Err(OperateError::Store(error)) => return Err(error.into()),
            }
        }
        self.set_gate(GateKey::prospect(id, prospect), None, None).await?;
        Ok(Some(dossier.prospect.stopped_for.unwrap_or_else(|| reason.into())))
    }

    fn deed(&self, action: &'static str, id: &str, prospect: &str, actor: &Arc<str>) -> Audit {
        let subject = format!("campaign:{id}:{prospect}").into();
        Audit { actor: actor.clone(), action, subject, at: self.clock.now(), detail: None }
    }

    pub(super) async fn move_campaign(
        &self,
        id: &str,
        action: CampaignAction,
        actor: &Arc<str>,
    ) -> Result<CampaignRecord, CampaignError> {
        self.move_campaign_for(id, action, actor, None).await
    }

    async fn move_campaign_for(
        &self,
        id: &str,
        action: CampaignAction,
        actor: &Arc<str>,
        reason: Option<&str>,
    ) -> Result<CampaignRecord, CampaignError> {
        for _ in 0..LOOKS_MAX {
            let record = self.campaign(id).await?;
            let to: CampaignState = record.state.after(action)?;
            if to == record.state {
                return Ok(record);
            }
            let subject = format!("campaign:{id}").into();
            let audit = Audit {
                actor: actor.clone(),
                action: action.name(),
                subject,
                at: self.clock.now(),
                detail: reason.map(Arc::from),
            };
            let paused_for: Option<Name> = reason.map(Name::from);
            let change = CampaignChange {
                id: id.into(),
                from: record.state,
                to,
                paused_for: paused_for.clone(),
                audit,
            };
            if self.desk(id)?.store.move_campaign(change).await? {
                return Ok(CampaignRecord { state: to, paused_for, ..record });
            }
        }
        Err(StoreError::Unavailable(format!("campaign {id} keeps changing")).into())
    }
}
