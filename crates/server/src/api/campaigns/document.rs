//! `/api/campaigns/{campaign}/schedule`: the same under the path and the names of those who had a scheduler of their own.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use redeliver_core::{Message, State as Standing};
use redeliver_engine::campaign::{CampaignError, ScheduledMail, Scheduling};
use redeliver_engine::campaigns::CampaignRecord;
use serde::Serialize;
use utoipa::ToSchema;

use super::{find, place};
use crate::Server;
use crate::api::messages::list::page_len;
use crate::auth::Caller;
use crate::input::{Params, Segment};
use crate::limits::{PAGE_LEN_MAX, within};
use crate::problem::Problem;

/// What of a request's time is kept for its answer, at most.
const ANSWER_SPAN_MAX: Duration = Duration::from_secs(1);

/// What scheduling came to.
#[derive(Serialize, ToSchema)]
pub struct ScheduleAnswer {
    /// Always `true`.
    pub success: bool,
    /// What it came to.
    pub data: SchedulingResult,
}

/// What scheduling came to.
#[derive(Serialize, ToSchema)]
pub struct SchedulingResult {
    /// Mails that were scheduled.
    pub scheduled: u64,
    /// Mails that had been scheduled before.
    pub skipped: u64,
    /// What could not be scheduled, and why; the first hundred.
    pub errors: Vec<String>,
}

/// Scheduled mails.
#[derive(Serialize, ToSchema)]
pub struct ScheduledEmails {
    /// Always `true`.
    pub success: bool,
    /// The mails, in the order of enrolment.
    pub data: Vec<ScheduledEmail>,
    /// What `after` is for those that follow.
    pub next: Option<String>,
}

/// One mail.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledEmail {
    /// Which message.
    pub id: String,
    /// Whose.
    pub workspace_id: String,
    /// Which campaign.
    pub campaign_id: String,
    /// Whom it goes to.
    pub prospect_id: String,
    /// What its keys call the campaign.
    pub sequence_id: String,
    /// Which step.
    pub step_number: u32,
    /// `prospect:sequence:step`.
    pub idempotency_key: String,
    /// Where it stands.
    #[schema(pattern = "^(SCHEDULED|SENDING|SENT|RETRY_SCHEDULED|PERMANENTLY_FAILED|CANCELLED)$")]
    pub status: &'static str,
    /// When it was planned to go out.
    #[schema(format = DateTime)]
    pub scheduled_for: String,
    /// Tries so far.
    pub attempts: u32,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When it is tried again, if it failed before.
    #[schema(format = DateTime)]
    pub next_retry_at: Option<String>,
    /// Its Message-ID, once it was sent.
    pub message_id: Option<String>,
    /// The Message-ID of the first mail of its thread, once it was sent.
    pub thread_id: Option<String>,
    /// When it was sent.
    #[schema(format = DateTime)]
    pub sent_at: Option<String>,
}

/// Why not.
#[derive(Serialize, ToSchema)]
pub struct ScheduleRefusal {
    /// Always `false`.
    pub success: bool,
    /// What is wrong.
    pub error: RefusalError,
}

/// What is wrong.
#[derive(Serialize, ToSchema)]
pub struct RefusalError {
    /// In a word.
    pub code: String,
    /// In a sentence.
    pub message: String,
}

/// Schedule a campaign's mails; waits for a schedule that is under way
///
/// What takes longer than a request may is gone on with all the same: 503 with the code `STILL_SCHEDULING`. Said again, it goes on
/// waiting, and nothing is scheduled twice.
#[utoipa::path(post, path = "/api/campaigns/{campaign}/schedule", operation_id = "schedule_campaign", tag = "campaigns", params(("campaign" = String, Path)),
    responses((status = 200, description = "What it came to", body = ScheduleAnswer),
        (status = 401, description = "A key is needed", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "This key may not", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such campaign", body = ScheduleRefusal),
        (status = 409, description = "It doesn't run", body = ScheduleRefusal),
        (status = 422, description = "Some fields are wrong", body = ScheduleRefusal),
        (status = 500, description = "Something went wrong here", body = ScheduleRefusal),
        (status = 503, description = "It is still being scheduled: say it again; or the store does not answer", body = ScheduleRefusal)))]
pub async fn schedule(
    State(server): State<Server>,
    caller: Caller,
    Segment(campaign): Segment,
    params: Params,
) -> Result<Json<ScheduleAnswer>, Refusal> {
    params.finish()?;
    find(&server, &caller, &campaign).await?;
    let engine = &server.engine;
    let scheduling = engine.schedule(&campaign);
    let told = within(engine.clock().as_ref(), wait(server.limits.request_timeout), scheduling).await;
    let Some(told) = told else {
        engine.wake_planner();
        let record = find(&server, &caller, &campaign).await?;
        return Err(Refusal::still_scheduling(&record));
    };
    let Scheduling { scheduled, skipped, unplanned } = told?;
    let data = SchedulingResult { scheduled, skipped, errors: unplanned.told };
    Ok(Json(ScheduleAnswer { success: true, data }))
}

