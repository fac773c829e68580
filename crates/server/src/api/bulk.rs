//! `/v1/bulk`: the same done to many messages, after a look at what it would mean; watched, paused, stopped.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use redeliver_core::bulk::{Bulk, IDS_MAX, Pace, RATE_PER_S_MAX, Which};
use redeliver_core::operate::Action;
use redeliver_core::status::Status;
use redeliver_core::{Lane, MessageId, Timestamp};
use redeliver_engine::bulk::Forecast;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

use crate::Server;
use crate::api::messages::cursor;
use crate::auth::Caller;
use crate::input::{Params, Segment, body, query};
use crate::openapi::{Acted, Looked, LookedUp, NewBulk, Sent};
use crate::problem::{FieldProblem, Problem};
use crate::search::time;

/// Messages in a second where nobody says.
pub(crate) const RATE_PER_S: u32 = 50;

/// How many are listed at once.
const LISTED_MAX: usize = 100;

/// How often a record that keeps changing is looked at again, and how often others' operations are looked past.
const LOOKS_MAX: usize = 8;

const ACTIONS: [Action; 3] = [Action::Retry, Action::Cancel, Action::Dismiss];

/// Bulk operations.
#[derive(Serialize, ToSchema)]
pub struct Bulks {
    /// Newest first.
    pub items: Vec<BulkView>,
    /// Where the next page begins; `null` if this was the last.
    pub next: Option<String>,
}

/// One bulk operation.
#[derive(Serialize, ToSchema)]
pub struct BulkView {
    /// Which.
    pub id: String,
    /// What is done.
    #[schema(pattern = "^(retry|cancel|dismiss)$")]
    pub action: &'static str,
    /// Where it stands.
    #[schema(pattern = "^(running|paused|stopped|done)$")]
    pub standing: &'static str,
    /// Why it stopped by itself.
    pub why: Option<String>,
    /// Who wanted it.
    pub actor: String,
    /// To which messages.
    #[schema(value_type = Object)]
    pub filter: Which,
    /// Messages in a second, at most.
    pub rate_per_s: u32,
    /// Whether it goes in stages of 1, 10 and 100 first.
    pub canary: bool,
    /// The stage that it is in: 1, 2, 3, or 4 for all the others.
    pub stage: usize,
    /// How many it was done to.
    pub done: u64,
    /// How many were no longer as they should be.
    pub skipped: u64,
    /// How many there were to do when it began, once they have been counted.
    pub total: Option<u64>,
    /// Whether there may be more than were counted.
    pub total_at_least: bool,
    /// How many of them are left; null before they have been counted, and where there may be more than were counted.
    pub left: Option<u64>,
    /// How many it has done in a second so far, pauses left out; null in the first second.
    pub pace_per_s: Option<f64>,
    /// Since when.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When something happened last.
    #[schema(format = DateTime)]
    pub updated_at: String,
}

/// What a bulk operation would mean.
#[derive(Serialize, ToSchema)]
pub struct ForecastView {
    /// `true`: nothing was done.
    pub dry_run: bool,
    /// How many messages fit.
    pub count: usize,
    /// Whether there may be more than were counted.
    pub at_least: bool,
    /// When the oldest of them was accepted.
    #[schema(format = DateTime)]
    pub oldest_at: Option<String>,
    /// When the newest of them was accepted.
    #[schema(format = DateTime)]
    pub newest_at: Option<String>,
    /// Tries that those which were counted may take in all, at most; 0 where nothing is tried.
    pub attempts_max: u64,
    /// How long those which were counted take at this rate.
    pub seconds: u64,
}

/// Either.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Answered {
    /// It was only asked what it would mean.
    Forecast(ForecastView),
    /// It has begun.
    Begun(Box<BulkView>),
}

/// Which messages, as callers write it.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Asked {
    pub(crate) status: Option<String>,
    pub(crate) route: Option<String>,
    pub(crate) workspace: Option<String>,
    pub(crate) priority: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) recipient: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) since: Option<String>,
    pub(crate) before: Option<String>,
}

/// What somebody wants done.
pub(crate) struct Wanted {
    pub(crate) action: Action,
    pub(crate) asked: Asked,
    pub(crate) ids: Vec<String>,
    pub(crate) pace: Pace,
}

