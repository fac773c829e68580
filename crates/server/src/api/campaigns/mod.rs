//! `/v1/campaigns`: steps for prospects, from their draft to their end.

pub mod act;
pub mod days;
pub mod document;
pub mod forecast;
pub(crate) mod place;
pub mod prospect;
pub mod prospects;
pub mod schedule;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use redeliver_core::Name;
use redeliver_core::campaign::Campaign;
use redeliver_engine::campaigns::CampaignRecord;
use serde::Serialize;
use utoipa::ToSchema;

use super::messages::check_workspace;
use crate::Server;
use crate::auth::Caller;
use crate::input::{Params, Segment, body};
use crate::openapi::{CampaignBody, CampaignMade, Looked, LookedUp, SettingsBody, StepsBody};
use crate::problem::Problem;

/// The workspace of whoever names none, with a key that is for all.
const DEFAULT_WORKSPACE: &str = "default";

/// Campaigns of a workspace.
#[derive(Serialize, ToSchema)]
pub struct Campaigns {
    /// Oldest first.
    pub items: Vec<CampaignView>,
}

/// A campaign.
#[derive(Clone, Serialize, ToSchema)]
pub struct CampaignView {
    /// Which one.
    pub id: String,
    /// Whose.
    pub workspace: String,
    /// What people call it.
    pub name: String,
    /// What its keys call it.
    pub sequence_id: String,
    /// The way its mails travel.
    pub route: String,
    /// Who writes.
    pub from: Option<String>,
    /// The priority of its mails.
    #[schema(pattern = "^(critical|high|medium|low)$")]
    pub priority: &'static str,
    /// Where it stands.
    #[schema(pattern = "^(draft|running|paused|cancelled|done)$")]
    pub state: &'static str,
    /// Its steps, as they were written.
    #[schema(value_type = StepsBody)]
    pub steps: serde_json::Value,
    /// Its own settings, as they were written.
    #[schema(value_type = Option<SettingsBody>)]
    pub settings: Option<serde_json::Value>,
    /// Nothing goes out before this.
    #[schema(format = DateTime)]
    pub start_at: Option<String>,
    /// How many are enrolled.
    pub prospects: u64,
    /// How many of them have been planned.
    pub planned: u64,
    /// Mails that have been scheduled.
    pub scheduled: u64,
    /// How many prospects could not be planned: a template wants what nobody said of them, or there is no room.
    pub error_count: u64,
    /// Who and why, of the first hundred. Enrolled again with what was missing, they are planned when it is launched again.
    pub errors: Vec<String>,
    /// Why it was paused, if it was paused automatically: its planning kept ending the process, or a template is refused.
    pub paused_for: Option<String>,
    /// Mails of it that were given up, and that nobody has put away.
    pub dead: u64,
    /// Mails of it that were stopped before they went out.
    pub cancelled: u64,
    /// When the last of them was to go out.
    #[schema(format = DateTime)]
    pub last_at: Option<String>,
    /// Since when it is there.
    #[schema(format = DateTime)]
    pub created_at: String,
}

impl CampaignView {
    /// A campaign as callers see it.
    pub fn of(record: &CampaignRecord) -> Self {
        let definition = &record.definition;
        // What was read from JSON can be written as JSON.
        let json = |value: serde_json::Result<serde_json::Value>| value.unwrap_or_default();
        Self {
            id: record.id.to_string(),
            workspace: record.workspace.to_string(),
            name: definition.name.clone(),
            sequence_id: definition.sequence_id.clone(),
            route: definition.route.clone(),
            from: definition.from.as_ref().map(|from| from.address.clone()),
            priority: definition.lane().name(),
            state: record.state.name(),
            steps: json(serde_json::to_value(&definition.steps)),
            settings: definition.settings.as_ref().map(|settings| json(serde_json::to_value(settings))),
            start_at: definition.start_at.map(|at| at.to_string()),
            prospects: record.prospects,
            planned: record.ledger.plan.after.min(record.prospects),
            scheduled: record.scheduled,
            error_count: record.ledger.unplanned.count,
            errors: record.ledger.unplanned.told.clone(),
            paused_for: record.paused_for.as_deref().map(str::to_owned),
            dead: record.ends.dead,
            cancelled: record.ends.cancelled,
            last_at: record.last_at.map(|at| at.to_string()),
            created_at: record.created_at.to_string(),
        }
    }
}

