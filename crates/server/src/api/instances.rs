//! `GET /v1/instances`: which instances live.

use axum::Json;
use axum::extract::State;
use redeliver_core::InstanceId;
use redeliver_engine::store::Living;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Server;
use crate::auth::Caller;
use crate::input::Params;
use crate::openapi::Looked;
use crate::problem::Problem;

/// The instances that live.
#[derive(Serialize, ToSchema)]
pub struct Instances {
    /// In the order in which they started.
    pub items: Vec<InstanceView>,
}

/// One instance.
#[derive(Serialize, ToSchema)]
pub struct InstanceView {
    /// Which one: another at each start.
    pub id: String,
    /// Where it runs.
    pub name: Option<String>,
    /// Which version it is.
    pub version: Option<String>,
    /// Since when.
    #[schema(format = DateTime)]
    pub started_at: Option<String>,
    /// When it was last heard of.
    #[schema(format = DateTime)]
    pub beat_at: Option<String>,
    /// Messages that it is sending or has claimed to send, 10,000 at most.
    pub leases: u64,
    /// Whether it is the one that answers.
    pub is_this: bool,
}

impl InstanceView {
    fn of(living: Living, this: InstanceId) -> Self {
        let Living { id, about, beat_at, leases } = living;
        Self {
            id: id.to_string(),
            name: about.as_ref().map(|about| about.name.to_string()),
            version: about.as_ref().map(|about| about.version.to_string()),
            started_at: about.map(|about| about.started_at.to_string()),
            beat_at: beat_at.map(|at| at.to_string()),
            leases,
            is_this: id == this,
        }
    }
}

/// List the instances that live
#[utoipa::path(get, path = "/v1/instances", operation_id = "list_instances", tag = "stats",
    responses((status = 200, description = "Those that were heard of lately", body = Instances), Looked))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    params: Params,
) -> Result<Json<Instances>, Problem> {
    params.finish()?;
    caller.reaches_all()?;
    let engine = &server.engine;
    let living = engine.store().living(engine.clock().now()).await?;
    Ok(Json(Instances {
        items: living.into_iter().map(|one| InstanceView::of(one, engine.instance())).collect(),
    }))
}