impl BulkView {
    /// An operation as callers see it.
    pub(crate) fn of(bulk: &Bulk) -> Self {
        Self {
            id: bulk.id.to_string(),
            action: bulk.action.name(),
            standing: bulk.standing.name(),
            why: bulk.why.as_ref().map(ToString::to_string),
            actor: bulk.actor.to_string(),
            filter: bulk.which.clone(),
            rate_per_s: bulk.rate_per_s,
            canary: bulk.is_careful,
            stage: bulk.stage + 1,
            done: bulk.done,
            skipped: bulk.skipped,
            total: bulk.total.map(|total| total.count),
            total_at_least: bulk.total.is_some_and(|total| total.is_least),
            left: bulk.left(),
            pace_per_s: bulk.pace_per_s().map(|pace| (pace * 10.0).round() / 10.0),
            created_at: bulk.created_at.to_string(),
            updated_at: bulk.updated_at.to_string(),
        }
    }
}

impl ForecastView {
    /// What it would mean, as callers see it.
    pub(crate) fn of(forecast: &Forecast, bulk: &Bulk) -> Self {
        Self {
            dry_run: true,
            count: forecast.count,
            at_least: forecast.is_least,
            oldest_at: forecast.oldest_at.map(|at| at.to_string()),
            newest_at: forecast.newest_at.map(|at| at.to_string()),
            attempts_max: if bulk.action == Action::Retry { forecast.attempts_max } else { 0 },
            seconds: (forecast.count as u64).div_ceil(u64::from(bulk.rate_per_s.max(1))),
        }
    }
}

/// List bulk operations, newest first, 100 at a time
#[utoipa::path(get, path = "/v1/bulk", operation_id = "list_bulk", tag = "bulk",
    params(("after" = Option<String>, Query, description = "The `next` of the page before", pattern = "^[A-Za-z0-9_-]{22}$")),
    responses((status = 200, description = "A page", body = Bulks), Looked))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Bulks>, Problem> {
    let after = params.get("after", cursor::read);
    params.finish()?;
    let (bulks, next) = page(&server, &caller, after).await?;
    Ok(Json(Bulks { items: bulks.iter().map(BulkView::of).collect(), next }))
}

/// Do the same to many messages, or find out what it would mean
#[utoipa::path(post, path = "/v1/bulk", operation_id = "begin_bulk", tag = "bulk", request_body = NewBulk,
    responses((status = 200, description = "What it would mean; nothing was done", body = ForecastView),
        (status = 202, description = "It has begun", body = BulkView), Sent))]
pub async fn begin(
    State(server): State<Server>,
    caller: Caller,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Answered>), Problem> {
    params.finish()?;
    let (wanted, is_dry) = body::object(&server, &headers, body, |fields| {
        let known = ACTIONS.map(Action::name);
        let find = |word: &str| ACTIONS.into_iter().find(|action| action.name() == word);
        let action = fields.parse("action", |word: String| query::word(&word, find, &known));
        if action.is_none() && fields.raw("action").is_none() {
            fields.wrong("action", "is missing");
        }
        // A list would be taken for its fields in their order.
        let is_list = fields.raw("filter").is_some_and(|filter| filter.get().starts_with('['));
        if is_list {
            fields.wrong("filter", "is an object");
        }
        let asked: Asked = fields.get("filter").filter(|_| !is_list).unwrap_or_default();
        let ids: Vec<String> = fields.get("ids").unwrap_or_default();
        let rate_per_s = fields.parse("rate_per_s", whole_rate).unwrap_or(RATE_PER_S);
        let is_careful = fields.get("canary").unwrap_or_default();
        let is_dry: bool = fields.get("dry_run").unwrap_or_default();
        let action = action.unwrap_or(Action::Dismiss);
        (Wanted { action, asked, ids, pace: Pace { rate_per_s, is_careful } }, is_dry)
    })
    .await?;
    let bulk = plan(&server, &caller, wanted)?;
    if is_dry {
        let forecast = server.engine.forecast(&bulk).await?;
        return Ok((StatusCode::OK, Json(Answered::Forecast(ForecastView::of(&forecast, &bulk)))));
    }
    let bulk = start(&server, bulk).await?;
    Ok((StatusCode::ACCEPTED, Json(Answered::Begun(Box::new(BulkView::of(&bulk))))))
}

