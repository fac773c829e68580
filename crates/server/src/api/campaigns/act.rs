//! What a person does to a campaign: launch, pause, resume, cancel; and to one prospect: stop.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use redeliver_engine::Engine;
use redeliver_engine::campaign::{CampaignError, Scheduling};
use serde::Serialize;
use utoipa::ToSchema;

use super::{CampaignView, find};
use crate::Server;
use crate::api::suppressions::check_reason;
use crate::auth::Caller;
use crate::input::{Pair, Params, Segment, body};
use crate::limits::within;
use crate::openapi::{Acted, Reported, StopBody};
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

/// A prospect that was stopped.
#[derive(Serialize, ToSchema)]
pub struct Stopped {
    /// The prospect's id.
    pub id: String,
    /// Why nothing more goes out to them.
    pub stopped_for: String,
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

/// Stop one prospect: nothing more goes out to them, and what is scheduled is cancelled
#[utoipa::path(post, path = "/v1/campaigns/{campaign}/prospects/{prospect}/stop", operation_id = "stop_prospect", tag = "campaigns",
    params(("campaign" = String, Path), ("prospect" = String, Path)), request_body = StopBody,
    responses((status = 200, description = "They are stopped", body = Stopped), Reported))]
pub async fn stop(
    State(server): State<Server>,
    caller: Caller,
    Pair(campaign, prospect): Pair,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Stopped>, Problem> {
    params.finish()?;
    let reason = body::object(&server, &headers, body, |fields| {
        if fields.raw("reason").is_none() {
            fields.wrong("reason", "is missing: replied, unsubscribed, bounced or another word");
        }
        fields.parse("reason", |reason: String| check_reason(&reason).map(|()| reason))
    })
    .await?
    .unwrap_or_default();
    find(&server, &caller, &campaign).await?;
    match server.engine.stop_prospect(&campaign, &prospect, &reason, &caller.name).await? {
        Some(stopped_for) => Ok(Json(Stopped { id: prospect, stopped_for: stopped_for.to_string() })),
        None => Err(Problem::not_found(format!("the campaign has no prospect {prospect:?}"))),
    }
}
