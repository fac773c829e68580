//! `GET /v1/audit`: what people did, newest first, page by page.

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use redeliver_core::change::Audit;
use redeliver_engine::Engine;
use redeliver_engine::store::{Deed, DeedFilter, StoreError};
use serde::Serialize;
use utoipa::ToSchema;

use super::messages::cursor::CODE;
use super::messages::list::page_len;
use crate::Server;
use crate::auth::Caller;
use crate::input::Params;
use crate::limits::PAGE_LEN;
use crate::openapi::Looked;
use crate::problem::Problem;

/// What people did.
#[derive(Serialize, ToSchema)]
pub struct Deeds {
    /// Newest first.
    pub items: Vec<DeedView>,
    /// Where the next page begins; `null` if this was the last.
    pub next: Option<String>,
}

/// One thing that somebody did.
#[derive(Serialize, ToSchema)]
pub struct DeedView {
    /// Who: the name of a key.
    pub actor: String,
    /// What, in a word.
    pub action: &'static str,
    /// To what: a message, a route, a key.
    pub subject: String,
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// What else is to be known, such as the fields that were corrected.
    pub detail: Option<String>,
}

impl DeedView {
    /// A deed as callers see it.
    fn of(deed: &Audit) -> Self {
        Self {
            actor: deed.actor.to_string(),
            action: deed.action,
            subject: deed.subject.to_string(),
            at: deed.at.to_string(),
            detail: deed.detail.as_ref().map(ToString::to_string),
        }
    }
}

/// List what people did, newest first
#[utoipa::path(get, path = "/v1/audit", operation_id = "list_audit", tag = "audit",
    params(
        ("actor" = Option<String>, Query, description = "Who did it: the name of a key"),
        ("action" = Option<String>, Query, description = "What was done, in a word, such as `retry`"),
        ("subject" = Option<String>, Query, description = "To what: a message's id, `route:NAME`, `bulk:ID`, …"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 500),
        ("after" = Option<String>, Query, description = "The `next` of the page before", pattern = "^[A-Za-z0-9_-]{11}$"),
    ),
    responses((status = 200, description = "A page", body = Deeds), Looked))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Deeds>, Problem> {
    let limit = params.get("limit", page_len).unwrap_or(PAGE_LEN);
    let filter = wanted(&mut params, limit);
    params.finish()?;
    caller.reaches_all()?;
    let (deeds, next) = page(&server.engine, filter).await?;
    Ok(Json(Deeds { items: deeds.iter().map(|deed| DeedView::of(&deed.audit)).collect(), next }))
}

/// Which deeds somebody wants, so many of them.
pub(crate) fn wanted(params: &mut Params, limit: usize) -> DeedFilter {
    let mut text = |name: &'static str| params.text(name).map(Into::into);
    let (actor, action, subject) = (text("actor"), text("action"), text("subject"));
    DeedFilter { actor, action, subject, after: params.get("after", read), limit }
}

/// One page of deeds, and where the next one begins.
pub(crate) async fn page(
    engine: &Engine,
    filter: DeedFilter,
) -> Result<(Vec<Deed>, Option<String>), StoreError> {
    let len = filter.limit;
    // One more tells whether there is another page.
    let mut deeds = engine.store().deeds(DeedFilter { limit: len + 1, ..filter }).await?;
    let has_more = deeds.len() > len;
    deeds.truncate(len);
    let next = deeds.last().filter(|_| has_more).map(|deed| behind(deed.number));
    Ok((deeds, next))
}

/// The cursor behind the deed of this number: opaque, so that nobody builds one.
fn behind(number: u64) -> String {
    CODE.encode(number.to_be_bytes())
}

/// The number that a cursor stands behind.
fn read(text: &str) -> Result<u64, String> {
    let bytes = CODE.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    let number = bytes.map(u64::from_be_bytes);
    number.ok_or_else(|| "is no cursor: give the \"next\" of the page before".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_written_and_read_and_anything_else_is_none() {
        for number in [0, 17, u64::MAX] {
            assert_eq!(read(&behind(number)), Ok(number));
        }
        for text in ["", "x", "=", "AAAAAAAAAAAA", "\u{0}"] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
}
