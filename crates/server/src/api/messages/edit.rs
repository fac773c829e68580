//! `POST /v1/messages/{id}/edit`: correct what made a message hopeless, and send it again. `GET /v1/messages/{id}/edits`: what
//! was corrected in it, by whom and when.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redeliver_core::edit::{Difference, EditRecord, Uneditable, Wanted};
use redeliver_core::email::Email;
use redeliver_core::{Content, Message};
use redeliver_engine::access::Role;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::find;
use super::read::{check_attributes, check_content_type, check_word, email_content};
use super::submit::wrong_route;
use crate::Server;
use crate::api::view::MessageView;
use crate::auth::Caller;
use crate::input::{Fields, Id, Params, body};
use crate::openapi::{EditBody, LookedUp, Reported};
use crate::problem::{FieldProblem, Problem};

/// What somebody wants otherwise in a message. What is not said stays as it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// The version that they have seen.
    pub(crate) version: Option<u64>,
    /// The way it is to travel.
    pub(crate) route: Option<String>,
    /// Where to; `Some(None)` takes it away.
    pub(crate) target: Option<Option<Arc<str>>>,
    /// What the bytes of a payload are; `Some(None)` takes it away.
    pub(crate) content_type: Option<Option<Arc<str>>>,
    /// Attributes that are to be otherwise, or gone.
    pub(crate) attributes: BTreeMap<String, Option<String>>,
    /// Fields of an e-mail that are to be otherwise, or gone.
    pub(crate) email: Option<Map<String, Value>>,
    /// The bytes in place of a payload.
    pub(crate) payload: Option<Payload>,
}

/// What a message is to carry instead.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    /// JSON, as it was said.
    Json(Vec<u8>),
    /// Any bytes.
    Bytes(Vec<u8>),
}

/// What a correction came to, or would.
#[derive(Serialize, ToSchema)]
pub struct EditAnswer {
    /// Whether nothing was done.
    pub dry_run: bool,
    /// How the message stands now.
    pub message: MessageView,
    /// What is different, or would be.
    pub differences: Vec<DifferenceView>,
}

/// What is different in one field.
#[derive(Serialize, ToSchema)]
pub struct DifferenceView {
    /// Which field.
    pub field: String,
    /// What it said; null if it wasn't there. For operators only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it says; null if it is gone. For operators only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// What was corrected in a message.
#[derive(Serialize, ToSchema)]
pub struct Edits {
    /// Oldest first.
    pub items: Vec<EditView>,
}

/// One correction.
#[derive(Serialize, ToSchema)]
pub struct EditView {
    /// Who: the name of a key.
    pub actor: String,
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// How often the message had been started over, this time included.
    pub generation: u32,
    /// What is different.
    pub differences: Vec<DifferenceView>,
}

/// Correct a message that can be retried, and send it again
///
/// What is not said stays as it is, null takes away, and lists are replaced whole. What the message said before is kept with it.
/// With `dry_run` it is only said what would be different.
#[utoipa::path(post, path = "/v1/messages/{id}/edit", operation_id = "edit_message", tag = "messages", params(("id" = String, Path)),
    request_body = EditBody,
    responses((status = 200, description = "It is due, or would be", body = EditAnswer), Reported))]
pub async fn edit(
    State(server): State<Server>,
    caller: Caller,
    Id(id): Id,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<EditAnswer>, Problem> {
    params.finish()?;
    let message = find(&server, &caller, &id).await?;
    let (asked, dry_run) = body::object(&server, &headers, body, read).await?;
    let content = server.engine.store().content(id).await?.unwrap_or_default();
    let wanted = wanted(&server, &message, &content, asked)?;
    let planned = server.engine.plan_edit(&message, &content, wanted, &caller.name).await?;
    let differences = planned.edit.as_ref().map(|record| record.differences.clone()).unwrap_or_default();
    let message = if dry_run { message } else { server.engine.edit(planned).await? };
    Ok(Json(EditAnswer {
        dry_run,
        message: MessageView::of(&message, &server.engine),
        differences: differences.into_iter().map(|different| DifferenceView::of(different, true)).collect(),
    }))
}

/// Look at what was corrected in a message, oldest first
///
/// What its fields said is for operators; others learn which they are.
#[utoipa::path(get, path = "/v1/messages/{id}/edits", operation_id = "list_edits", tag = "messages",
    params(("id" = String, Path)),
    responses((status = 200, description = "What was corrected", body = Edits), LookedUp))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    Id(id): Id,
    params: Params,
) -> Result<Json<Edits>, Problem> {
    params.finish()?;
    find(&server, &caller, &id).await?;
    let records = server.engine.store().edits(id).await?;
    let in_full = caller.role >= Role::Operator;
    Ok(Json(Edits { items: records.into_iter().map(|record| EditView::of(record, in_full)).collect() }))
}

impl EditView {
    fn of(record: EditRecord, in_full: bool) -> Self {
        let view = |different| DifferenceView::of(different, in_full);
        Self {
            actor: record.actor.to_string(),
            at: record.at.to_string(),
            generation: record.generation,
            differences: record.differences.into_iter().map(view).collect(),
        }
    }
}

