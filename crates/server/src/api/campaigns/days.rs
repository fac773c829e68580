//! `GET /v1/campaigns/{campaign}/days`: its calendar, what was planned for each day and what went out, beside what the day takes.

use axum::Json;
use axum::extract::State;
use redeliver_engine::campaign::CampaignDay;
use serde::Serialize;
use utoipa::ToSchema;

use super::find;
use crate::Server;
use crate::auth::Caller;
use crate::input::{Params, Segment};
use crate::openapi::Acted;
use crate::problem::Problem;

/// A campaign's calendar.
#[derive(Serialize, ToSchema)]
pub struct CampaignDays {
    /// The zone of its days.
    pub zone: String,
    /// Today there.
    #[schema(format = Date)]
    pub today: String,
    /// Mails that went out, or may have, on all days.
    pub sent: u64,
    /// The days with a mail planned or sent, in order.
    pub items: Vec<CampaignDayView>,
}

/// One day of it.
#[derive(Serialize, ToSchema)]
pub struct CampaignDayView {
    /// Which day.
    #[schema(format = Date)]
    pub date: String,
    /// Mails of the campaign that were planned for it.
    pub planned: u32,
    /// Mails of the campaign that went out, or may have.
    pub sent: u64,
    /// Mails of other campaigns that were planned for it and count with them.
    pub others: u32,
    /// What the day takes of all who count, by its quotas and ramp-ups; `null` if nothing bounds it.
    pub quota: Option<u32>,
}

impl CampaignDayView {
    fn of(day: &CampaignDay) -> Self {
        Self {
            date: day.day.to_string(),
            planned: day.plan.planned,
            sent: day.sent,
            others: day.plan.others,
            quota: day.plan.quota,
        }
    }
}

/// Show a campaign's calendar: what was planned for each day and what went out
#[utoipa::path(get, path = "/v1/campaigns/{campaign}/days", operation_id = "list_campaign_days", tag = "campaigns", params(("campaign" = String, Path)),
    responses((status = 200, description = "The days", body = CampaignDays), Acted))]
pub async fn days(
    State(server): State<Server>,
    caller: Caller,
    Segment(campaign): Segment,
    params: Params,
) -> Result<Json<CampaignDays>, Problem> {
    params.finish()?;
    find(&server, &caller, &campaign).await?;
    let calendar = server.engine.campaign_calendar(&campaign).await?;
    Ok(Json(CampaignDays {
        zone: calendar.zone.name().to_owned(),
        today: calendar.today.to_string(),
        sent: calendar.sent(),
        items: calendar.days.iter().map(CampaignDayView::of).collect(),
    }))
}
