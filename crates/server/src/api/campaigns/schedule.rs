//! `GET /v1/campaigns/{campaign}/schedule`: its mails, in the order of enrolment, page by page.

use axum::Json;
use axum::extract::State;
use redeliver_core::status::Status;
use redeliver_engine::campaign::ScheduledMail;
use serde::Serialize;
use utoipa::ToSchema;

use super::{find, place};
use crate::Server;
use crate::api::messages::list::page_len;
use crate::auth::Caller;
use crate::input::{Params, Segment};
use crate::limits::PAGE_LEN;
use crate::openapi::LookedUp;
use crate::problem::Problem;

/// One page of a schedule.
#[derive(Serialize, ToSchema)]
pub struct SchedulePage {
    /// The mails, prospect by prospect.
    pub items: Vec<ScheduledView>,
    /// Where the next page begins; `null` if this was the last.
    pub next: Option<String>,
}

/// One scheduled mail.
#[derive(Serialize, ToSchema)]
pub struct ScheduledView {
    /// Which message.
    pub id: String,
    /// `prospect:sequence:step`.
    pub key: String,
    /// The step's number.
    pub step: u32,
    /// Whom it goes to.
    pub prospect_id: String,
    /// When it was planned to go out. Never moves; `null` once the message is gone.
    #[schema(format = DateTime)]
    pub scheduled_for: Option<String>,
    /// When it goes out next.
    #[schema(format = DateTime)]
    pub due_at: Option<String>,
    /// Where it stands; `ended` once the message is gone.
    #[schema(pattern = "^(scheduled|due|retrying|held|sending|handed_off|delivered|dead|cancelled|ended)$")]
    pub status: &'static str,
}

/// List a campaign's mails
#[utoipa::path(get, path = "/v1/campaigns/{campaign}/schedule", operation_id = "list_schedule", tag = "campaigns",
    params(("campaign" = String, Path), ("limit" = Option<u32>, Query, minimum = 1, maximum = 500),
        ("after" = Option<String>, Query, description = "The `next` of the page before", pattern = "^[A-Za-z0-9_-]{16}$")),
    responses((status = 200, description = "A page", body = SchedulePage), LookedUp))]
pub async fn list(
    State(server): State<Server>,
    caller: Caller,
    Segment(campaign): Segment,
    mut params: Params,
) -> Result<Json<SchedulePage>, Problem> {
    let limit = params.get("limit", page_len).unwrap_or(PAGE_LEN);
    let after = params.get("after", place::read).unwrap_or_default();
    params.finish()?;
    let record = find(&server, &caller, &campaign).await?;
    let (mails, next) = server.engine.schedule_of(&record, after, limit).await?;
    let now = server.engine.clock().now();
    let view = |mail: ScheduledMail| ScheduledView {
        id: mail.id.to_string(),
        key: mail.key,
        step: mail.step,
        prospect_id: mail.prospect,
        scheduled_for: mail.message.as_ref().map(|message| message.scheduled_for.to_string()),
        due_at: mail.message.as_ref().map(|message| message.due_at.to_string()),
        status: mail.message.as_ref().map_or("ended", |message| Status::of(message, now).name()),
    };
    Ok(Json(SchedulePage { items: mails.into_iter().map(view).collect(), next: next.map(place::behind) }))
}
