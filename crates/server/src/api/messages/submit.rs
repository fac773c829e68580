//! `POST /v1/messages`: one message, an array of them, or NDJSON. An answer means that it is committed.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::{Content, Message, MessageId};
use redeliver_engine::intake::Accepted;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::ndjson;
use super::read::{self, HeaderKey};
use crate::Server;
use crate::api::view::MessageView;
use crate::auth::Caller;
use crate::input::body::{self, Kind};
use crate::limits::{ARRAY_LEN_MAX, within};
use crate::openapi::{NewMessages, Sent};
use crate::problem::{ERRORS_MAX, FieldProblem, Problem};
use crate::span::traceparent;

/// The longest key in a header, so that there is room for a place behind it.
const HEADER_KEY_BYTES_MAX: usize = 255;

/// What became of a message that was sent in.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "it is made, written and gone")]
pub enum Acceptance {
    /// It is kept.
    Kept {
        /// How it stands.
        #[serde(flatten)]
        message: MessageView,
        /// Whether its key had been said before: this is the first message then.
        duplicate: bool,
    },
    /// Its key was said before, and the first message has ended and is gone.
    Gone {
        /// Which message it was.
        id: String,
        /// Always so.
        duplicate: bool,
    },
    /// It is not kept.
    Refused {
        /// Why.
        problem: Problem,
    },
}

/// What was made of one message, before anybody is told.
pub(super) struct Taken {
    pub(super) status: StatusCode,
    pub(super) answer: Acceptance,
}

/// Have messages accepted
///
/// One object, an array, or NDJSON with one result line for each input line. 201 means committed: it will reach an end.
/// After a time-out or a 5xx, say it again with the same key.
///
/// The header `Idempotency-Key` stands for the key of a message that has none; 422 if it has another. Of many messages,
/// each without a key has the header's with `/` and its place.
#[utoipa::path(post, path = "/v1/messages", operation_id = "accept_messages", tag = "messages",
    params(
        ("Prefer" = Option<String>, Header, description = "`wait=5`: try at once, and answer when that is known"),
    ),
    request_body(content(
        (NewMessages = "application/json"), (String = "application/x-ndjson"))),
    responses(
        (status = 201, description = "Committed; of an array, at least one", body = OneOrMany),
        (status = 200, description = "Said before; tried and ended, with Prefer; or the result lines of NDJSON",
            content((OneOrMany = "application/json"), (String = "application/x-ndjson"))),
        (status = 202, description = "Committed and queued, though Prefer would have waited", body = Acceptance),
        Sent,
    ))]
pub async fn submit(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let header_key = idempotency_key(&headers)?;
    match body::kind(&headers)? {
        Kind::Ndjson => {
            let traceparent = traceparent(&headers).map(str::to_owned);
            ndjson::answer(server, caller, header_key.map(str::to_owned), traceparent, body)
        }
        Kind::Json => {
            let whole = body::whole(&server, &headers, body).await?;
            match whole.text.trim_start().starts_with('[') {
                // What is rarer is kept apart, so that the common case is small to move about.
                true => Box::pin(many(&server, &caller, &headers, header_key, &whole.text)).await,
                false => one(&server, &caller, &headers, header_key, &whole.text).await,
            }
        }
    }
}

/// One message, or many.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "it is made, written and gone")]
pub enum OneOrMany {
    /// What became of the one.
    One(Acceptance),
    /// What became of each, in their order.
    Many(Vec<Acceptance>),
}

async fn one(
    server: &Server,
    caller: &Caller,
    headers: &HeaderMap,
    header_key: Option<&str>,
    text: &str,
) -> Result<Response, Problem> {
    let header_key = header_key.map_or(HeaderKey::None, HeaderKey::One);
    let read = || read::message(text, header_key, caller, |route| wrong_route(server, route));
    let new = server.parsing.run(text.len(), read).await?;
    let new = in_trace(new, traceparent(headers));
    let taken = match wait(headers) {
        Some(span) => return Box::pin(wait_for(server, new, span)).await,
        None => take(server, vec![new]).await?.pop().ok_or_else(Problem::internal)?,
    };
    match taken.answer {
        Acceptance::Refused { problem } => Err(problem),
        answer => Ok((taken.status, Json(answer)).into_response()),
    }
}

