//! What people do to a message from a page: retry, cancel, dismiss, restore. Then they are led back to where they were.

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use redeliver_core::operate::Action;
use redeliver_core::{MessageId, State as Standing};

use super::flash::{self, Flash};
use super::form::Form;
use super::guard::Visitor;
use super::queue::Show;
use super::refusal::Refusal;
use super::{Console, link};
use crate::api::messages::find;
use crate::input::Id;
use crate::problem::Problem;

/// `POST /admin/messages/{id}/retry`
pub(super) async fn retry(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<Form>,
    id: Result<Id, Problem>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let Id(id) = id?;
    // The button is on dead ones only; others are on their way already.
    let message = find(&console.server, &visitor.caller, &id).await?;
    if !matches!(message.state, Standing::Dead { .. }) {
        let detail =
            format!("only dead messages can be retried, and this message is {}", message.state.name());
        return Err(Problem::conflict(detail).into());
    }
    act(&console, &visitor, &form, id, &headers, Action::Retry).await
}

/// `POST /admin/messages/{id}/dismiss`
pub(super) async fn dismiss(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<Form>,
    id: Result<Id, Problem>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    act(&console, &visitor, &form, id?.0, &headers, Action::Dismiss).await
}

/// `POST /admin/messages/{id}/cancel`
pub(super) async fn cancel(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<Form>,
    id: Result<Id, Problem>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    act(&console, &visitor, &form, id?.0, &headers, Action::Cancel).await
}

/// `POST /admin/messages/{id}/restore`
pub(super) async fn restore(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<Form>,
    id: Result<Id, Problem>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    act(&console, &visitor, &form, id?.0, &headers, Action::Restore).await
}

async fn act(
    console: &Console,
    visitor: &Visitor,
    form: &Form,
    id: MessageId,
    headers: &HeaderMap,
    action: Action,
) -> Result<Response, Refusal> {
    find(&console.server, &visitor.caller, &id).await?;
    console.server.engine.operate(&id, action, &visitor.caller.name).await?;
    let back = back(form.text("back"), &id);
    let value = Flash { action, id }.value();
    let cookie = console.secure.set(headers, flash::COOKIE, &value, flash::AGE);
    Ok((AppendHeaders([cookie]), Redirect::to(&back)).into_response())
}

/// Where to go afterwards: one of our own pages, by its word.
fn back(word: &str, id: &MessageId) -> String {
    match Show::from_word(word) {
        Some(show) => show.href(),
        None => link::message(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_away_from_the_console() {
        let id = MessageId::own(1);
        assert_eq!(back("failed", &id), "/admin/email-queue?show=failed");
        for word in ["", "message", "//evil.example", "https://evil.example", "/login"] {
            assert_eq!(back(word, &id), link::message(&id));
        }
    }
}
