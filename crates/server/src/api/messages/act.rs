//! What a person does to one message: retry, cancel, dismiss, restore.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use redeliver_core::operate::Action;
use redeliver_core::{MessageId, State as Standing};

use super::find;
use crate::Server;
use crate::api::view::MessageView;
use crate::auth::Caller;
use crate::input::{Id, Params};
use crate::openapi::Acted;
use crate::problem::Problem;

type Answer = Result<(StatusCode, Json<MessageView>), Problem>;

/// Start a message over, with a fresh budget, due now
#[utoipa::path(post, path = "/v1/messages/{id}/retry", operation_id = "retry_message", tag = "messages", params(("id" = String, Path)),
    responses((status = 200, description = "It is due", body = MessageView), Acted))]
pub async fn retry(State(server): State<Server>, caller: Caller, Id(id): Id, params: Params) -> Answer {
    act(&server, &caller, &id, params, Action::Retry).await
}

/// Stop a message before it goes out
///
/// 200: it will not go out. 202: it was claimed already and may.
#[utoipa::path(post, path = "/v1/messages/{id}/cancel", operation_id = "cancel_message", tag = "messages", params(("id" = String, Path)),
    responses((status = 200, description = "It will not go out", body = MessageView),
        (status = 202, description = "It was claimed already and may go out", body = MessageView), Acted))]
pub async fn cancel(State(server): State<Server>, caller: Caller, Id(id): Id, params: Params) -> Answer {
    act(&server, &caller, &id, params, Action::Cancel).await
}

/// Put a dead message away, out of counts and lists
#[utoipa::path(post, path = "/v1/messages/{id}/dismiss", operation_id = "dismiss_message", tag = "messages", params(("id" = String, Path)),
    responses((status = 200, description = "It is put away", body = MessageView), Acted))]
pub async fn dismiss(State(server): State<Server>, caller: Caller, Id(id): Id, params: Params) -> Answer {
    act(&server, &caller, &id, params, Action::Dismiss).await
}

/// Bring a dismissed message back
#[utoipa::path(post, path = "/v1/messages/{id}/restore", operation_id = "restore_message", tag = "messages", params(("id" = String, Path)),
    responses((status = 200, description = "It is back", body = MessageView), Acted))]
pub async fn restore(State(server): State<Server>, caller: Caller, Id(id): Id, params: Params) -> Answer {
    act(&server, &caller, &id, params, Action::Restore).await
}

async fn act(server: &Server, caller: &Caller, id: &MessageId, params: Params, action: Action) -> Answer {
    params.finish()?;
    find(server, caller, id).await?;
    let after = server.engine.operate(id, action, &caller.name).await?;
    let may_go_out = action == Action::Cancel && matches!(after.state, Standing::Claimed(_));
    let status = if may_go_out { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(MessageView::of(&after, &server.engine))))
}
