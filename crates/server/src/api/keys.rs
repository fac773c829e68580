//! `/v1/keys`: who may come in. A key's text is shown once, when it is made.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use redeliver_core::change::Audit;
use redeliver_engine::access::{KeyRecord, Role};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Server;
use crate::auth::Caller;
use crate::auth::secret::{NewKey, check_name};
use crate::input::{Params, Segment, body, query};
use crate::openapi::{KeyMade, Looked, LookedUp, NewKeyBody};
use crate::problem::{FieldProblem, Problem};

/// All keys.
#[derive(Serialize, ToSchema)]
pub struct Keys {
    /// Oldest first, revoked ones too.
    pub items: Vec<KeyView>,
}

/// A key, without its secret.
#[derive(Serialize, ToSchema)]
pub struct KeyView {
    /// What it is found by.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it may do.
    #[schema(pattern = "^(viewer|sender|operator|admin)$")]
    pub role: &'static str,
    /// The only workspace that it reaches; all of them if `null`.
    pub workspace: Option<String>,
    /// Since when.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Since when it is worthless.
    #[schema(format = DateTime)]
    pub revoked_at: Option<String>,
}

/// A key that was just made.
#[derive(Serialize, ToSchema)]
pub struct MadeKey {
    /// What is kept of it.
    #[serde(flatten)]
    pub view: KeyView,
    /// The key itself: it is shown this once.
    pub key: String,
}

impl KeyView {
    /// A key as callers see it.
    pub fn of(key: &KeyRecord) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name.to_string(),
            role: key.role.name(),
            workspace: key.workspace.as_ref().map(ToString::to_string),
            created_at: key.created_at.to_string(),
            revoked_at: key.revoked_at.map(|at| at.to_string()),
        }
    }
}

/// List the keys
#[utoipa::path(get, path = "/v1/keys", operation_id = "list_keys", tag = "keys",
    responses((status = 200, description = "The keys", body = Keys), Looked))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    params: Params,
) -> Result<Json<Keys>, Problem> {
    params.finish()?;
    let keys = server.access.keys().await?;
    let seen = keys.iter().filter(|key| reaches(&caller, key));
    Ok(Json(Keys { items: seen.map(KeyView::of).collect() }))
}

/// Make a key
#[utoipa::path(post, path = "/v1/keys", operation_id = "create_key", tag = "keys", request_body = NewKeyBody,
    responses((status = 201, description = "The key, shown this once", body = MadeKey), KeyMade))]
pub async fn create(
    State(server): State<Server>,
    caller: Caller,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<MadeKey>), Problem> {
    params.finish()?;
    let (name, role, workspace) = body::object(&server, &headers, body, |fields| {
        let name = fields.parse("name", |name: String| check_name(&name).map(|()| name));
        let role = fields
            .parse("role", |word: String| query::word(&word, Role::from_name, &Role::ALL.map(Role::name)));
        for (field, is_missing) in [("name", name.is_none()), ("role", role.is_none())] {
            if is_missing && fields.raw(field).is_none() {
                fields.wrong(field, "is missing");
            }
        }
        (name, role, fields.parse("workspace", check_workspace))
    })
    .await?;
    let (Some(name), Some(role)) = (name, role) else { return Err(Problem::internal()) };
    Ok((StatusCode::CREATED, Json(make(&server, &caller, &name, role, workspace).await?)))
}

/// Makes a key that reaches no further than whoever makes it.
pub(crate) async fn make(
    server: &Server,
    caller: &Caller,
    name: &str,
    role: Role,
    workspace: Option<String>,
) -> Result<MadeKey, Problem> {
    let wrong = |field, problem: String| Problem::invalid(vec![FieldProblem::new(field, problem)]);
    check_name(name).map_err(|problem| wrong("name", problem))?;
    let workspace =
        workspace.map(check_workspace).transpose().map_err(|problem| wrong("workspace", problem))?;
    if workspace.as_deref().map_or(caller.workspace.is_some(), |asked| !caller.reaches(asked)) {
        return Err(Problem::forbidden("a key reaches no further than the key that makes it"));
    }
    let now = server.engine.clock().now();
    let new = NewKey::make(name, role, workspace.map(Into::into), now).map_err(|error| {
        tracing::error!(event = "key.failed", "{error}");
        Problem::internal()
    })?;
    let actor = caller.name.clone();
    let audit = Audit { actor, action: "create_key", subject: new.record.id.clone(), at: now, detail: None };
    let view = KeyView::of(&new.record);
    if !server.access.add_key(new.record, audit).await? {
        return Err(Problem::internal());
    }
    Ok(MadeKey { view, key: new.text })
}

/// Revoke a key
#[utoipa::path(delete, path = "/v1/keys/{id}", operation_id = "revoke_key", tag = "keys", params(("id" = String, Path)),
    responses((status = 204, description = "It is worthless from now on"), LookedUp))]
pub async fn revoke(
    State(server): State<Server>,
    caller: Caller,
    Segment(id): Segment,
    params: Params,
) -> Result<StatusCode, Problem> {
    params.finish()?;
    let no_key = || Problem::not_found(format!("there is no key {id:?}, or it is revoked already"));
    let found = server.access.key(&id).await?;
    let key = found.filter(|key| reaches(&caller, key)).ok_or_else(no_key)?;
    let at = server.engine.clock().now();
    let audit = Audit { actor: caller.name, action: "revoke_key", subject: key.id.clone(), at, detail: None };
    match server.access.revoke_key(&key.id, audit).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_key()),
    }
}

/// Whether a caller may know of a key: one that belongs to a workspace sees that workspace's.
pub(crate) fn reaches(caller: &Caller, key: &KeyRecord) -> bool {
    caller.workspace.is_none() || caller.workspace == key.workspace
}

fn check_workspace(name: String) -> Result<String, String> {
    super::messages::check_workspace(&name).map(|()| name)
}
