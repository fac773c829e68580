//! Lets people in who have logged in and may, and lets nothing be changed but by a form of theirs.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use redeliver_engine::access::{Digest, Role};

use super::flash::{self, Flash};
use super::form::{self, Form};
use super::refusal::Refusal;
use super::{Console, link};
use crate::auth::secret::{csrf_token, digest, is_same};
use crate::auth::{Caller, session_cookie};
use crate::problem::Problem;

/// The person before a page.
#[derive(Clone)]
pub(super) struct Visitor {
    /// Who they are, and what they may do.
    pub(super) caller: Caller,
    /// What each of their forms must carry.
    pub(super) csrf: String,
    /// Their session.
    pub(super) session: Digest,
    /// What they did on the page before.
    pub(super) flash: Option<Flash>,
}

impl Visitor {
    /// Whether they may do more than look.
    pub(super) fn may_act(&self) -> bool {
        self.caller.role >= Role::Operator
    }
}

/// What a page takes.
#[derive(Clone)]
pub(super) struct Door {
    pub(super) console: Console,
    pub(super) least: Role,
}

impl Console {
    /// Whoever these headers are from, if they have logged in.
    pub(super) async fn visitor(&self, headers: &HeaderMap) -> Result<Option<Visitor>, Problem> {
        let Some(token) = session_cookie(headers) else { return Ok(None) };
        let caller = self.server.by_session(token).await?;
        Ok(caller.map(|caller| Visitor {
            caller,
            csrf: csrf_token(token),
            session: digest(token),
            flash: Flash::of(headers),
        }))
    }
}

/// Bytes that a form at this address may have: what a message carries may be as large as what the API takes.
fn bytes_max(console: &Console, uri: &Uri) -> usize {
    match uri.path().ends_with("/edit") {
        true => console.server.limits.body_bytes_max,
        false => form::BYTES_MAX,
    }
}

/// Sends strangers to the login, and others on if they may.
pub(super) async fn guard(
    State(Door { console, least }): State<Door>,
    mut request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let Some(visitor) = console.visitor(request.headers()).await? else {
        return Ok(Redirect::to(link::LOGIN).into_response());
    };
    if visitor.caller.role < least {
        let detail =
            format!("this needs the role {}, and yours is {}", least.name(), visitor.caller.role.name());
        return Err(Problem::forbidden(detail).into());
    }
    let is_look = request.method().is_safe();
    if !is_look {
        let (parts, body) = request.into_parts();
        let form = Form::read(&console.server, &parts.headers, body, bytes_max(&console, &parts.uri)).await?;
        if !is_same(&digest(form.text("csrf")), &digest(&visitor.csrf)) {
            let detail = "the form belongs to another session: reload the page and submit it again";
            return Err(Problem::forbidden(detail).into());
        }
        request = Request::from_parts(parts, Body::empty());
        request.extensions_mut().insert(form);
    }
    let said = is_look && visitor.flash.is_some();
    let (name, cleared) = console.secure.clear(request.headers(), flash::COOKIE);
    request.extensions_mut().insert(visitor);
    let mut response = next.run(request).await;
    if let (true, Ok(value)) = (said, HeaderValue::from_str(&cleared)) {
        response.headers_mut().append(name, value);
    }
    Ok(response)
}
