//! `GET /v1/campaigns/{campaign}/forecast`: when it would be done. Writes nothing.

use axum::Json;
use axum::extract::State;
use redeliver_core::campaign::Forecast;
use serde::Serialize;
use utoipa::ToSchema;

use super::find;
use crate::Server;
use crate::auth::Caller;
use crate::input::{Params, Segment};
use crate::openapi::Acted;
use crate::problem::Problem;

/// What is still to be planned, planned.
#[derive(Serialize, ToSchema)]
pub struct ForecastView {
    /// All of it in a sentence.
    pub sentence: String,
    /// Prospects that would be planned: those that have not been.
    pub prospects: u64,
    /// Their mails.
    pub mails: u64,
    /// Prospects for whose last steps there is no room.
    pub without_room: u64,
    /// When the first goes out.
    #[schema(format = DateTime)]
    pub first_at: Option<String>,
    /// When the last goes out, if nothing is retried.
    #[schema(format = DateTime)]
    pub last_at: Option<String>,
    /// Each step by itself.
    pub steps: Vec<StepView>,
    /// Mails on each local day.
    pub days: Vec<DayView>,
}

/// One step of a forecast.
#[derive(Serialize, ToSchema)]
pub struct StepView {
    /// Its number.
    pub step: u32,
    /// Its mails.
    pub mails: u64,
    /// When the first goes out.
    #[schema(format = DateTime)]
    pub first_at: Option<String>,
    /// When the last goes out.
    #[schema(format = DateTime)]
    pub last_at: Option<String>,
}

/// One local day of a forecast.
#[derive(Serialize, ToSchema)]
pub struct DayView {
    /// Which day.
    #[schema(format = Date)]
    pub date: String,
    /// Its mails.
    pub mails: u64,
}

impl ForecastView {
    /// A forecast as callers see it.
    pub(crate) fn of(forecast: &Forecast) -> Self {
        let step = |(index, step): (usize, &redeliver_core::campaign::StepForecast)| StepView {
            step: index as u32 + 1,
            mails: step.mails,
            first_at: step.first_at.map(|at| at.to_string()),
            last_at: step.last_at.map(|at| at.to_string()),
        };
        let day = |(day, mails): (&redeliver_core::calendar::Day, &u64)| DayView {
            date: day.to_string(),
            mails: *mails,
        };
        Self {
            sentence: sentence(forecast),
            prospects: forecast.prospects,
            mails: forecast.mails,
            without_room: forecast.without_room,
            first_at: forecast.first_at.map(|at| at.to_string()),
            last_at: forecast.last_at.map(|at| at.to_string()),
            steps: forecast.steps.iter().enumerate().map(step).collect(),
            days: forecast.days.iter().map(day).collect(),
        }
    }
}

/// A forecast in a sentence.
pub(crate) fn sentence(forecast: &Forecast) -> String {
    let room = match forecast.without_room {
        0 => String::new(),
        without => format!("; there is no room for the last steps of {without} prospects"),
    };
    match forecast.days.last_key_value() {
        Some((day, _)) => {
            let weekday = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
                .get(day.weekday() as usize)
                .copied()
                .unwrap_or_default();
            format!("{} mails are done on {weekday}, {day}{room}", grouped(forecast.mails))
        }
        None => format!("there is nothing left to plan{room}"),
    }
}

/// A number with a comma between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Say when a campaign would be done, without writing anything
#[utoipa::path(get, path = "/v1/campaigns/{campaign}/forecast", operation_id = "forecast_campaign", tag = "campaigns", params(("campaign" = String, Path)),
    responses((status = 200, description = "What is still to be planned, planned", body = ForecastView), Acted))]
pub async fn forecast(
    State(server): State<Server>,
    caller: Caller,
    Segment(campaign): Segment,
    params: Params,
) -> Result<Json<ForecastView>, Problem> {
    params.finish()?;
    find(&server, &caller, &campaign).await?;
    Ok(Json(ForecastView::of(&server.engine.forecast_campaign(&campaign).await?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
