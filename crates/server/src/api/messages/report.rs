//! `POST /v1/messages/{id}/report`: the word of an outside worker about a message that was handed off to it.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use redeliver_core::attempt::AttemptId;
use redeliver_core::time::parse_span;
use redeliver_core::{Failure, Outcome};
use serde::Serialize;
use utoipa::ToSchema;

use super::find;
use crate::Server;
use crate::api::view::MessageView;
use crate::auth::Caller;
use crate::input::path::no_message;
use crate::input::{Fields, Id, Params, body, query};
use crate::openapi::{NewReport, Reported};
use crate::problem::Problem;

/// What a report came to.
#[derive(Serialize, ToSchema)]
pub struct ReportAnswer {
    /// Whether it decided the try; otherwise it is kept in the history and changes nothing.
    pub applied: bool,
    /// How the message stands now.
    pub message: MessageView,
}

#[derive(Copy, Clone)]
enum Word {
    Delivered,
    Failed,
    Refused,
}

/// Report what became of a message that was handed off
///
/// Another attempt's report is recorded and changes nothing. Without `attempt_id` it counts once, and only while the
/// message is handed off.
#[utoipa::path(post, path = "/v1/messages/{id}/report", operation_id = "report_message", tag = "messages", params(("id" = String, Path)),
    request_body = NewReport,
    responses((status = 200, description = "It is recorded", body = ReportAnswer), Reported))]
pub async fn report(
    State(server): State<Server>,
    caller: Caller,
    Id(id): Id,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<ReportAnswer>, Problem> {
    params.finish()?;
    let (attempt, outcome) = body::object(&server, &headers, body, read).await?;
    find(&server, &caller, &id).await?;
    let outcome = outcome.ok_or_else(Problem::internal)?;
    let applied = server.engine.report(&id, attempt.as_ref(), &outcome).await?;
    let message = server.engine.store().get(id.clone()).await?.ok_or_else(|| no_message(&id))?;
    Ok(Json(ReportAnswer { applied, message: MessageView::of(&message, &server.engine) }))
}

fn read(fields: &mut Fields<'_>) -> (Option<AttemptId>, Option<Outcome>) {
    let attempt = fields.parse("attempt_id", |text: String| text.parse::<AttemptId>());
    let word = fields.parse("outcome", |word: String| {
        let find = |word: &str| match word {
            "delivered" => Some(Word::Delivered),
            "failed" => Some(Word::Failed),
            "refused" => Some(Word::Refused),
            _ => None,
        };
        query::word(&word, find, &["delivered", "failed", "refused"])
    });
    if word.is_none() && fields.raw("outcome").is_none() {
        fields.wrong("outcome", "is missing");
    }
    let text: Option<String> = fields.get("error");
    let code: Option<String> = fields.get("error_code");
    let retry_after =
        fields.parse("retry_after", |text: String| parse_span(&text).map_err(|error| error.to_string()));
    let failure = Failure::new(text.as_deref().unwrap_or("reported without an error"));
    let failure = Failure { code: code.map(|code| Failure::new(code).text), retry_after, ..failure };
    let outcome = word.map(|word| match word {
        Word::Delivered => Outcome::Delivered { receipt: None },
        Word::Failed => Outcome::Failed(failure),
        Word::Refused => Outcome::Refused(failure),
    });
    (attempt, outcome)
}
