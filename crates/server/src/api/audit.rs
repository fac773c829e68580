//! `GET /v1/audit`: what people did, newest first.

use axum::Json;
use axum::extract::State;
use redeliver_core::change::Audit;
use serde::Serialize;
use utoipa::ToSchema;

use super::messages::list::page_len;
use crate::Server;
use crate::auth::Caller;
use crate::input::Params;
use crate::limits::PAGE_LEN;
use crate::openapi::Looked;
use crate::problem::Problem;

/// What people did.
#[derive(Serialize, ToSchema)]
pub struct Deeds {
    /// Newest first.
    pub items: Vec<DeedView>,
}

/// One thing that somebody did.
#[derive(Serialize, ToSchema)]
pub struct DeedView {
    /// Who: the name of a key.
    pub actor: String,
    /// What, in a word.
    pub action: &'static str,
    /// To what: a message, a route, a key.
    pub subject: String,
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// What else is to be known, such as the fields that were corrected.
    pub detail: Option<String>,
}

impl DeedView {
    /// A deed as callers see it.
    fn of(deed: &Audit) -> Self {
        Self {
            actor: deed.actor.to_string(),
            action: deed.action,
            subject: deed.subject.to_string(),
            at: deed.at.to_string(),
            detail: deed.detail.as_ref().map(ToString::to_string),
        }
    }
}

/// List what people did, newest first
#[utoipa::path(get, path = "/v1/audit", operation_id = "list_audit", tag = "audit",
    params(("limit" = Option<u32>, Query, minimum = 1, maximum = 500)),
    responses((status = 200, description = "The newest", body = Deeds), Looked))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Deeds>, Problem> {
    let limit = params.get("limit", page_len).unwrap_or(PAGE_LEN);
    params.finish()?;
    caller.reaches_all()?;
    let deeds = server.engine.store().audit(limit).await?;
    Ok(Json(Deeds { items: deeds.iter().map(DeedView::of).collect() }))
}
