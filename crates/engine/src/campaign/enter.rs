//! What people bring: campaigns, prospects, a workspace's settings. Whatever is wrong with them is said before anything is
//! kept.

use std::sync::Arc;

use redeliver_core::Name;
use redeliver_core::campaign::{
    Campaign, CampaignAction, CampaignState, Ends, Ledger, Problem, Prospect, Settings,
};
use redeliver_core::change::Audit;

use super::{CampaignError, problems, workspace_problems};
use crate::campaigns::{CampaignRecord, WorkspaceRecord};
use crate::engine::Engine;

impl Engine {
    /// Keeps a new campaign, as a draft.
    pub async fn add_campaign(
        &self,
        workspace: Name,
        definition: Campaign,
        actor: &Arc<str>,
    ) -> Result<CampaignRecord, CampaignError> {
        let store = &self.desk("")?.store;
        let settings = store.workspace(&workspace).await?.settings;
        let wrong = problems(&definition, &settings);
        if !wrong.is_empty() {
            return Err(CampaignError::Wrong(wrong));
        }
        self.check_route(&definition.route)?;
        let now = self.clock.now();
        let id: Name = self.clock.message_id(now).to_string().into();
        let record = CampaignRecord {
            id: id.clone(),
            workspace,
            definition,
            state: CampaignState::Draft,
            ledger: Ledger::default(),
            prospects: 0,
            scheduled: 0,
            last_at: None,
            paused_for: None,
            ends: Ends::default(),
            created_at: now,
        };
        let subject = format!("campaign:{id}").into();
        let audit = Audit { actor: actor.clone(), action: "create_campaign", subject, at: now, detail: None };
        store.add_campaign(record.clone(), audit).await?;
        Ok(record)
    }

    /// Whether mails of a campaign may travel by this route.
    fn check_route(&self, name: &str) -> Result<(), CampaignError> {
        let wrong = |why: &str| Err(CampaignError::Route(format!("route {name:?} {why}")));
        match self.route(name) {
            None => wrong("is not there"),
            Some(route) if route.table.is_some() => wrong("carries the rows of a table, and no campaigns"),
            Some(route) if route.key_retention.is_some() => wrong(
                "forgets its keys: set its key_retention to \"forever\", so that nobody is written to twice",
            ),
            Some(_) => Ok(()),
        }
    }

    /// Gives a workspace its settings, if every campaign that may still send can be kept with them.
    pub async fn put_settings(
        &self,
        workspace: &Name,
        settings: Settings,
        actor: &Arc<str>,
    ) -> Result<WorkspaceRecord, CampaignError> {
        let store = &self.desk("")?.store;
        let mut wrong = workspace_problems(&settings);
        for campaign in store.campaigns(workspace).await? {
            if wrong.is_empty()
                && campaign.state != CampaignState::Cancelled
                && let Some(problem) = problems(&campaign.definition, &settings).first()
            {
                let problem = format!("then: {} {}", problem.field, problem.problem);
                wrong.push(Problem { field: format!("campaign {}", campaign.id), problem });
            }
        }
        if !wrong.is_empty() {
            return Err(CampaignError::Wrong(wrong));
        }
        let subject = format!("workspace:{workspace}").into();
        let audit = Audit {
            actor: actor.clone(),
            action: "put_settings",
            subject,
            at: self.clock.now(),
            detail: None,
        };
        store.put_settings(workspace.clone(), settings, audit).await?;
        Ok(store.workspace(workspace).await?)
    }

    /// Enrols prospects, the new ones in one commit, and says of each whether it is new, or takes the place of what could not
    /// be planned, one after the other. They are scheduled while the campaign runs, and corrected ones when it is launched again;
    /// one that was done runs again.
    pub async fn enrol(&self, id: &str, prospects: Vec<Prospect>) -> Result<Vec<bool>, CampaignError> {
        let record = self.campaign(id).await?;
        if record.state == CampaignState::Cancelled {
            return Err(record
                .state
                .after(CampaignAction::Schedule)
                .err()
                .map_or_else(|| CampaignError::NoCampaign(id.to_owned()), CampaignError::NotNow));
        }
        let desk = self.desk(id)?;
        let said = if record.ledger.unplanned.is_empty() { Vec::new() } else { prospects.clone() };
        let mut enrolled = desk.store.enrol(id, prospects).await?;
        let known: Vec<(Prospect, &mut bool)> =
            said.into_iter().zip(&mut enrolled).filter(|(_, is_new)| !**is_new).collect();
        let ids = known.iter().map(|(prospect, _)| prospect.id.as_str()).collect();
        let mails = desk.mails_of(&record, ids).await?;
        for ((prospect, is_new), mails) in known.into_iter().zip(mails) {
            *is_new = mails.iter().all(Option::is_none) && self.correct(&record, prospect).await?;
        }
        self.wake_planner();
        Ok(enrolled)
    }

    /// Puts what is said now in the place of what was said of somebody to whom nothing could be scheduled. Says whether it did.
    async fn correct(&self, record: &CampaignRecord, prospect: Prospect) -> Result<bool, CampaignError> {
        let desk = self.desk(&record.id)?;
        let Some(dossier) = desk.store.dossier(&record.id, &prospect.id).await? else { return Ok(false) };
        let was_passed = dossier.prospect.position <= record.ledger.plan.after;
        if !was_passed || dossier.prospect.prospect == prospect {
            return Ok(false);
        }
        let is_corrected = desk.store.correct(&record.id, prospect).await?;
        // A second look that was cut short may have passed them.
        desk.remember(&record.id, None);
        Ok(is_corrected)
    }
}
