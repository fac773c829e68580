//! `/v1/routes`: the ways that messages travel, and stopping them.

use axum::Json;
use axum::extract::State;
use redeliver_core::gate::{Closed, GateKey, GateRecord, Scope};
use redeliver_core::time::show_span;
use redeliver_core::{Lane, Route};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Server;
use crate::auth::Caller;
use crate::input::{Params, Segment};
use crate::openapi::{Looked, LookedUp};
use crate::problem::Problem;

/// All routes.
#[derive(Serialize, ToSchema)]
pub struct Routes {
    /// By name.
    pub items: Vec<RouteView>,
}

/// One route.
#[derive(Serialize, ToSchema)]
pub struct RouteView {
    /// Its name.
    pub name: String,
    /// Whether a person has stopped it.
    pub paused: bool,
    /// Since when.
    #[schema(format = DateTime)]
    pub paused_since: Option<String>,
    /// Who has, in words.
    pub paused_reason: Option<String>,
    /// The route that takes word of this one's dead.
    pub dead_letter: Option<String>,
    /// How long delivered messages stay.
    pub retention: String,
    /// How each priority travels.
    pub lanes: Vec<LaneView>,
}

/// One priority of a route.
#[derive(Serialize, ToSchema)]
pub struct LaneView {
    /// Which.
    pub priority: &'static str,
    /// What carries it.
    pub transport: String,
    /// Where to, where the route says so.
    pub target: Option<String>,
    /// Tries in all.
    pub max_attempts: u32,
}

impl RouteView {
    fn of(route: &Route, gates: &[GateRecord]) -> Self {
        let key = GateKey::pause(Scope::Route, &route.name);
        let paused = gates.iter().find(|gate| gate.key == key && gate.closed == Closed::Paused);
        let lane = |lane: Lane| {
            let travel = route.travel(lane);
            LaneView {
                priority: lane.name(),
                transport: travel.transport.to_string(),
                target: travel.target.as_ref().map(ToString::to_string),
                max_attempts: travel.policy.max_attempts,
            }
        };
        Self {
            name: route.name.to_string(),
            paused: paused.is_some(),
            paused_since: paused.map(|gate| gate.since.to_string()),
            paused_reason: paused.map(|gate| gate.reason.to_string()),
            dead_letter: route.dead_letter.as_ref().map(ToString::to_string),
            retention: show_span(route.retention),
            lanes: Lane::ALL.map(lane).into(),
        }
    }
}

/// List the routes
#[utoipa::path(get, path = "/v1/routes", operation_id = "list_routes", tag = "routes",
    responses((status = 200, description = "The routes", body = Routes), Looked))]
pub async fn list(State(server): State<Server>, params: Params) -> Result<Json<Routes>, Problem> {
    params.finish()?;
    let gates = server.engine.store().gates().await?;
    let items = server.engine.routes().map(|route| RouteView::of(route, &gates)).collect();
    Ok(Json(Routes { items }))
}

/// Stop everything of a route until it is resumed
#[utoipa::path(post, path = "/v1/routes/{name}/pause", operation_id = "pause_route", tag = "routes", params(("name" = String, Path)),
    responses((status = 200, description = "It is stopped", body = RouteView), LookedUp))]
pub async fn pause(
    State(server): State<Server>,
    caller: Caller,
    Segment(name): Segment,
    params: Params,
) -> Result<Json<RouteView>, Problem> {
    let route = known(&server, &caller, &name, params)?;
    server.engine.pause(Scope::Route, &name, &caller.name).await?;
    Ok(Json(RouteView::of(route, &server.engine.store().gates().await?)))
}

/// Let everything of a route go again
#[utoipa::path(post, path = "/v1/routes/{name}/resume", operation_id = "resume_route", tag = "routes", params(("name" = String, Path)),
    responses((status = 200, description = "It goes on", body = RouteView), LookedUp))]
pub async fn resume(
    State(server): State<Server>,
    caller: Caller,
    Segment(name): Segment,
    params: Params,
) -> Result<Json<RouteView>, Problem> {
    let route = known(&server, &caller, &name, params)?;
    server.engine.resume(Scope::Route, &name, &caller.name).await?;
    Ok(Json(RouteView::of(route, &server.engine.store().gates().await?)))
}

fn known<'a>(server: &'a Server, caller: &Caller, name: &str, params: Params) -> Result<&'a Route, Problem> {
    params.finish()?;
    caller.reaches_all()?;
    server.engine.route(name).ok_or_else(|| Problem::not_found(format!("there is no route {name:?}")))
}