/// All of them or, if something is wrong with one, none.
async fn many(
    server: &Server,
    caller: &Caller,
    headers: &HeaderMap,
    header_key: Option<&str>,
    text: &str,
) -> Result<Response, Problem> {
    let read = || read_many(server, caller, headers, header_key, text);
    let news = server.parsing.run(text.len(), read).await?;
    let taken = take(server, news).await?;
    let any = |status| taken.iter().any(|one| one.status == status);
    let status = match () {
        () if any(StatusCode::CREATED) => StatusCode::CREATED,
        () if any(StatusCode::CONFLICT) && !any(StatusCode::OK) => {
            let known = taken.iter().enumerate().filter(|(_, one)| one.status == StatusCode::CONFLICT);
            let wrong = |index| FieldProblem::new(format!("[{index}].key"), "is known for another content");
            let errors = known.map(|(index, _)| wrong(index)).collect();
            let problem = Problem::conflict("each of these keys is known for another content");
            return Err(problem.naming(errors));
        }
        () => StatusCode::OK,
    };
    let answers: Vec<Acceptance> = taken.into_iter().map(|one| one.answer).collect();
    Ok((status, Json(answers)).into_response())
}

/// Reads an array of messages. Once enough is wrong with some, the rest is not looked at.
fn read_many(
    server: &Server,
    caller: &Caller,
    headers: &HeaderMap,
    header_key: Option<&str>,
    text: &str,
) -> Result<Vec<NewMessage>, Problem> {
    let texts: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|error| Problem::unreadable(format!("it is not JSON: {error}")))?;
    if texts.len() > ARRAY_LEN_MAX {
        let problem = format!("has at most {ARRAY_LEN_MAX} messages; send more as NDJSON");
        return Err(FieldProblem::new("(body)", problem).into());
    }
    let mut news = Vec::with_capacity(texts.len());
    let mut wrong = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let wrong_route = |route: &str| wrong_route(server, route);
        let header_key = header_key.map_or(HeaderKey::None, |key| HeaderKey::Many(key, index as u64));
        match read::message(text.get(), header_key, caller, wrong_route) {
            Ok(new) => news.push(in_trace(new, traceparent(headers))),
            Err(problem) if problem.errors.is_empty() => return Err(problem),
            Err(problem) => {
                let errors = problem.errors.into_iter();
                wrong.extend(
                    errors.map(|error| FieldProblem { field: format!("[{index}].{}", error.field), ..error }),
                );
                if wrong.len() > ERRORS_MAX {
                    let mut problem = Problem::invalid(wrong);
                    problem.detail.push_str(&format!("; messages after [{index}] were not read"));
                    return Err(problem);
                }
            }
        }
    }
    if wrong.is_empty() { Ok(news) } else { Err(Problem::invalid(wrong)) }
}

/// A message as part of its caller's trace, if it has one: its tries are told there too.
pub(super) fn in_trace(new: NewMessage, traceparent: Option<&str>) -> NewMessage {
    NewMessage { content: new.content.in_trace(traceparent), ..new }
}

/// Has messages accepted, and says how each stands then.
pub(super) async fn take(server: &Server, news: Vec<NewMessage>) -> Result<Vec<Taken>, Problem> {
    let heads: Vec<NewMessage> = news.iter().map(head).collect();
    let accepted = server.engine.accept_and_tell(news).await?;
    let mut all = Vec::with_capacity(heads.len());
    for (head, (accepted, message)) in heads.into_iter().zip(accepted) {
        all.push(match message {
            Some(message) => {
                let message = MessageView::of(&message, &server.engine);
                let answer = Acceptance::Kept { message, duplicate: false };
                Taken { status: StatusCode::CREATED, answer }
            }
            None => Box::pin(tell(server, head, accepted)).await?,
        });
    }
    Ok(all)
}

/// A message without what it carries: enough to say how it stood when it came.
fn head(new: &NewMessage) -> NewMessage {
    let content = Content::default();
    NewMessage {
        workspace: new.workspace.clone(),
        route: new.route.clone(),
        lane: new.lane,
        key: new.key.clone(),
        due_at: new.due_at,
        expires_at: new.expires_at,
        attempts: new.attempts,
        error: new.error.clone(),
        max_attempts: new.max_attempts,
        content,
        source: new.source,
        is_refused: new.is_refused,
    }
}