impl DifferenceView {
    fn of(Difference { field, before, after }: Difference, in_full: bool) -> Self {
        Self { field, before: in_full.then_some(before), after: in_full.then_some(after) }
    }
}

fn read(fields: &mut Fields<'_>) -> (Asked, bool) {
    let dry_run = fields.get("dry_run").unwrap_or(false);
    let mut word = |name, check: fn(String) -> Result<Arc<str>, String>| match fields.is_null(name) {
        true => Some(None),
        false => fields.parse(name, check).map(Some),
    };
    let (target, content_type) = (word("target", check_word), word("content_type", check_content_type));
    let json = fields.raw("payload").map(|raw| Payload::Json(raw.get().as_bytes().to_vec()));
    let bytes = fields.parse("payload_base64", |text: String| {
        STANDARD.decode(text).map(Payload::Bytes).map_err(|_| "is not base64".to_owned())
    });
    if json.is_some() && bytes.is_some() {
        fields.wrong("payload", "is said in two ways: payload or payload_base64, not both");
    }
    let version = fields.get("version");
    if version.is_none() && fields.raw("version").is_none() {
        fields.wrong("version", "is missing: GET /v1/messages/{id} says which one the message has");
    }
    let asked = Asked {
        version,
        route: fields.get("route"),
        target,
        content_type,
        attributes: fields.get("attributes").unwrap_or_default(),
        email: fields.get("email"),
        payload: json.or(bytes),
    };
    (asked, dry_run)
}

/// The whole message that somebody wants, looked over as one that is new.
pub(crate) fn wanted(
    server: &Server,
    message: &Message,
    content: &Content,
    asked: Asked,
) -> Result<Wanted, Problem> {
    let (seen, now) = (asked.version.unwrap_or(message.fence), message.fence);
    if seen != now {
        // What is said about a message that is no longer there can't be judged.
        return Err(Problem::conflict(Uneditable::Stale { seen, now }.to_string()));
    }
    let mut wrong = Vec::new();
    if let Some(problem) = asked.route.as_deref().and_then(|name| wrong_route(server, name)) {
        wrong.push(FieldProblem::new("route", problem));
    }
    let mut after = content.clone();
    if let Some(target) = asked.target {
        after.target = target;
    }
    for (name, value) in asked.attributes {
        match value {
            Some(value) => after.attributes.insert(name, value),
            None => after.attributes.remove(&name),
        };
    }
    if after.attributes != content.attributes
        && let Err(problem) = check_attributes(after.attributes.clone())
    {
        wrong.push(FieldProblem::new("attributes", problem));
    }
    match Email::of_content(content) {
        Some(Ok(email)) => {
            for (field, is_said) in
                [("payload", asked.payload.is_some()), ("content_type", asked.content_type.is_some())]
            {
                if is_said {
                    wrong.push(FieldProblem::new(
                        field,
                        "is no part of an e-mail: say what is otherwise in email",
                    ));
                }
            }
            match asked.email.map(|parts| rewrite(&email, parts)) {
                // What is not otherwise stays as it is, byte for byte.
                Some(Ok((rewritten, bare))) if rewritten != email => after.bytes = bare.bytes,
                Some(Err(problems)) => wrong.extend(problems),
                Some(Ok(_)) | None => {}
            }
        }
        Some(Err(_)) => wrong.push(FieldProblem::new("email", "can't be read as it is kept")),
        None => {
            if asked.email.is_some() {
                wrong.push(FieldProblem::new("email", "is not what this message carries: it has a payload"));
            }
            carry(&mut after, asked.payload, asked.content_type);
        }
    }
    if !wrong.is_empty() {
        return Err(Problem::invalid(wrong));
    }
    if after.bytes.len() > server.limits.body_bytes_max {
        return Err(Problem::too_large(server.limits.body_bytes_max));
    }
    let route = asked.route.map_or_else(|| message.route.clone(), Into::into);
    Ok(Wanted { version: seen, route, content: after })
}

/// The e-mail with these of its fields otherwise, and the content that carries it; or what is wrong with it.
fn rewrite(email: &Email, parts: Map<String, Value>) -> Result<(Email, Content), Vec<FieldProblem>> {
    let mut whole = serde_json::to_value(email).unwrap_or_default();
    for (name, value) in parts {
        whole[name] = value;
    }
    if let Some(fields) = whole.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    let text = json!({ "email": whole }).to_string();
    let mut fields = Fields::of(&text).map_err(|problem| problem.errors)?;
    let rewritten = fields.parse("email", Ok::<Email, String>).unwrap_or_default();
    let content = match fields.has_problems() {
        true => Content::default(),
        false => email_content(&rewritten, &mut fields),
    };
    fields.finish()?;
    Ok((rewritten, content))
}

fn carry(content: &mut Content, payload: Option<Payload>, content_type: Option<Option<Arc<str>>>) {
    let is_json =
        |content: &Content| content.content_type.as_deref().is_some_and(|kind| kind.contains("json"));
    match payload {
        Some(Payload::Json(bytes)) => {
            content.bytes = bytes.into();
            if !is_json(content) {
                content.content_type = Some("application/json".into());
            }
        }
        Some(Payload::Bytes(bytes)) => content.bytes = bytes.into(),
        None => {}
    }
    if let Some(said) = content_type {
        content.content_type = said;
    }
}
