//! `/api/admin/…`: the e-mail outbox under the paths and names of those who had one of their own before.
//!
//! It is about the routes that carry e-mails, and no others. They count the tries of their worker only: those made before a
//! message came here are left out.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redeliver_core::email::Email;
use redeliver_core::operate::Action;
use redeliver_core::{Content, Message, MessageId, State as Stands};
use redeliver_engine::store::Filter;
use serde::Serialize;
use utoipa::ToSchema;

use super::messages::find;
use super::stats::Standing;
use crate::Server;
use crate::auth::Caller;
use crate::input::path::no_message;
use crate::input::{Id, Params};
use crate::limits::PAGE_LEN_MAX;
use crate::openapi::{Acted, Looked};
use crate::problem::Problem;

/// An e-mail that is under way or was given up.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutboxMail {
    /// Which message.
    pub id: String,
    /// Its first recipient.
    pub to_address: Option<String>,
    /// What it is about.
    pub subject: Option<String>,
    /// `pending` or `failed`.
    #[schema(pattern = "^(pending|failed)$")]
    pub status: &'static str,
    /// Tries of the worker so far.
    pub attempts: u32,
    /// Tries of the worker in all.
    pub max_attempts: u32,
    /// When it is tried next.
    #[schema(format = DateTime)]
    pub next_retry_at: Option<String>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When it was accepted.
    #[schema(format = DateTime)]
    pub created_at: Option<String>,
}

/// How the outbox is doing.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dashboard {
    /// E-mails under way.
    pub pending_email_count: u64,
    /// E-mails that were given up.
    pub failed_email_count: u64,
    /// E-mails whose time has come.
    pub due_email_count: u64,
    /// E-mails that were delivered, while they are kept.
    pub sent_email_count: u64,
}

impl OutboxMail {
    fn of(server: &Server, message: &Message, content: Option<&Content>) -> Self {
        let email = content.and_then(|content| Email::of_content(content)?.ok());
        let is_dead = matches!(message.state, Stands::Dead { .. });
        let max_attempts = match server.engine.route(&message.route) {
            Some(route) => route.max_attempts(message),
            None => message.max_attempts.unwrap_or_default(),
        };
        Self {
            id: message.id.to_string(),
            to_address: email.as_ref().and_then(|email| Some(email.recipients().next()?.address.clone())),
            subject: email.map(|email| email.subject),
            status: if is_dead { "failed" } else { "pending" },
            attempts: message.attempts.saturating_sub(message.attempts_before),
            max_attempts: max_attempts.saturating_sub(message.attempts_before),
            next_retry_at: (!is_dead).then(|| message.due_at.to_string()),
            last_error: message.last_error.as_ref().map(|error| match &error.code {
                Some(code) if !error.text.starts_with(&**code) => format!("{code} {}", error.text),
                _ => error.text.to_string(),
            }),
            created_at: message.created_at.known().map(|at| at.to_string()),
        }
    }
}

/// List the e-mails that are pending or failed, newest first
#[utoipa::path(get, path = "/api/admin/outbox", operation_id = "list_outbox", tag = "outbox",
    responses((status = 200, description = "At most the newest 500", body = Vec<OutboxMail>), Looked))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    params: Params,
) -> Result<Json<Vec<OutboxMail>>, Problem> {
    params.finish()?;
    let (engine, store) = (&server.engine, server.engine.store());
    let mut messages = Vec::new();
    for route in engine.routes().filter(|route| engine.carries_emails(&route.name)) {
        for state in ["waiting", "claimed", "handed_off", "dead"] {
            let filter = Filter {
                workspace: caller.workspace.clone(),
                route: Some(route.name.clone()),
                state: Some(state),
                limit: PAGE_LEN_MAX,
                ..Filter::default()
            };
            messages.extend(store.list(filter).await?);
        }
    }
    messages.sort_by(|a, b| b.id.cmp(&a.id));
    // One that moved on between two questions was told twice.
    messages.dedup_by(|a, b| a.id == b.id);
    messages.truncate(PAGE_LEN_MAX);
    let mut mails = Vec::with_capacity(messages.len());
    for message in &messages {
        let content = store.content(message.id.clone()).await?;
        mails.push(OutboxMail::of(&server, message, content.as_ref()));
    }
    Ok(Json(mails))
}

/// Start a failed e-mail over
#[utoipa::path(post, path = "/api/admin/outbox/{id}/retry", operation_id = "retry_outbox", tag = "outbox", params(("id" = String, Path)),
    responses((status = 200, description = "It is pending", body = OutboxMail), Acted))]
pub async fn retry(
    State(server): State<Server>,
    caller: Caller,
    Id(id): Id,
    params: Params,
) -> Result<Json<OutboxMail>, Problem> {
    let after = act(&server, &caller, &id, params, Action::Retry).await?;
    let content = server.engine.store().content(id).await?;
    Ok(Json(OutboxMail::of(&server, &after, content.as_ref())))
}

/// Put a failed e-mail away
#[utoipa::path(delete, path = "/api/admin/outbox/{id}", operation_id = "dismiss_outbox", tag = "outbox", params(("id" = String, Path)),
    responses((status = 204, description = "It is put away"), Acted))]
pub async fn dismiss(
    State(server): State<Server>,
    caller: Caller,
    Id(id): Id,
    params: Params,
) -> Result<StatusCode, Problem> {
    act(&server, &caller, &id, params, Action::Dismiss).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Count the e-mails that are pending and failed
#[utoipa::path(get, path = "/api/admin/dashboard", tag = "outbox",
    responses((status = 200, description = "How many", body = Dashboard), Looked))]
pub async fn dashboard(
    State(server): State<Server>,
    caller: Caller,
    params: Params,
) -> Result<Json<Dashboard>, Problem> {
    params.finish()?;
    caller.reaches_all()?;
    let engine = &server.engine;
    let mut emails = Standing::default();
    for count in engine.store().counts(engine.clock().now()).await? {
        if engine.carries_emails(&count.route) {
            emails.add(&count);
        }
    }
    Ok(Json(Dashboard {
        pending_email_count: emails.waiting + emails.sending + emails.handed_off,
        failed_email_count: emails.dead,
        due_email_count: emails.due,
        sent_email_count: emails.delivered,
    }))
}

/// Does something to a message that has failed and was not put away.
async fn act(
    server: &Server,
    caller: &Caller,
    id: &MessageId,
    params: Params,
    action: Action,
) -> Result<Message, Problem> {
    params.finish()?;
    let message = find(server, caller, id).await?;
    if !server.engine.carries_emails(&message.route) {
        return Err(no_message(id));
    }
    if !matches!(message.state, Stands::Dead { dismissed_at: None, .. }) {
        return Err(Problem::conflict(format!("only a failed e-mail can be told to {}", action.name())));
    }
    Ok(server.engine.operate(id, action, &caller.name).await?)
}
