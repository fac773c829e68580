//! `/healthz`, `/readyz`, `/metrics` and `/openapi.json`: for machines that look after us.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi::{Open, OpenWithStore};
use crate::problem::Problem;
use crate::{Durability, Server};

/// That somebody is there.
#[derive(Serialize, ToSchema)]
pub struct Alive {
    /// `alive`.
    pub status: &'static str,
}

/// That messages can be accepted, and what that is worth.
#[derive(Serialize, ToSchema)]
pub struct Ready {
    /// `ready`.
    pub status: &'static str,
    /// What a commit survives: `full` a power cut, `relaxed` a crash, `memory` nothing.
    #[schema(pattern = "^(full|relaxed|memory)$")]
    pub durability: &'static str,
    /// Whether what is due is carried out by this instance now: not yet at its start, and no longer when it stops.
    pub carrying: bool,
    /// What is less than promised, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<&'static str>,
}

/// Whether the process lives
#[utoipa::path(get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "It does", body = Alive), Open))]
pub async fn healthz() -> Json<Alive> {
    Json(Alive { status: "alive" })
}

/// Whether messages can be accepted: the store confirms heartbeats, and no write failed since
#[utoipa::path(get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, description = "They can", body = Ready), OpenWithStore))]
pub async fn readyz(State(server): State<Server>) -> Result<Json<Ready>, Problem> {
    server.engine.readiness().await?;
    let warning = match server.durability {
        Durability::Full => None,
        Durability::Relaxed => Some("a power cut may take messages that were accepted"),
        Durability::Memory => Some("everything that was accepted is gone when this process ends"),
    };
    let (durability, carrying) = (server.durability.name(), server.engine.is_carrying());
    Ok(Json(Ready { status: "ready", durability, carrying, warning }))
}

/// What is counted and measured, for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "health", security(()),
    responses((status = 200, description = "Metrics", body = String, content_type = "text/plain"), OpenWithStore))]
pub async fn metrics(State(server): State<Server>) -> Result<impl IntoResponse, Problem> {
    let text = server.metrics.render(&server.engine).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
}

/// This description
#[utoipa::path(get, path = "/openapi.json", tag = "health", security((), ("key" = [])),
    responses((status = 200, description = "OpenAPI 3.1", body = Object), OpenWithStore))]
pub async fn openapi(State(server): State<Server>) -> impl IntoResponse {
    let text = server.description.get().cloned().unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text)
}