/// Look how far a bulk operation has come
#[utoipa::path(get, path = "/v1/bulk/{bulk}", operation_id = "get_bulk", tag = "bulk", params(("bulk" = String, Path)),
    responses((status = 200, description = "How far", body = BulkView), LookedUp))]
pub async fn get(
    State(server): State<Server>,
    caller: Caller,
    Segment(id): Segment,
    params: Params,
) -> Result<Json<BulkView>, Problem> {
    params.finish()?;
    Ok(Json(BulkView::of(&find(&server, &caller, &id).await?)))
}

/// Have a bulk operation wait
#[utoipa::path(post, path = "/v1/bulk/{bulk}/pause", operation_id = "pause_bulk", tag = "bulk", params(("bulk" = String, Path)),
    responses((status = 200, description = "It waits", body = BulkView), Acted))]
pub async fn pause(
    state: State<Server>,
    caller: Caller,
    id: Segment,
    params: Params,
) -> Result<Json<BulkView>, Problem> {
    tell(state, caller, id, params, "pause").await
}

/// Let a bulk operation go on
#[utoipa::path(post, path = "/v1/bulk/{bulk}/resume", operation_id = "resume_bulk", tag = "bulk", params(("bulk" = String, Path)),
    responses((status = 200, description = "It goes on", body = BulkView), Acted))]
pub async fn resume(
    state: State<Server>,
    caller: Caller,
    id: Segment,
    params: Params,
) -> Result<Json<BulkView>, Problem> {
    tell(state, caller, id, params, "resume").await
}

/// End a bulk operation; what is done stays done
#[utoipa::path(post, path = "/v1/bulk/{bulk}/stop", operation_id = "stop_bulk", tag = "bulk", params(("bulk" = String, Path)),
    responses((status = 200, description = "It has ended", body = BulkView), Acted))]
pub async fn stop(
    state: State<Server>,
    caller: Caller,
    id: Segment,
    params: Params,
) -> Result<Json<BulkView>, Problem> {
    tell(state, caller, id, params, "stop").await
}

async fn tell(
    State(server): State<Server>,
    caller: Caller,
    Segment(id): Segment,
    params: Params,
    word: &'static str,
) -> Result<Json<BulkView>, Problem> {
    params.finish()?;
    Ok(Json(BulkView::of(&told(&server, &caller, &id, word).await?)))
}

/// A page of the operations that whoever asks may know of, and where the next one begins. Fewer where many are others'.
pub(crate) async fn page(
    server: &Server,
    caller: &Caller,
    after: Option<MessageId>,
) -> Result<(Vec<Bulk>, Option<String>), Problem> {
    // Their ids are made as those of messages are.
    let next = |after: Option<Arc<str>>| after?.parse::<MessageId>().ok().as_ref().map(cursor::behind);
    let (mut listed, mut after) = (Vec::new(), after.map(|after| Arc::<str>::from(after.to_string())));
    for _ in 0..LOOKS_MAX {
        let bulks = server.engine.store().bulks(after.clone(), LISTED_MAX).await?;
        let is_last = bulks.len() < LISTED_MAX;
        for bulk in bulks {
            let is_seen = sees(caller, &bulk);
            if is_seen && listed.len() == LISTED_MAX {
                return Ok((listed, next(after)));
            }
            after = Some(bulk.id.clone());
            listed.extend(is_seen.then_some(bulk));
        }
        if is_last {
            return Ok((listed, None));
        }
    }
    Ok((listed, next(after)))
}

/// One that whoever asks may know of.
pub(crate) async fn find(server: &Server, caller: &Caller, id: &str) -> Result<Bulk, Problem> {
    let found = server.engine.store().bulk(id.into()).await?;
    found
        .filter(|bulk| sees(caller, bulk))
        .ok_or_else(|| Problem::not_found("there is no such bulk operation"))
}

