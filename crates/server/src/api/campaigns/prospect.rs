//! `/v1/campaigns/{campaign}/prospects/{prospect}`: one of those whom a campaign writes to; what a person does to them: pause,
//! resume, stop.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use redeliver_engine::campaigns::ProspectRecord;
use serde::Serialize;
use utoipa::ToSchema;

use super::find;
use crate::Server;
use crate::api::suppressions::check_reason;
use crate::auth::Caller;
use crate::input::{Pair, Params, body};
use crate::openapi::{Acted, LookedUp, Reported, StopBody};
use crate::problem::Problem;

/// A prospect.
#[derive(Serialize, ToSchema)]
pub struct ProspectView {
    /// Their id.
    pub id: String,
    /// Their address.
    pub email: String,
    /// Their own zone, if they have one.
    pub zone: Option<String>,
    /// Where they stand.
    #[schema(pattern = "^(active|paused|stopped)$")]
    pub state: &'static str,
    /// Since when nothing goes out to them until they are resumed.
    #[schema(format = DateTime)]
    pub paused_at: Option<String>,
    /// Why nothing more goes out to them, ever.
    pub stopped_for: Option<String>,
}

/// A prospect that was stopped.
#[derive(Serialize, ToSchema)]
pub struct Stopped {
    /// The prospect's id.
    pub id: String,
    /// Why nothing more goes out to them.
    pub stopped_for: String,
}

impl ProspectView {
    /// A prospect as callers see them.
    pub fn of(record: &ProspectRecord) -> Self {
        Self {
            id: record.prospect.id.clone(),
            email: record.prospect.email.clone(),
            zone: record.prospect.zone.clone(),
            state: match (&record.stopped_for, record.paused_at) {
                (Some(_), _) => "stopped",
                (None, Some(_)) => "paused",
                (None, None) => "active",
            },
            paused_at: record.paused_at.map(|at| at.to_string()),
            stopped_for: record.stopped_for.as_ref().map(ToString::to_string),
        }
    }
}

/// Show one prospect
#[utoipa::path(get, path = "/v1/campaigns/{campaign}/prospects/{prospect}", operation_id = "get_prospect", tag = "campaigns",
    params(("campaign" = String, Path), ("prospect" = String, Path)),
    responses((status = 200, description = "The prospect", body = ProspectView), LookedUp))]
pub async fn get(
    State(server): State<Server>,
    caller: Caller,
    Pair(campaign, prospect): Pair,
    params: Params,
) -> Result<Json<ProspectView>, Problem> {
    params.finish()?;
    find(&server, &caller, &campaign).await?;
    Ok(Json(ProspectView::of(&server.engine.prospect(&campaign, &prospect).await?)))
}

/// Pause one prospect: what is scheduled for them waits until they are resumed
#[utoipa::path(post, path = "/v1/campaigns/{campaign}/prospects/{prospect}/pause", operation_id = "pause_prospect", tag = "campaigns",
    params(("campaign" = String, Path), ("prospect" = String, Path)),
    responses((status = 200, description = "Nothing goes out to them", body = ProspectView), Acted))]
pub async fn pause(
    State(server): State<Server>,
    caller: Caller,
    Pair(campaign, prospect): Pair,
    params: Params,
) -> Result<Json<ProspectView>, Problem> {
    params.finish()?;
    find(&server, &caller, &campaign).await?;
    let after = server.engine.pause_prospect(&campaign, &prospect, &caller.name).await?;
    Ok(Json(ProspectView::of(&after)))
}

/// Let one prospect go on: what waited for them goes out in its window and its quota
#[utoipa::path(post, path = "/v1/campaigns/{campaign}/prospects/{prospect}/resume", operation_id = "resume_prospect", tag = "campaigns",
    params(("campaign" = String, Path), ("prospect" = String, Path)),
    responses((status = 200, description = "They are written to again", body = ProspectView), Acted))]
pub async fn resume(
    State(server): State<Server>,
    caller: Caller,
    Pair(campaign, prospect): Pair,
    params: Params,
) -> Result<Json<ProspectView>, Problem> {
    params.finish()?;
    find(&server, &caller, &campaign).await?;
    let after = server.engine.resume_prospect(&campaign, &prospect, &caller.name).await?;
    Ok(Json(ProspectView::of(&after)))
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
