//! What a person does to a campaign: launch, pause, resume, cancel.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redeliver_engine::Engine;
use redeliver_engine::campaign::{CampaignError, Scheduling};
use serde::Serialize;
use utoipa::ToSchema;

use super::{CampaignView, find};
use crate::Server;
use crate::auth::Caller;
use crate::input::{Params, Segment};
use crate::limits::within;
use crate::openapi::Acted;
use crate::problem::Problem;

/// How long whoever launches a campaign waits for its plan. What is not planned by then is planned without them.
const LAUNCH_WAIT: Duration = Duration::from_secs(5);

/// A campaign that was launched.
#[derive(Serialize, ToSchema)]
pub struct Launched {
    /// The campaign.
    #[serde(flatten)]
    pub campaign: CampaignView,
    /// Mails that were scheduled by this call.
    pub scheduled_now: u64,
    /// Mails that had been scheduled before.
    pub skipped: u64,
}

/// Launch a campaign: its mails are scheduled
///
/// Said twice, it schedules nothing twice. 200: every prospect is planned. 202: there are many, and the rest is being planned.
#[utoipa::path(post, path = "/v1/campaigns/{campaign}/launch", operation_id = "launch_campaign", tag = "campaigns", params(("campaign" = String, Path)),
    responses((status = 200, description = "It runs, and everything is scheduled", body = Launched),
        (status = 202, description = "It runs; the rest is being scheduled", body = Launched), Acted))]
pub async fn launch(
    State(server): State<Server>,
    caller: Caller,
    Segment(campaign): Segment,
    params: Params,
) -> Result<(StatusCode, Json<Launched>), Problem> {
    params.finish()?;
    find(&server, &caller, &campaign).await?;
    let told = begin(&server.engine, &campaign, &caller.name).await?;
    let view = CampaignView::of(&find(&server, &caller, &campaign).await?);
    let status = if told.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let Scheduling { scheduled, skipped, .. } = told.unwrap_or_default();
    Ok((status, Json(Launched { campaign: view, scheduled_now: scheduled, skipped })))
}

/// Launches a campaign; `None` if there are so many that the rest is planned without whoever waits.
pub(crate) async fn begin(
    engine: &Engine,
    campaign: &str,
    actor: &Arc<str>,
) -> Result<Option<Scheduling>, CampaignError> {
    let launching = engine.launch_campaign(campaign, actor);
    match within(engine.clock().as_ref(), LAUNCH_WAIT, launching).await {
        Some(told) => told.map(Some),
        None => {
            engine.wake_planner();
            Ok(None)
        }
    }
}

/// Stop a campaign until it is resumed
#[utoipa::path(post, path = "/v1/campaigns/{campaign}/pause", operation_id = "pause_campaign", tag = "campaigns", params(("campaign" = String, Path)),
    responses((status = 200, description = "Nothing of it goes out", body = CampaignView), Acted))]
pub async fn pause(
    State(server): State<Server>,
    caller: Caller,
    Segment(campaign): Segment,
    params: Params,
) -> Result<Json<CampaignView>, Problem> {
    act(&server, &caller, &campaign, params, Deed::Pause).await
}

/// Let a campaign go on
#[utoipa::path(post, path = "/v1/campaigns/{campaign}/resume", operation_id = "resume_campaign", tag = "campaigns", params(("campaign" = String, Path)),
    responses((status = 200, description = "It goes on", body = CampaignView), Acted))]
pub async fn resume(
    State(server): State<Server>,
    caller: Caller,
    Segment(campaign): Segment,
    params: Params,
) -> Result<Json<CampaignView>, Problem> {
    act(&server, &caller, &campaign, params, Deed::Resume).await
}

/// End a campaign: nothing more of it goes out, ever
#[utoipa::path(post, path = "/v1/campaigns/{campaign}/cancel", operation_id = "cancel_campaign", tag = "campaigns", params(("campaign" = String, Path)),
    responses((status = 200, description = "It is ended", body = CampaignView), Acted))]
pub async fn cancel(
    State(server): State<Server>,
    caller: Caller,
    Segment(campaign): Segment,
    params: Params,
) -> Result<Json<CampaignView>, Problem> {
    act(&server, &caller, &campaign, params, Deed::Cancel).await
}

/// What is done to a campaign that was launched.
#[derive(Copy, Clone)]
enum Deed {
    Pause,
    Resume,
    Cancel,
}

async fn act(
    server: &Server,
    caller: &Caller,
    campaign: &str,
    params: Params,
    deed: Deed,
) -> Result<Json<CampaignView>, Problem> {
    params.finish()?;
    find(server, caller, campaign).await?;
    let (engine, actor) = (&server.engine, &caller.name);
    let after = match deed {
        Deed::Pause => engine.pause_campaign(campaign, actor).await?,
        Deed::Resume => engine.resume_campaign(campaign, actor).await?,
        Deed::Cancel => engine.cancel_campaign(campaign, actor).await?,
    };
    Ok(Json(CampaignView::of(&after)))
}