/// Has one pause, resume or stop, and writes down who said so.
pub(crate) async fn told(
    server: &Server,
    caller: &Caller,
    id: &str,
    word: &'static str,
) -> Result<Bulk, Problem> {
    let action = match word {
        "pause" => "bulk_pause",
        "resume" => "bulk_resume",
        _ => "bulk_stop",
    };
    for _ in 0..LOOKS_MAX {
        let bulk = find(server, caller, id).await?;
        let now = server.engine.clock().now();
        let Some(after) = bulk.told(word, now) else {
            return Err(Problem::conflict(format!("it is {}", bulk.standing.name())));
        };
        let audit = bulk.audit(&caller.name, action, now);
        if server.engine.store().put_bulk(after.clone(), Some(audit)).await? {
            return Ok(after);
        }
    }
    Err(Problem::conflict("it keeps changing: say it again"))
}

/// An operation as somebody wants it, checked and not begun.
pub(crate) fn plan(server: &Server, caller: &Caller, wanted: Wanted) -> Result<Bulk, Problem> {
    let now = server.engine.clock().now();
    let which = which(caller, wanted.asked, wanted.ids, now)?;
    let id = server.engine.clock().message_id(now).to_string();
    Ok(Bulk::new(id, caller.name.clone(), wanted.action, which, wanted.pace, now))
}

/// Begins it, and writes down who did.
pub(crate) async fn start(server: &Server, bulk: Bulk) -> Result<Bulk, Problem> {
    let action = match bulk.action {
        Action::Retry => "bulk_retry",
        Action::Cancel => "bulk_cancel",
        Action::Dismiss | Action::Restore => "bulk_dismiss",
    };
    let audit = bulk.audit(&bulk.actor, action, bulk.created_at);
    if !server.engine.store().put_bulk(bulk.clone(), Some(audit)).await? {
        return Err(Problem::internal());
    }
    Ok(bulk)
}

fn sees(caller: &Caller, bulk: &Bulk) -> bool {
    caller.workspace.is_none() || caller.workspace == bulk.which.workspace
}

/// Which messages: none that are accepted from now on, and none that whoever asks may not know of.
fn which(caller: &Caller, asked: Asked, ids: Vec<String>, now: Timestamp) -> Result<Which, Problem> {
    let mut problems = Vec::new();
    let mut wrong = |field: &str, problem: String| problems.push(FieldProblem::new(field, problem));
    if let Some(word) = &asked.status
        && let Err(problem) = query::word(word, Status::from_name, &Status::ALL.map(Status::name))
    {
        wrong("filter.status", problem);
    }
    if let Some(word) = &asked.priority
        && let Err(problem) = query::word(word, Lane::from_name, &Lane::ALL.map(Lane::name))
    {
        wrong("filter.priority", problem);
    }
    let mut when = |field: &str, text: &Option<String>| {
        let parsed = text.as_deref().map(|text| time(text, now)).transpose();
        parsed.map_err(|problem| wrong(field, problem)).ok().flatten()
    };
    let (since, before) = (when("filter.since", &asked.since), when("filter.before", &asked.before));
    if ids.len() > IDS_MAX {
        wrong("ids", format!("are at most {IDS_MAX}: a filter takes any number"));
    }
    if !problems.is_empty() {
        return Err(Problem::invalid(problems));
    }
    if asked.workspace.as_deref().is_some_and(|asked| !caller.reaches(asked)) {
        return Err(Problem::forbidden("this key is for another workspace"));
    }
    // What this very millisecond brought is old enough.
    let end = now.plus(Duration::from_millis(1));
    let name = |text: Option<String>| text.map(Arc::<str>::from);
    Ok(Which {
        ids: ids.into_iter().map(Into::into).collect(),
        status: name(asked.status),
        route: name(asked.route),
        workspace: name(asked.workspace).or_else(|| caller.workspace.clone()),
        priority: name(asked.priority),
        key: name(asked.key),
        recipient: asked.recipient,
        error: asked.error,
        fingerprint: asked.fingerprint,
        since,
        before: Some(before.map_or(end, |before| before.min(end))),
    })
}

/// 20.0 is as whole as 20.
fn whole_rate(said: Number) -> Result<u32, String> {
    let whole = said.as_f64().filter(|number| number.fract() == 0.0);
    let fits = whole.filter(|number| (1.0..=f64::from(RATE_PER_S_MAX)).contains(number));
    rate(fits.map_or(0, |number| number as u32))
}

pub(crate) fn rate(rate: u32) -> Result<u32, String> {
    match rate {
        1..=RATE_PER_S_MAX => Ok(rate),
        _ => Err(format!("is between 1 and {RATE_PER_S_MAX}")),
    }
}