async fn tell(server: &Server, head: NewMessage, accepted: Accepted) -> Result<Taken, Problem> {
    let kept = |message: &Message, duplicate| Acceptance::Kept {
        message: MessageView::of(message, &server.engine),
        duplicate,
    };
    let taken = match accepted {
        Accepted::New(id) | Accepted::Reentered(id) => {
            let message = match server.engine.store().get(id.clone()).await? {
                Some(message) => message,
                None => as_it_came(server, head, id)?,
            };
            Taken { status: StatusCode::CREATED, answer: kept(&message, false) }
        }
        Accepted::Duplicate(id) => {
            let answer = match server.engine.store().get(id.clone()).await? {
                Some(message) => kept(&message, true),
                None => Acceptance::Gone { id: id.to_string(), duplicate: true },
            };
            Taken { status: StatusCode::OK, answer }
        }
        Accepted::Conflict(id) => {
            let wrong = format!("is known for another content, that of message {id}");
            let problem = Problem::conflict(format!("the key {wrong}"));
            refused(problem.naming(vec![FieldProblem::new("key", wrong)]))
        }
        Accepted::NoRoute => {
            refused(Problem::from(FieldProblem::new("route", "names no route of the config")))
        }
    };
    Ok(taken)
}

/// Why nothing can be accepted on a route; `None` if it can.
pub(super) fn wrong_route(server: &Server, name: &str) -> Option<&'static str> {
    match server.engine.route(name) {
        None => Some("names no route of the config: GET /v1/routes has them"),
        Some(route) if route.table.is_some() => {
            Some("carries the rows of an application's table: write the row there instead")
        }
        Some(_) => None,
    }
}

/// A message that has ended and been deleted since, with no retention, as it was when it came.
fn as_it_came(server: &Server, head: NewMessage, id: MessageId) -> Result<Message, Problem> {
    let route = server.engine.route(&head.route).ok_or_else(Problem::internal)?;
    Ok(admit(head, route, id, None, server.engine.clock().now()).message)
}

fn refused(problem: Problem) -> Taken {
    Taken { status: problem.status(), answer: Acceptance::Refused { problem } }
}

/// Has a message tried at once, and waits for what comes of it. Waiting no longer never stops the try.
async fn wait_for(server: &Server, new: NewMessage, span: Duration) -> Result<Response, Problem> {
    let head = head(&new);
    // On a task of its own: a caller who hangs up must not leave a message claimed that nobody tries.
    let engine = std::sync::Arc::clone(&server.engine);
    let accepting = tokio::spawn(async move { engine.accept_now(new).await });
    let (accepted, waiter) = accepting.await.map_err(|_| Problem::internal())??;
    let is_new = matches!(accepted, Accepted::New(_) | Accepted::Reentered(_));
    let span = span.min(server.limits.request_timeout.saturating_sub(Duration::from_secs(1)));
    let settled = match waiter {
        Some(waiter) => within(server.engine.clock().as_ref(), span, waiter.settled()).await.flatten(),
        None => None,
    };
    let taken = match settled {
        Some(message) => {
            let ended = message.state.ended_at().is_some();
            let message = MessageView::of(&message, &server.engine);
            let status = if ended { StatusCode::OK } else { StatusCode::ACCEPTED };
            Taken { status, answer: Acceptance::Kept { message, duplicate: false } }
        }
        None => {
            let taken = tell(server, head, accepted).await?;
            Taken { status: if is_new { StatusCode::ACCEPTED } else { taken.status }, ..taken }
        }
    };
    if let Acceptance::Refused { problem } = taken.answer {
        return Err(problem);
    }
    let applied = HeaderValue::from_str(&format!("wait={}", span.as_secs()));
    let mut response = (taken.status, Json(taken.answer)).into_response();
    if let Ok(applied) = applied {
        response.headers_mut().insert(HeaderName::from_static("preference-applied"), applied);
    }
    Ok(response)
}

/// How long the caller would wait for a first try; what else it prefers is not for us.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let said = headers.get_all("prefer").into_iter().filter_map(|value| value.to_str().ok());
    let seconds = said
        .flat_map(|value| value.split(','))
        .filter_map(|preference| preference.split(';').next()?.trim().split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("wait"))
        .and_then(|(_, seconds)| seconds.trim().trim_matches('"').parse::<u32>().ok())?;
    Some(Duration::from_secs(u64::from(seconds)))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key =
        value.to_str().map_err(|_| read::wrong_header("has visible ASCII characters only".to_owned()))?;
    if key.len() > HEADER_KEY_BYTES_MAX {
        return Err(read::wrong_header(format!("has at most {HEADER_KEY_BYTES_MAX} characters")));
    }
    read::check_key(key).map_err(read::wrong_header)?;
    Ok(Some(key))
}
