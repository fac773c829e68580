//! `/v1/workspaces/{workspace}/settings`: when a workspace lets mails out; and what is used of its quotas.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use redeliver_core::Name;
use redeliver_core::calendar::Day;
use redeliver_core::campaign::Settings;
use serde::Serialize;
use utoipa::ToSchema;

use super::campaigns::{read_workspace, within};
use crate::Server;
use crate::auth::Caller;
use crate::input::{Params, Segment, body};
use crate::openapi::{Looked, LookedUp, Reported, SettingsBody};
use crate::problem::Problem;

/// What is used of a workspace's quotas on a day.
#[derive(Serialize, ToSchema)]
pub struct Quotas {
    /// Whose.
    pub workspace: String,
    /// Which day.
    #[schema(format = Date)]
    pub date: String,
    /// What is counted.
    pub items: Vec<QuotaView>,
}

/// What is counted for a workspace, a campaign or a sender.
#[derive(Serialize, ToSchema)]
pub struct QuotaView {
    /// Whose mails.
    #[schema(pattern = "^(workspace|campaign|sender)$")]
    pub whose: &'static str,
    /// The name of whoever that is.
    pub name: String,
    /// Mails that went out, or may have.
    pub used: u64,
    /// Days before it on which there was a mail: what a ramp-up goes by.
    pub sending_days_before: u32,
}

/// Show a workspace's settings
#[utoipa::path(get, path = "/v1/workspaces/{workspace}/settings", operation_id = "get_settings", tag = "campaigns", params(("workspace" = String, Path)),
    responses((status = 200, description = "The settings", body = SettingsBody), LookedUp))]
pub async fn get(
    State(server): State<Server>,
    caller: Caller,
    Segment(workspace): Segment,
    params: Params,
) -> Result<Json<Settings>, Problem> {
    params.finish()?;
    let workspace = known(&caller, &workspace)?;
    Ok(Json(server.engine.workspace_settings(&workspace).await?))
}

/// Give a workspace its settings, which its campaigns can only narrow
#[utoipa::path(put, path = "/v1/workspaces/{workspace}/settings", operation_id = "put_settings", tag = "campaigns", params(("workspace" = String, Path)),
    request_body = SettingsBody,
    responses((status = 200, description = "They count from now on", body = SettingsBody), Reported))]
pub async fn put(
    State(server): State<Server>,
    caller: Caller,
    Segment(workspace): Segment,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Settings>, Problem> {
    params.finish()?;
    let workspace = known(&caller, &workspace)?;
    let settings = body::object(&server, &headers, body, |fields| Settings {
        days: fields.get("days"),
        start: fields.get("start"),
        end: fields.get("end"),
        intervals: fields.get("intervals").unwrap_or_default(),
        zone: fields.get("zone"),
        holidays: fields.get("holidays").unwrap_or_default(),
        blackouts: fields.get("blackouts").unwrap_or_default(),
        daily_quota: fields.get("daily_quota"),
        sender_quota: fields.get("sender_quota"),
        quota_period: fields.get("quota_period"),
        ramp_up: fields.get("ramp_up"),
        urgent_share: fields.get("urgent_share"),
        spacing: fields.get("spacing"),
    })
    .await?;
    Ok(Json(server.engine.put_settings(&workspace, settings, &caller.name).await?.settings))
}

/// Count what is used of a workspace's quotas on a day
#[utoipa::path(get, path = "/v1/quotas", operation_id = "list_quotas", tag = "campaigns",
    params(("workspace" = Option<String>, Query, pattern = "^[A-Za-z0-9_.-]{1,64}$"),
        ("date" = Option<String>, Query, description = "A local day; today without one", pattern = "^[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])$")),
    responses((status = 200, description = "What is used", body = Quotas), Looked))]
pub async fn quotas(
    State(server): State<Server>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Quotas>, Problem> {
    let said = params.get("workspace", read_workspace);
    let date = params.get("date", |text| text.parse::<Day>().map_err(|error| error.to_string()));
    params.finish()?;
    let workspace = within(&caller, said)?;
    let (day, used) = server.engine.quotas_used(&workspace, date).await?;
    let items = used
        .into_iter()
        .map(|used| QuotaView {
            whose: used.whose.name(),
            name: used.name.to_string(),
            used: used.used,
            sending_days_before: used.sending_days_before,
        })
        .collect();
    Ok(Json(Quotas { workspace: workspace.to_string(), date: day.to_string(), items }))
}

/// A workspace that whoever asks may know of.
pub(crate) fn known(caller: &Caller, name: &str) -> Result<Name, Problem> {
    let workspace = read_workspace(name).ok().filter(|workspace| caller.reaches(workspace));
    workspace.ok_or_else(|| Problem::not_found(format!("there is no workspace {name:?}")))
}
