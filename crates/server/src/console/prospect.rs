//! One prospect on the page of their campaign: how they stand, and what a person does to them: pause, resume, stop.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use redeliver_core::campaign::CampaignState;
use redeliver_engine::Engine;
use redeliver_engine::campaign::{CampaignError, Place, ScheduledMail};
use redeliver_engine::campaigns::{CampaignRecord, ProspectRecord};

use super::emails::visible;
use super::form::Form;
use super::guard::Visitor;
use super::moment::Moment;
use super::refusal::Refusal;
use super::{Console, link};
use crate::api::campaigns::find;
use crate::api::suppressions::check_reason;
use crate::problem::{FieldProblem, Problem};

/// Why a prospect is stopped, as a person chooses it: the word, and what it means.
const REASONS: [(&str, &str); 4] = [
    ("replied", "Replied"),
    ("unsubscribed", "Unsubscribed: suppress the address in the workspace"),
    ("bounced", "Bounced: suppress the address in the workspace"),
    ("operator", "Another reason"),
];

/// Somebody who was looked up.
pub(super) struct LookedUp {
    /// What was asked for.
    pub(super) asked: String,
    /// Who that is, if they are there.
    pub(super) found: Option<Found>,
}

/// A prospect as the page has them.
pub(super) struct Found {
    pub(super) href: String,
    pub(super) address: String,
    pub(super) state: &'static str,
    pub(super) class: &'static str,
    pub(super) paused: Option<Moment>,
    pub(super) stopped_for: Option<String>,
    pub(super) can_pause: bool,
    pub(super) can_resume: bool,
    pub(super) reasons: Vec<(&'static str, &'static str)>,
}

/// Looks somebody up by their id, with the mails to them.
pub(super) async fn look_up(
    engine: &Engine,
    record: &CampaignRecord,
    asked: &str,
    may_act: bool,
) -> Result<(LookedUp, Vec<ScheduledMail>), Problem> {
    let found = match engine.prospect(&record.id, asked).await {
        Ok(found) => Some(found),
        Err(CampaignError::NoProspect(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let mails = match &found {
        Some(found) => mails_to(engine, record, found).await?,
        None => Vec::new(),
    };
    let may_act = may_act && record.state != CampaignState::Cancelled;
    let found = found.map(|found| Found::of(&found, &record.id, may_act));
    Ok((LookedUp { asked: visible(asked), found }, mails))
}

async fn mails_to(
    engine: &Engine,
    record: &CampaignRecord,
    prospect: &ProspectRecord,
) -> Result<Vec<ScheduledMail>, Problem> {
    // Behind the last step of whoever came before them.
    let after = Place { position: prospect.position.saturating_sub(1), step: u32::MAX };
    let (mut mails, _) = engine.schedule_of(record, after, record.definition.steps.len()).await?;
    mails.retain(|mail| mail.prospect == prospect.prospect.id);
    Ok(mails)
}

impl Found {
    fn of(record: &ProspectRecord, campaign: &str, may_act: bool) -> Self {
        let (state, class) = match (&record.stopped_for, record.paused_at) {
            (Some(_), _) => ("stopped", "muted"),
            (None, Some(_)) => ("paused", "warning"),
            (None, None) => ("active", "good"),
        };
        let may_act = may_act && record.stopped_for.is_none();
        let id = link::segment(&record.prospect.id);
        Self {
            href: format!("{}/prospects/{id}", link::campaign(campaign)),
            address: visible(&record.prospect.email),
            state,
            class,
            paused: record.paused_at.map(Moment::clock),
            stopped_for: record.stopped_for.as_deref().map(visible),
            can_pause: may_act && record.paused_at.is_none(),
            can_resume: may_act && record.paused_at.is_some(),
            reasons: if may_act { REASONS.to_vec() } else { Vec::new() },
        }
    }
}

/// `POST /admin/campaigns/{campaign}/prospects/{prospect}/{word}`
pub(super) async fn tell(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<Form>,
    Path((id, prospect, word)): Path<(String, String, String)>,
) -> Result<Response, Refusal> {
    find(&console.server, &visitor.caller, &id).await?;
    let (engine, actor) = (&console.server.engine, &visitor.caller.name);
    match word.as_str() {
        "pause" => engine.pause_prospect(&id, &prospect, actor).await.map(drop)?,
        "resume" => engine.resume_prospect(&id, &prospect, actor).await.map(drop)?,
        "stop" => {
            let reason = form.text("reason");
            let wrong = |problem| Problem::invalid(vec![FieldProblem::new("reason", problem)]);
            check_reason(reason).map_err(wrong)?;
            let stopped = engine.stop_prospect(&id, &prospect, reason, actor).await?;
            stopped.ok_or(CampaignError::NoProspect(prospect.clone()))?;
        }
        _ => return Err(Problem::not_found("no page at this address").into()),
    }
    Ok(Redirect::to(&link::with(&link::campaign(&id), &[("prospect", &prospect)])).into_response())
}
