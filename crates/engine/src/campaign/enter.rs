//! What people bring: campaigns, prospects, a workspace's settings. Whatever is wrong with them is said before anything is
//! kept.

use std::sync::Arc;

use redeliver_core::Name;
use redeliver_core::campaign::{
    Campaign, CampaignAction, CampaignState, Ends, Ledger, Problem, Prospect, Settings, StepKey,
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

    /// Enrols prospects, all of them in one commit, and says of each whether it is new, or takes the place of what could not be
    /// planned. They are scheduled while the campaign runs, and corrected ones when it is launched again; one that was done runs
    /// again.
    pub async fn enrol(&self, id: &str, prospects: Vec<Prospect>) -> Result<Vec<bool>, CampaignError> {
        let record = self.campaign(id).await?;
        if record.state == CampaignState::Cancelled {
            return Err(record
                .state
                .after(CampaignAction::Schedule)
                .err()
                .map_or_else(|| CampaignError::NoCampaign(id.to_owned()), CampaignError::NotNow));
        }
        let store = &self.desk(id)?.store;
        let said = if record.ledger.unplanned.is_empty() { Vec::new() } else { prospects.clone() };
        let mut enrolled = store.enrol(id, prospects).await?;
        let known = said.into_iter().zip(&mut enrolled).filter(|(_, is_new)| !**is_new);
        for (prospect, is_new) in known {
            *is_new = self.correct(&record, prospect).await?;
        }
        self.wake_planner();
        Ok(enrolled)
    }

    /// Puts what is said now in the place of what was said of somebody to whom nothing could be scheduled. Says whether it did.
    async fn correct(&self, record: &CampaignRecord, prospect: Prospect) -> Result<bool, CampaignError> {
        let store = &self.desk(&record.id)?.store;
        let Some(dossier) = store.dossier(&record.id, &prospect.id).await? else { return Ok(false) };
        let sequence = &record.definition.sequence_id;
        let key =
            |step: u32| StepKey::new(&prospect.id, sequence, step).map(String::from).unwrap_or_default();
        let keys = record.definition.steps.iter().map(|step| key(step.order)).collect();
        let has_a_mail = store.by_keys(&record.workspace, keys).await?.iter().any(Option::is_some);
        let was_passed = dossier.prospect.position <= record.ledger.plan.after;
        if has_a_mail || !was_passed || dossier.prospect.prospect == prospect {
            return Ok(false);
        }
        Ok(store.correct(&record.id, prospect).await?)
    }
}
