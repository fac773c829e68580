//! `/admin/keys`: who may come in. A key's text is shown once, on the page that answers its making.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use redeliver_core::change::Audit;
use redeliver_engine::access::{KeyRecord, Role};

use super::emails::visible;
use super::form::Form;
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::moment::Moment;
use super::page::{Answer, page};
use super::refusal::Refusal;
use super::{Console, link};
use crate::api::keys::{make, reaches};
use crate::input::{Params, Segment, query};
use crate::problem::{FieldProblem, Problem};

struct Row {
    name: String,
    id: String,
    role: &'static str,
    workspace: Option<String>,
    created: Moment,
    revoked: Option<Moment>,
    revoke: String,
}

#[derive(Template)]
#[template(path = "keys.html")]
struct Page {
    frame: Frame,
    rows: Vec<Row>,
    roles: [&'static str; 4],
    /// The key that was just made.
    made: Option<String>,
    own_workspace: Option<String>,
    csrf: String,
}

/// `GET /admin/keys`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    params: Params,
) -> Answer {
    params.finish()?;
    list(&console, &visitor, None).await
}

/// `POST /admin/keys`
pub(super) async fn create(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<Form>,
) -> Answer {
    let wrong = |field, problem: String| Problem::invalid(vec![FieldProblem::new(field, problem)]);
    let role = query::word(form.text("role"), Role::from_name, &Role::ALL.map(Role::name));
    let role = role.map_err(|problem| wrong("role", problem))?;
    let workspace = Some(form.text("workspace").trim().to_owned()).filter(|name| !name.is_empty());
    let workspace = workspace.or_else(|| visitor.caller.workspace.as_ref().map(ToString::to_string));
    let made = make(&console.server, &visitor.caller, form.text("name").trim(), role, workspace).await?;
    list(&console, &visitor, Some(made.key)).await
}

/// `POST /admin/keys/{id}/revoke`
pub(super) async fn revoke(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Segment(id): Segment,
) -> Result<Response, Refusal> {
    let no_key = || Problem::not_found("no such key, or it is already revoked");
    let key = console.server.access.key(&id).await?;
    let key = key.filter(|key| reaches(&visitor.caller, key)).ok_or_else(no_key)?;
    let at = console.server.engine.clock().now();
    let actor = visitor.caller.name.clone();
    let audit = Audit { actor, action: "revoke_key", subject: key.id.clone(), at, detail: None };
    if !console.server.access.revoke_key(&key.id, audit).await? {
        return Err(no_key().into());
    }
    Ok(Redirect::to(link::KEYS).into_response())
}

async fn list(console: &Console, visitor: &Visitor, made: Option<String>) -> Answer {
    let keys = console.server.access.keys().await?;
    let row = |key: &KeyRecord| Row {
        name: visible(&key.name),
        id: visible(&key.id),
        role: key.role.name(),
        workspace: key.workspace.as_deref().map(visible),
        created: Moment::clock(key.created_at),
        revoked: key.revoked_at.map(Moment::clock),
        revoke: format!("{}/{}/revoke", link::KEYS, link::segment(&key.id)),
    };
    page(&Page {
        frame: Frame::around(console, visitor, Place::Keys),
        rows: keys.iter().rev().filter(|key| reaches(&visitor.caller, key)).map(row).collect(),
        roles: Role::ALL.map(Role::name),
        made,
        own_workspace: visitor.caller.workspace.as_deref().map(visible),
        csrf: visitor.csrf.clone(),
    })
}
