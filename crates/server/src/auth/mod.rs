//! Who asks, and whether they may. One table says what each route needs; a route that isn't in it is closed.

pub mod rights;
pub mod secret;
pub(crate) mod throttle;

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use redeliver_core::{Message, Name};
use redeliver_engine::access::Role;

use crate::Server;
use crate::problem::Problem;
use rights::{Need, need};
use secret::{AdminKey, digest, is_same};

/// The cookie of a console's session.
pub const SESSION_COOKIE: &str = "redeliver_session";

/// The header that a page sends along with its cookie, so that no other page can.
pub const CSRF_HEADER: &str = "x-csrf-token";

/// Whoever asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// What the audit calls them.
    pub name: Arc<str>,
    /// The only workspace that they reach; all of them if none.
    pub workspace: Option<Name>,
    /// What they may do.
    pub role: Role,
    /// The key that they came with, if it is in the store.
    pub key: Option<Arc<str>>,
}

/// Whoever calls the router from within the process that made it, and is known there already: an extension of the
/// request. What comes over a socket has none, whatever its headers say.
#[derive(Clone, Debug)]
pub struct InProcess(pub Caller);

impl Caller {
    /// Whether they may know of what is in this workspace.
    pub fn reaches(&self, workspace: &str) -> bool {
        self.workspace.as_deref().is_none_or(|own| own == workspace)
    }

    /// Whether they may know of this message.
    pub fn sees(&self, message: &Message) -> bool {
        self.reaches(&message.workspace)
    }

    /// Refuses whoever belongs to one workspace what concerns all of them.
    pub fn reaches_all(&self) -> Result<(), Problem> {
        match &self.workspace {
            None => Ok(()),
            Some(own) => Err(Problem::forbidden(format!(
                "this concerns all workspaces, and this key is for {own:?} only: use one that is for all"
            ))),
        }
    }
}

/// The caller whom the guard let in.
impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get().cloned().ok_or_else(|| Problem::unauthorized(HOW_TO_ASK))
    }
}

const HOW_TO_ASK: &str =
    "send a key as `Authorization: Bearer rdk_…`; `redeliver keys create --name NAME --role ROLE` makes one";

/// Lets through whoever may, and tells the others why not.
pub async fn guard(
    State(server): State<Server>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let need = path.and_then(|path| need(request.method(), &path));
    let least = match need {
        Some(Need::Nobody) => return Ok(next.run(request).await),
        Some(Need::AnyKeyToExist) if server.has_key().await? => return Ok(next.run(request).await),
        Some(Need::AnyKeyToExist) => Role::Viewer,
        Some(Need::AtLeast(role)) => role,
        None => return Err(Problem::forbidden("nobody may do this")),
    };
    let caller = match request.extensions().get() {
        Some(InProcess(caller)) => caller.clone(),
        None => server.identify(request.method(), request.headers()).await?,
    };
    if caller.role < least {
        return Err(Problem::forbidden(format!(
            "it takes the role {}, and this key is a {}'s",
            least.name(),
            caller.role.name()
        )));
    }
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

impl Server {
    /// Whether there is a key that would let somebody in.
    pub async fn has_key(&self) -> Result<bool, Problem> {
        Ok(self.admin_key.is_some() || self.access.keys().await?.iter().any(|key| key.revoked_at.is_none()))
    }

    /// Finds out who asks, by the key in the header or the session in the cookie.
    pub async fn identify(&self, method: &Method, headers: &HeaderMap) -> Result<Caller, Problem> {
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let said = value.to_str().ok().and_then(bearer);
            let caller = match said {
                Some(text) => self.by_bearer(text).await?,
                None => None,
            };
            return caller.ok_or_else(|| {
                Problem::unauthorized(format!("the key is unknown or revoked: {HOW_TO_ASK}"))
            });
        }
        let Some(token) = session_cookie(headers) else { return Err(Problem::unauthorized(HOW_TO_ASK)) };
        let caller = self
            .by_session(token)
            .await?
            .ok_or_else(|| Problem::unauthorized("the session is over: log in again"))?;
        let csrf = headers.get(CSRF_HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !method.is_safe() && !is_same(&digest(csrf), &digest(&secret::csrf_token(token))) {
            return Err(Problem::forbidden(format!(
                "a session needs the header {CSRF_HEADER} to change anything"
            )));
        }
        Ok(caller)
    }

    /// Whose key a request has in its header, if it is anybody's. A key of the store has 256 random bits: it is looked
    /// at first, so that those who guess hold up nobody who has one. All others wait their turn.
    async fn by_bearer(&self, text: &str) -> Result<Option<Caller>, Problem> {
        if let Some(caller) = self.by_stored_key(text).await? {
            return Ok(Some(caller));
        }
        let turn = self.throttle.turn().await?;
        if let Some(caller) = self.by_admin_key(text) {
            return Ok(Some(caller));
        }
        tracing::warn!(event = "login.failed", "a request had a key that is unknown or revoked");
        turn.failed(Arc::clone(self.engine.clock())).await;
        Ok(None)
    }

    /// Whose key this is, if it is anybody's.
    pub async fn by_key(&self, text: &str) -> Result<Option<Caller>, Problem> {
        match self.by_admin_key(text) {
            Some(caller) => Ok(Some(caller)),
            None => self.by_stored_key(text).await,
        }
    }

    fn by_admin_key(&self, text: &str) -> Option<Caller> {
        let key = self.admin_key.as_ref().filter(|key| key.is(text));
        key.map(|_| Caller { name: AdminKey::NAME.into(), workspace: None, role: Role::Admin, key: None })
    }

    async fn by_stored_key(&self, text: &str) -> Result<Option<Caller>, Problem> {
        let Some((id, secret)) = secret::parts(text) else { return Ok(None) };
        let found = self.access.key(id).await?;
        // Compared even where there is nothing to compare with, so that the time tells nothing.
        let expected = found.as_ref().map_or([0; 32], |key| key.digest);
        let fits = is_same(&expected, &digest(secret));
        Ok(found.filter(|key| fits && key.revoked_at.is_none()).map(|key| Caller {
            name: key.name,
            workspace: key.workspace,
            role: key.role,
            key: Some(key.id),
        }))
    }

    /// Whose session this is, if it is anybody's.
    pub async fn by_session(&self, token: &str) -> Result<Option<Caller>, Problem> {
        let found = self.access.session(digest(token), self.engine.clock().now()).await?;
        Ok(found.map(|session| Caller {
            name: session.name,
            workspace: session.workspace,
            role: session.role,
            key: session.key,
        }))
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

/// The session that a request's cookies name.
pub fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|value| value.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find(|(name, _)| *name == SESSION_COOKIE)
        .map(|(_, token)| token)
}
