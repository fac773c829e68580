//! Logging in with a key, and out again. A session is as good as its key: it ends with it, or after twelve hours.

use std::time::Duration;

use askama::Template;
use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use redeliver_engine::access::SessionRecord;

use super::form::{self, Form};
use super::frame::Frame;
use super::guard::Visitor;
use super::page::page;
use super::refusal::Refusal;
use super::{Console, link};
use crate::auth::secret::{digest, session_token};
use crate::auth::{Caller, SESSION_COOKIE, session_cookie};
use crate::problem::Problem;

/// How long a session lasts.
const SESSION_AGE: Duration = Duration::from_secs(12 * 3_600);

#[derive(Template)]
#[template(path = "login.html")]
struct Page {
    frame: Frame,
    has_key: bool,
    is_wrong: bool,
}

/// Leads to where whoever comes belongs. Where to is never a caller's to say.
pub(super) async fn enter(State(console): State<Console>, headers: HeaderMap) -> Result<Redirect, Refusal> {
    let is_known = console.visitor(&headers).await?.is_some();
    Ok(Redirect::to(if is_known { link::OVERVIEW } else { link::LOGIN }))
}

/// `GET /login`
pub(super) async fn show(State(console): State<Console>, headers: HeaderMap) -> Result<Response, Refusal> {
    if console.visitor(&headers).await?.is_some() {
        return Ok(Redirect::to(link::OVERVIEW).into_response());
    }
    let has_key = console.server.has_key().await?;
    Ok(page(&Page { frame: Frame::bare(), has_key, is_wrong: false })?.into_response())
}

/// `POST /login`
pub(super) async fn log_in(State(console): State<Console>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    let form = Form::read(&console.server, &headers, body, form::BYTES_MAX).await?;
    let turn = console.server.throttle.turn().await?;
    let Some(caller) = console.server.by_key(form.text("key").trim()).await? else {
        tracing::warn!(event = "login.failed", "login with an unknown or revoked key");
        turn.failed(console.server.engine.clock().clone()).await;
        let again = page(&Page { frame: Frame::bare(), has_key: true, is_wrong: true })?;
        return Ok((StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], again).into_response());
    };
    let token = open_session(&console, caller, &headers).await?;
    let cookie = console.secure.set(&headers, SESSION_COOKIE, &token, SESSION_AGE);
    Ok((AppendHeaders([cookie]), Redirect::to(link::OVERVIEW)).into_response())
}

/// `POST /logout`
pub(super) async fn log_out(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    console.server.access.end_session(visitor.session, console.server.engine.clock().now()).await?;
    let cookie = console.secure.clear(&headers, SESSION_COOKIE);
    Ok((AppendHeaders([cookie]), Redirect::to(link::LOGIN)).into_response())
}

/// Opens a session for whoever has shown a key, in place of the one that they may have, and says its token.
async fn open_session(console: &Console, caller: Caller, headers: &HeaderMap) -> Result<String, Problem> {
    let access = &console.server.access;
    let now = console.server.engine.clock().now();
    // Also forgets those that are over, so that they don't pile up.
    access.end_session(digest(session_cookie(headers).unwrap_or_default()), now).await?;
    let token = session_token().map_err(|error| {
        tracing::error!(event = "login.impossible", error = %error, "cannot open a session");
        Problem::internal()
    })?;
    tracing::info!(event = "session.opened", name = %caller.name, role = caller.role.name(), "logged in");
    let session = SessionRecord {
        digest: digest(&token),
        key: caller.key,
        name: caller.name,
        workspace: caller.workspace,
        role: caller.role,
        created_at: now,
        expires_at: now.plus(SESSION_AGE),
    };
    access.add_session(session).await?;
    Ok(token)
}
