//! `GET /v1/messages`: lists messages, newest first, page by page.

use axum::Json;
use axum::extract::State;
use redeliver_engine::search::Found;
use serde::Serialize;
use utoipa::ToSchema;

use super::cursor;
use crate::Server;
use crate::api::view::MessageView;
use crate::auth::Caller;
use crate::input::Params;
use crate::limits::{PAGE_LEN, PAGE_LEN_MAX};
use crate::openapi::Looked;
use crate::problem::Problem;
use crate::search;

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
        ("recipient" = Option<String>, Query, description = "In an e-mail's address, or in an attribute of what is no e-mail; has no index, so that a page may have few of many", pattern = "\\S"),
        ("error" = Option<String>, Query, description = "In the last error; has no index, so that a page may have few of many", pattern = "\\S"),
        ("fingerprint" = Option<String>, Query, description = "Of the last error, as the groups of dead letters have it"),
        ("since" = Option<String>, Query, description = "Accepted then or later: a time, or how long ago, such as `24h`", pattern = "^([0-9]{1,4}h|[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)$"),
        ("before" = Option<String>, Query, description = "Accepted before: a time, or how long ago, such as `24h`", pattern = "^([0-9]{1,4}h|[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)$"),
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
    let limit = params.get("limit", page_len).unwrap_or(PAGE_LEN);
    let after = params.get("after", cursor::read);
    let search = search::read(&mut params, &caller, now);
    params.finish()?;
    let found = match search {
        Some(search) => search.find(&server.engine, after, limit).await?,
        None => Found::default(),
    };
    let view = |message| MessageView::of(message, &server.engine);
    let items = found.messages.iter().map(view).collect();
    Ok(Json(Page { items, next: found.next.as_ref().map(cursor::behind) }))
}

/// How many at once, as somebody wants it.
pub(crate) fn page_len(text: &str) -> Result<usize, String> {
    let len = text.parse().ok().filter(|len| (1..=PAGE_LEN_MAX).contains(len));
    len.ok_or_else(|| format!("is a number between 1 and {PAGE_LEN_MAX}, not {text:?}"))
}
