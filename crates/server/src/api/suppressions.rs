//! `/v1/suppressions`: whom a workspace writes to no more.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use redeliver_core::Timestamp;
use redeliver_core::email::check_address;
use redeliver_engine::campaigns::Suppression;
use serde::Serialize;
use utoipa::ToSchema;

use super::campaigns::{read_workspace, within};
use super::messages::list::page_len;
use crate::Server;
use crate::auth::Caller;
use crate::input::{Params, Segment, body};
use crate::limits::{ARRAY_LEN_MAX, PAGE_LEN};
use crate::openapi::{KeyMade, Looked, LookedUp, SuppressionsBody};
use crate::problem::Problem;

/// The longest reason.
const REASON_BYTES_MAX: usize = 64;

/// Why, where nobody says.
const NO_REASON: &str = "unsubscribed";

/// One page of the list.
#[derive(Serialize, ToSchema)]
pub struct Suppressions {
    /// In the order of their addresses.
    pub items: Vec<SuppressionView>,
    /// What `after` is for those that follow; `null` if these were the last.
    pub next: Option<String>,
}

/// Somebody who wants no more.
#[derive(Serialize, ToSchema)]
pub struct SuppressionView {
    /// Their address.
    pub address: String,
    /// Why, in a word.
    pub reason: String,
    /// Since when.
    #[schema(format = DateTime)]
    pub since: String,
}

/// What became of addresses.
#[derive(Serialize, ToSchema)]
pub struct Suppressed {
    /// Addresses that are new on the list.
    pub added: u64,
    /// Addresses that were there.
    pub known: u64,
}

impl SuppressionView {
    fn of((one, since): &(Suppression, Timestamp)) -> Self {
        Self { address: one.address.clone(), reason: one.reason.to_string(), since: since.to_string() }
    }
}

/// List whom a workspace writes to no more
#[utoipa::path(get, path = "/v1/suppressions", operation_id = "list_suppressions", tag = "campaigns",
    params(("workspace" = Option<String>, Query, pattern = "^[A-Za-z0-9_.-]{1,64}$"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 500),
        ("after" = Option<String>, Query, description = "The `next` of the page before")),
    responses((status = 200, description = "A page", body = Suppressions), Looked))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Suppressions>, Problem> {
    let said = params.get("workspace", read_workspace);
    let limit = params.get("limit", page_len).unwrap_or(PAGE_LEN);
    let after = params.text("after").unwrap_or_default();
    params.finish()?;
    let workspace = within(&caller, said)?;
    let mut found = server.engine.suppressions(&workspace, &after, limit + 1).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|(one, _)| one.address.clone());
    Ok(Json(Suppressions { items: found.iter().map(SuppressionView::of).collect(), next }))
}

/// Put addresses on the list: nothing more goes out to them
#[utoipa::path(post, path = "/v1/suppressions", operation_id = "suppress", tag = "campaigns", request_body = SuppressionsBody,
    responses((status = 200, description = "They are on it", body = Suppressed), KeyMade))]
pub async fn add(
    State(server): State<Server>,
    caller: Caller,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Suppressed>, Problem> {
    params.finish()?;
    let (addresses, reason, workspace) = body::object(&server, &headers, body, |fields| {
        if fields.raw("addresses").is_none() {
            fields.wrong("addresses", "is missing");
        }
        let addresses: Vec<String> = fields.get("addresses").unwrap_or_default();
        if addresses.len() > ARRAY_LEN_MAX {
            fields.wrong("addresses", format!("are at most {ARRAY_LEN_MAX}"));
        }
        for (i, address) in addresses.iter().enumerate() {
            if let Err(wrong) = check_address(address) {
                fields.wrong(format!("addresses[{i}]"), wrong);
            }
        }
        let reason = fields.parse("reason", |reason: String| check_reason(&reason).map(|()| reason));
        let workspace = fields.parse("workspace", |name: String| read_workspace(&name));
        (addresses, reason.unwrap_or_else(|| NO_REASON.to_owned()), workspace)
    })
    .await?;
    let workspace = within(&caller, workspace)?;
    let all = addresses.len() as u64;
    let suppression = |address: String| Suppression { address, reason: reason.as_str().into() };
    let addresses = addresses.into_iter().map(suppression).collect();
    let added = server.engine.suppress(&workspace, addresses, &caller.name).await?;
    Ok(Json(Suppressed { added, known: all.saturating_sub(added) }))
}

/// Take an address off the list: what waited for that is released
#[utoipa::path(delete, path = "/v1/suppressions/{address}", operation_id = "unsuppress", tag = "campaigns",
    params(("address" = String, Path), ("workspace" = Option<String>, Query, pattern = "^[A-Za-z0-9_.-]{1,64}$")),
    responses((status = 204, description = "It is off it"), LookedUp))]
pub async fn remove(
    State(server): State<Server>,
    caller: Caller,
    Segment(address): Segment,
    mut params: Params,
) -> Result<StatusCode, Problem> {
    let said = params.get("workspace", read_workspace);
    params.finish()?;
    let workspace = within(&caller, said)?;
    match server.engine.unsuppress(&workspace, &address, &caller.name).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found("the address is not on the list")),
    }
}

/// A reason is a word.
pub(crate) fn check_reason(reason: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if reason.is_empty() || reason.len() > REASON_BYTES_MAX || !reason.bytes().all(fits) {
        return Err(format!("is a word of 1 to {REASON_BYTES_MAX} small letters, digits and \"_\""));
    }
    Ok(())
}
