//! `GET /v1/messages/{id}`, its history, and why it is where it is.

use axum::Json;
use axum::extract::State;
use redeliver_core::MessageId;
use redeliver_core::attempt::{AttemptId, AttemptRecord};
use redeliver_engine::access::Role;
use serde::Serialize;
use utoipa::ToSchema;

use super::content::{ContentView, Shown};
use super::find;
use crate::Server;
use crate::api::view::{ErrorView, MessageView, RecipientView};
use crate::auth::Caller;
use crate::input::path::no_message;
use crate::input::{Id, Params};
use crate::openapi::LookedUp;
use crate::problem::Problem;

/// A message, and what it carries.
#[derive(Serialize, ToSchema)]
pub struct MessageDetail {
    /// How it stands.
    #[serde(flatten)]
    pub message: MessageView,
    /// What it carries.
    pub content: Option<ContentView>,
    /// What became of its recipients, where it has several and some have a verdict.
    pub recipients: Vec<RecipientView>,
}

/// Look at a message
///
/// `content=full` shows all that it carries, to operators.
#[utoipa::path(get, path = "/v1/messages/{id}", operation_id = "get_message", tag = "messages",
    params(("id" = String, Path),
        ("content" = Option<String>, Query, pattern = "^(summary|full)$")),
    responses((status = 200, description = "The message", body = MessageDetail), LookedUp))]
pub async fn get(
    State(server): State<Server>,
    caller: Caller,
    Id(id): Id,
    mut params: Params,
) -> Result<Json<MessageDetail>, Problem> {
    let shown = params.get("content", |word| match word {
        "summary" => Ok(Shown::Summary),
        "full" => Ok(Shown::Full),
        other => Err(format!("is \"summary\" or \"full\", not {other:?}")),
    });
    params.finish()?;
    let message = find(&server, &caller, &id).await?;
    let shown = shown.unwrap_or(Shown::Summary);
    if shown == Shown::Full && caller.role < Role::Operator {
        return Err(Problem::forbidden("it takes the role operator to read all that a message carries"));
    }
    let content = server.engine.store().content(id).await?;
    Ok(Json(MessageDetail {
        message: MessageView::of(&message, &server.engine),
        content: content.map(|content| ContentView::of(&content, shown)),
        recipients: RecipientView::all_of(&message),
    }))
}

/// A message's history.
#[derive(Serialize, ToSchema)]
pub struct History {
    /// Tries that did not simply succeed, oldest first.
    pub items: Vec<AttemptView>,
}

/// One try.
#[derive(Serialize, ToSchema)]
pub struct AttemptView {
    /// Its name.
    pub attempt_id: String,
    /// How often the message had been started over.
    pub generation: u32,
    /// Its number.
    pub attempt: u32,
    /// What it came to.
    #[schema(pattern = "^(failed|refused|partial|lost|late)$")]
    pub outcome: &'static str,
    /// When that was known.
    #[schema(format = DateTime)]
    pub at: String,
    /// When the message was due for it, if that is known.
    #[schema(format = DateTime)]
    pub due_at: Option<String>,
    /// When it was claimed for it, if that is known.
    #[schema(format = DateTime)]
    pub claimed_at: Option<String>,
    /// When it was sent; null if nothing was, or nobody knows.
    #[schema(format = DateTime)]
    pub sent_at: Option<String>,
    /// Which instance tried.
    pub instance: Option<String>,
    /// What went wrong.
    pub error: Option<ErrorView>,
}

/// Look at a message's tries that did not simply succeed, oldest first
#[utoipa::path(get, path = "/v1/messages/{id}/attempts", operation_id = "list_attempts", tag = "messages",
    params(("id" = String, Path)),
    responses((status = 200, description = "Its history", body = History), LookedUp))]
pub async fn attempts(
    State(server): State<Server>,
    caller: Caller,
    Id(id): Id,
    params: Params,
) -> Result<Json<History>, Problem> {
    params.finish()?;
    find(&server, &caller, &id).await?;
    let records = server.engine.store().attempts(id.clone()).await?;
    Ok(Json(History { items: records.into_iter().map(|record| attempt(&id, record)).collect() }))
}

fn attempt(id: &MessageId, record: AttemptRecord) -> AttemptView {
    let AttemptRecord { generation, attempt, .. } = record;
    AttemptView {
        attempt_id: AttemptId { message: id.clone(), generation, attempt }.to_string(),
        generation,
        attempt,
        outcome: record.verdict.name(),
        at: record.at.to_string(),
        due_at: record.due_at.map(|at| at.to_string()),
        claimed_at: record.claimed_at.map(|at| at.to_string()),
        sent_at: record.sent_at.map(|at| at.to_string()),
        instance: record.instance.map(|instance| instance.to_string()),
        error: record.failure.as_ref().map(ErrorView::of),
    }
}

/// Why a message is where it is.
#[derive(Serialize, ToSchema)]
pub struct ExplanationView {
    /// The whole of it in a sentence or two.
    pub sentence: String,
    /// The earliest time at which it can go out, if that is known.
    #[schema(format = DateTime)]
    pub earliest_at: Option<String>,
    /// What stands before its next try, in order.
    pub gates: Vec<GateView>,
}

/// One gate, as it concerns one message.
#[derive(Serialize, ToSchema)]
pub struct GateView {
    /// Which gate.
    pub gate: String,
    /// Whether it lets the message pass now.
    pub open: bool,
    /// Since when it is closed.
    #[schema(format = DateTime)]
    pub since: Option<String>,
    /// Until when it is closed, if that is known.
    #[schema(format = DateTime)]
    pub until: Option<String>,
    /// Why it is closed.
    pub reason: Option<String>,
}

/// Have it explained why a message is where it is
#[utoipa::path(get, path = "/v1/messages/{id}/explain", operation_id = "explain_message", tag = "messages",
    params(("id" = String, Path)),
    responses((status = 200, description = "Why", body = ExplanationView), LookedUp))]
pub async fn explain(
    State(server): State<Server>,
    caller: Caller,
    Id(id): Id,
    params: Params,
) -> Result<Json<ExplanationView>, Problem> {
    params.finish()?;
    find(&server, &caller, &id).await?;
    let why = server.engine.explain(&id).await?.ok_or_else(|| no_message(&id))?;
    let gates = why.gates.into_iter().map(|view| GateView {
        gate: view.gate.to_string(),
        open: view.open,
        since: view.since.map(|at| at.to_string()),
        until: view.until.map(|at| at.to_string()),
        reason: view.reason.map(|reason| reason.to_string()),
    });
    Ok(Json(ExplanationView {
        sentence: why.sentence,
        earliest_at: why.earliest_at.map(|at| at.to_string()),
        gates: gates.collect(),
    }))
}
