//! `/v1/destinations`: where messages go, as far as nothing gets through there, and letting them go again.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use redeliver_core::Timestamp;
use redeliver_core::gate::{GateRecord, Scope};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Server;
use crate::auth::Caller;
use crate::input::{Params, Segment};
use crate::openapi::{Looked, LookedUp};
use crate::problem::Problem;

/// The longest name of a destination.
const NAME_BYTES_MAX: usize = 1_024;

/// Destinations where something stands in the way.
#[derive(Serialize, ToSchema)]
pub struct Destinations {
    /// By name.
    pub items: Vec<DestinationView>,
}

/// One destination.
#[derive(Serialize, ToSchema)]
pub struct DestinationView {
    /// Its name, as holds, breakers and limits know it.
    pub destination: String,
    /// What stands before it; nothing, if its messages go.
    pub gates: Vec<ClosedGate>,
}

/// A gate that is closed.
#[derive(Serialize, ToSchema)]
pub struct ClosedGate {
    /// How it is closed.
    #[schema(pattern = "^(paused|held|throttled|breaker_open)$")]
    pub standing: &'static str,
    /// Since when.
    #[schema(format = DateTime)]
    pub since: String,
    /// Why, in words.
    pub reason: String,
    /// When it opens, or one message finds out whether it does; `null` if only a person opens it.
    #[schema(format = DateTime)]
    pub again_at: Option<String>,
}

impl ClosedGate {
    fn of(record: &GateRecord) -> Self {
        Self {
            standing: record.closed.name(),
            since: record.since.to_string(),
            reason: record.reason.to_string(),
            again_at: record.again_at().map(|at| at.to_string()),
        }
    }
}

/// The names of a scope that something stands before now, each with what that is.
pub(super) fn stopped(
    gates: &[GateRecord],
    scope: Scope,
    now: Timestamp,
) -> BTreeMap<String, Vec<ClosedGate>> {
    let mut found: BTreeMap<String, Vec<ClosedGate>> = BTreeMap::new();
    for record in gates.iter().filter(|record| record.is_shut(now)) {
        let (_, of, name) = record.key.parts();
        if of == scope.name() {
            found.entry(name.to_owned()).or_default().push(ClosedGate::of(record));
        }
    }
    found
}

/// List the destinations where something stands in the way
#[utoipa::path(get, path = "/v1/destinations", operation_id = "list_destinations", tag = "routes",
    responses((status = 200, description = "Those that are paused, held, throttled or whose breaker is open", body = Destinations), Looked))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    params: Params,
) -> Result<Json<Destinations>, Problem> {
    params.finish()?;
    caller.reaches_all()?;
    let view = |(destination, gates)| DestinationView { destination, gates };
    Ok(Json(Destinations { items: closed(&server).await?.into_iter().map(view).collect() }))
}

/// Stop everything to a destination until it is resumed
#[utoipa::path(post, path = "/v1/destinations/{destination}/pause", operation_id = "pause_destination", tag = "routes",
    params(("destination" = String, Path)),
    responses((status = 200, description = "It is stopped", body = DestinationView), LookedUp))]
pub async fn pause(
    State(server): State<Server>,
    caller: Caller,
    Segment(destination): Segment,
    params: Params,
) -> Result<Json<DestinationView>, Problem> {
    params.finish()?;
    caller.reaches_all()?;
    check(&destination)?;
    server.engine.pause(Scope::Destination, &destination, &caller.name).await?;
    view(&server, destination).await
}

/// Let everything to a destination go again: whatever is paused, held, throttled or behind a breaker
#[utoipa::path(post, path = "/v1/destinations/{destination}/resume", operation_id = "resume_destination", tag = "routes",
    params(("destination" = String, Path)),
    responses((status = 200, description = "It goes on", body = DestinationView), LookedUp))]
pub async fn resume(
    State(server): State<Server>,
    caller: Caller,
    Segment(destination): Segment,
    params: Params,
) -> Result<Json<DestinationView>, Problem> {
    params.finish()?;
    caller.reaches_all()?;
    if !closed(&server).await?.contains_key(&destination) {
        return Err(Problem::not_found(format!(
            "nothing stands before a destination {destination:?}: GET /v1/destinations lists those where something does"
        )));
    }
    server.engine.resume(Scope::Destination, &destination, &caller.name).await?;
    view(&server, destination).await
}

async fn closed(server: &Server) -> Result<BTreeMap<String, Vec<ClosedGate>>, Problem> {
    let gates = server.engine.store().gates().await?;
    Ok(stopped(&gates, Scope::Destination, server.engine.clock().now()))
}

async fn view(server: &Server, destination: String) -> Result<Json<DestinationView>, Problem> {
    let gates = closed(server).await?.remove(&destination).unwrap_or_default();
    Ok(Json(DestinationView { destination, gates }))
}

/// What can be no destination's name is nowhere.
fn check(destination: &str) -> Result<(), Problem> {
    let fits = !destination.is_empty() && destination.len() <= NAME_BYTES_MAX;
    match fits && !destination.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(Problem::not_found("no destination has such a name")),
    }
}
