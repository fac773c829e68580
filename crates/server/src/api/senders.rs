//! `/v1/senders/{sender}`: stopping whoever mails come from, and letting them go again, also after a refused login.

use axum::Json;
use axum::extract::State;
use redeliver_core::gate::Scope;
use serde::Serialize;
use utoipa::ToSchema;

use super::destinations::{ClosedGate, stopped};
use crate::Server;
use crate::auth::Caller;
use crate::input::{Params, Segment};
use crate::openapi::{Looked, LookedUp};
use crate::problem::Problem;

/// A sender.
#[derive(Serialize, ToSchema)]
pub struct SenderView {
    /// Their address.
    pub sender: String,
    /// Whether nothing of theirs goes out.
    pub paused: bool,
}

/// Senders of whom nothing goes out.
#[derive(Serialize, ToSchema)]
pub struct StoppedSenders {
    /// By address.
    pub items: Vec<StoppedSender>,
}

/// One of them.
#[derive(Serialize, ToSchema)]
pub struct StoppedSender {
    /// Their address.
    pub sender: String,
    /// What stands before their mails.
    pub gates: Vec<ClosedGate>,
}

/// List the senders of whom nothing goes out: paused, or held after a login that was refused
#[utoipa::path(get, path = "/v1/senders", operation_id = "list_senders", tag = "campaigns",
    responses((status = 200, description = "Those that are paused or held", body = StoppedSenders), Looked))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    params: Params,
) -> Result<Json<StoppedSenders>, Problem> {
    params.finish()?;
    caller.reaches_all()?;
    let gates = server.engine.store().gates().await?;
    let found = stopped(&gates, Scope::Sender, server.engine.clock().now());
    let view = |(sender, gates)| StoppedSender { sender, gates };
    Ok(Json(StoppedSenders { items: found.into_iter().map(view).collect() }))
}

/// Stop everything of a sender until it is resumed
#[utoipa::path(post, path = "/v1/senders/{sender}/pause", operation_id = "pause_sender", tag = "campaigns", params(("sender" = String, Path)),
    responses((status = 200, description = "It is stopped", body = SenderView), LookedUp))]
pub async fn pause(
    State(server): State<Server>,
    caller: Caller,
    Segment(sender): Segment,
    params: Params,
) -> Result<Json<SenderView>, Problem> {
    params.finish()?;
    check(&caller, &sender)?;
    server.engine.pause(Scope::Sender, &sender, &caller.name).await?;
    Ok(Json(SenderView { sender, paused: true }))
}

/// Let everything of a sender go again, also after a login that was refused
#[utoipa::path(post, path = "/v1/senders/{sender}/resume", operation_id = "resume_sender", tag = "campaigns", params(("sender" = String, Path)),
    responses((status = 200, description = "It goes on", body = SenderView), LookedUp))]
pub async fn resume(
    State(server): State<Server>,
    caller: Caller,
    Segment(sender): Segment,
    params: Params,
) -> Result<Json<SenderView>, Problem> {
    params.finish()?;
    check(&caller, &sender)?;
    server.engine.resume(Scope::Sender, &sender, &caller.name).await?;
    Ok(Json(SenderView { sender, paused: false }))
}

fn check(caller: &Caller, sender: &str) -> Result<(), Problem> {
    caller.reaches_all()?;
    let is_address = redeliver_core::email::check_address(sender).is_ok();
    if is_address { Ok(()) } else { Err(Problem::not_found(format!("there is no sender {sender:?}"))) }
}