/// How long whoever schedules waits: a little less than a request may take, so that the answer is ours.
fn wait(request_timeout: Duration) -> Duration {
    request_timeout - (request_timeout / 10).min(ANSWER_SPAN_MAX)
}

/// List a campaign's mails under the document's names
#[utoipa::path(get, path = "/api/campaigns/{campaign}/schedule", operation_id = "list_scheduled_emails", tag = "campaigns",
    params(("campaign" = String, Path), ("limit" = Option<u32>, Query, minimum = 1, maximum = 500),
        ("after" = Option<String>, Query, description = "The `next` of the page before", pattern = "^[A-Za-z0-9_-]{16}$")),
    responses((status = 200, description = "At most 500", body = ScheduledEmails),
        (status = 401, description = "A key is needed", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "This key may not", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such campaign", body = ScheduleRefusal),
        (status = 422, description = "Some fields are wrong", body = ScheduleRefusal),
        (status = 500, description = "Something went wrong here", body = ScheduleRefusal),
        (status = 503, description = "It took too long, or the store does not answer", body = ScheduleRefusal)))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    Segment(campaign): Segment,
    mut params: Params,
) -> Result<Json<ScheduledEmails>, Refusal> {
    let limit = params.get("limit", page_len).unwrap_or(PAGE_LEN_MAX);
    let after = params.get("after", place::read).unwrap_or_default();
    params.finish()?;
    let record = find(&server, &caller, &campaign).await?;
    let (mails, next) = server.engine.schedule_of(&record, after, limit).await?;
    // What is gone by its retention is gone from here.
    let view = |mail: ScheduledMail| {
        let message = mail.message?;
        let was_sent = matches!(message.state, Standing::Delivered { .. });
        let status = status(&message);
        Some(ScheduledEmail {
            id: mail.id.to_string(),
            workspace_id: record.workspace.to_string(),
            campaign_id: record.id.to_string(),
            prospect_id: mail.prospect,
            sequence_id: record.definition.sequence_id.clone(),
            step_number: mail.step,
            idempotency_key: mail.key,
            status,
            scheduled_for: message.scheduled_for.to_string(),
            attempts: message.attempts,
            last_error: message.last_error.as_ref().map(|error| error.text.to_string()),
            next_retry_at: (status == "RETRY_SCHEDULED").then(|| message.due_at.to_string()),
            message_id: was_sent.then_some(mail.message_id),
            thread_id: was_sent.then_some(mail.thread_id),
            sent_at: match &message.state {
                Standing::Delivered { at, .. } => Some(at.to_string()),
                _ => None,
            },
        })
    };
    let data = mails.into_iter().filter_map(view).collect();
    Ok(Json(ScheduledEmails { success: true, data, next: next.map(place::behind) }))
}

/// Where a mail stands, in the document's words.
fn status(message: &Message) -> &'static str {
    match &message.state {
        Standing::Waiting { .. } if message.attempts == 0 => "SCHEDULED",
        Standing::Waiting { .. } => "RETRY_SCHEDULED",
        Standing::Claimed(_) | Standing::HandedOff { .. } => "SENDING",
        Standing::Delivered { .. } => "SENT",
        Standing::Dead { .. } => "PERMANENTLY_FAILED",
        Standing::Cancelled { .. } => "CANCELLED",
    }
}

/// A problem in the document's form.
pub struct Refusal {
    problem: Problem,
    /// The document's word for it, where its status doesn't say it.
    code: Option<&'static str>,
}

impl Refusal {
    /// It takes longer than a request may, and goes on.
    fn still_scheduling(record: &CampaignRecord) -> Self {
        let planned = record.ledger.plan.after.min(record.prospects);
        let mut problem = Problem::timed_out();
        problem.detail = format!(
            "{planned} of {} prospects are planned, and the rest is being planned: say it again to go on waiting, nothing is scheduled twice",
            record.prospects
        );
        Self { problem, code: Some("STILL_SCHEDULING") }
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { problem, code: None }
    }
}

impl From<CampaignError> for Refusal {
    fn from(error: CampaignError) -> Self {
        Problem::from(error).into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = self.code.unwrap_or(match self.problem.status() {
            StatusCode::NOT_FOUND => "NOT_FOUND",
            StatusCode::CONFLICT => "INVALID_STATE",
            StatusCode::UNPROCESSABLE_ENTITY => "VALIDATION_ERROR",
            StatusCode::SERVICE_UNAVAILABLE => "SERVICE_UNAVAILABLE",
            _ => "INTERNAL_ERROR",
        });
        let status = self.problem.status();
        let error = RefusalError { code: code.to_owned(), message: self.problem.detail };
        let mut response = (status, Json(ScheduleRefusal { success: false, error })).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