/// List a workspace's campaigns
#[utoipa::path(get, path = "/v1/campaigns", operation_id = "list_campaigns", tag = "campaigns",
    params(("workspace" = Option<String>, Query, pattern = "^[A-Za-z0-9_.-]{1,64}$")),
    responses((status = 200, description = "The campaigns", body = Campaigns), Looked))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Campaigns>, Problem> {
    let said = params.get("workspace", read_workspace);
    params.finish()?;
    // What another workspace has is not there.
    let found = match within(&caller, said) {
        Ok(workspace) => server.engine.campaigns_of(&workspace).await?,
        Err(_) => Vec::new(),
    };
    Ok(Json(Campaigns { items: found.iter().map(CampaignView::of).collect() }))
}

/// Make a campaign, as a draft
#[utoipa::path(post, path = "/v1/campaigns", operation_id = "create_campaign", tag = "campaigns", request_body = CampaignBody,
    responses((status = 201, description = "The draft", body = CampaignView), CampaignMade))]
pub async fn create(
    State(server): State<Server>,
    caller: Caller,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<CampaignView>), Problem> {
    params.finish()?;
    let (campaign, workspace) = body::object(&server, &headers, body, |fields| {
        for name in ["name", "sequence_id", "route", "steps"] {
            if fields.raw(name).is_none() {
                fields.wrong(name, "is missing");
            }
        }
        let campaign = Campaign {
            name: fields.get("name").unwrap_or_default(),
            sequence_id: fields.get("sequence_id").unwrap_or_default(),
            route: fields.get("route").unwrap_or_default(),
            from: fields.get("from"),
            priority: fields.get("priority"),
            steps: fields.get("steps").unwrap_or_default(),
            settings: fields.get("settings"),
            start_at: fields.get("start_at"),
        };
        (campaign, fields.parse("workspace", |name: String| read_workspace(&name)))
    })
    .await?;
    let workspace = within(&caller, workspace)?;
    let record = server.engine.add_campaign(workspace, campaign, &caller.name).await?;
    Ok((StatusCode::CREATED, Json(CampaignView::of(&record))))
}

/// Show a campaign
#[utoipa::path(get, path = "/v1/campaigns/{campaign}", operation_id = "get_campaign", tag = "campaigns", params(("campaign" = String, Path)),
    responses((status = 200, description = "The campaign", body = CampaignView), LookedUp))]
pub async fn get(
    State(server): State<Server>,
    caller: Caller,
    Segment(campaign): Segment,
    params: Params,
) -> Result<Json<CampaignView>, Problem> {
    params.finish()?;
    Ok(Json(CampaignView::of(&find(&server, &caller, &campaign).await?)))
}

/// A campaign that whoever asks may know of.
pub(crate) async fn find(server: &Server, caller: &Caller, id: &str) -> Result<CampaignRecord, Problem> {
    let no_campaign = || Problem::not_found(format!("there is no campaign {id:?}"));
    let record = server.engine.campaign(id).await?;
    if caller.reaches(&record.workspace) { Ok(record) } else { Err(no_campaign()) }
}

/// The workspace that is meant: the one that was said, if whoever asks reaches it, or their own.
pub(crate) fn within(caller: &Caller, said: Option<Name>) -> Result<Name, Problem> {
    match (said, &caller.workspace) {
        (Some(said), _) if caller.reaches(&said) => Ok(said),
        (Some(said), _) => Err(Problem::forbidden(format!("this key does not reach the workspace {said:?}"))),
        (None, Some(own)) => Ok(own.clone()),
        (None, None) => Ok(DEFAULT_WORKSPACE.into()),
    }
}

pub(crate) fn read_workspace(name: &str) -> Result<Name, String> {
    check_workspace(name).map(|()| name.into())
}
