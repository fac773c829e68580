//! `GET /v1/messages`: lists messages, newest first, page by page.

use axum::Json;
use axum::extract::State;
use redeliver_core::Lane;
use redeliver_core::status::Status;
use redeliver_engine::store::{Filter, StatusAt};
use serde::Serialize;
use utoipa::ToSchema;

use super::cursor;
use crate::Server;
use crate::api::view::MessageView;
use crate::auth::Caller;
use crate::input::{Params, query};
use crate::limits::{PAGE_LEN, PAGE_LEN_MAX};
use crate::openapi::Looked;
use crate::problem::Problem;

/// One page of messages.
#[derive(Serialize, ToSchema)]
pub struct Page {
    /// The messages, newest first, without what they carry.
    pub items: Vec<MessageView>,
    /// Where the next page begins; `null` if this was the last.
    pub next: Option<String>,
}

/// List messages, newest first
#[utoipa::path(get, path = "/v1/messages", operation_id = "list_messages", tag = "messages",
    params(
        ("status" = Option<String>, Query, pattern = "^(scheduled|due|retrying|held|sending|handed_off|delivered|dead|cancelled)$"),
        ("route" = Option<String>, Query),
        ("workspace" = Option<String>, Query),
        ("priority" = Option<String>, Query, pattern = "^(critical|high|medium|low)$"),
        ("lane" = Option<String>, Query, description = "Another word for priority", pattern = "^(critical|high|medium|low)$"),
        ("key" = Option<String>, Query),
        ("with_dismissed" = Option<bool>, Query, description = "Dead ones that were put away, too"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 500),
        ("after" = Option<String>, Query, description = "The `next` of the page before", pattern = "^[A-Za-z0-9_-]{22}$"),
    ),
    responses((status = 200, description = "A page", body = Page), Looked))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page>, Problem> {
    let now = server.engine.clock().now();
    let status =
        params.get("status", |word| query::word(word, Status::from_name, &Status::ALL.map(Status::name)));
    let lane = |word: &str| query::word(word, Lane::from_name, &Lane::ALL.map(Lane::name));
    let limit = params.get("limit", page_len).unwrap_or(PAGE_LEN);
    let filter = Filter {
        workspace: params.text("workspace").map(Into::into),
        route: params.text("route").map(Into::into),
        lane: params.get("priority", lane).or(params.get("lane", lane)),
        status: status.map(|status| StatusAt { status, now }),
        key: params.text("key").map(Into::into),
        with_dismissed: params.get("with_dismissed", query::flag).unwrap_or_default(),
        after: params.get("after", cursor::read),
        // One more tells whether there is another page.
        limit: limit + 1,
        ..Filter::default()
    };
    params.finish()?;
    if filter.workspace.as_deref().is_some_and(|asked| !caller.reaches(asked)) {
        return Ok(Json(Page { items: Vec::new(), next: None }));
    }
    let filter = Filter { workspace: filter.workspace.or(caller.workspace), ..filter };
    let mut messages = server.engine.store().list(filter).await?;
    let has_more = messages.len() > limit;
    messages.truncate(limit);
    let next = messages.last().filter(|_| has_more).map(|last| cursor::behind(&last.id));
    let view = |message| MessageView::of(message, &server.engine);
    Ok(Json(Page { items: messages.iter().map(view).collect(), next }))
}

fn page_len(text: &str) -> Result<usize, String> {
    let len = text.parse().ok().filter(|len| (1..=PAGE_LEN_MAX).contains(len));
    len.ok_or_else(|| format!("is a number between 1 and {PAGE_LEN_MAX}, not {text:?}"))
}
