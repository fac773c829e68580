//! What callers are told when something is wrong: RFC 9457 problems, naming the field and what to do.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use redeliver_engine::Unready;
use redeliver_engine::campaign::CampaignError;
use redeliver_engine::edit::EditError;
use redeliver_engine::operate::OperateError;
use redeliver_engine::store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

/// What is wrong with a request, or with us.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// What kind of problem it is: the same for every request that has it.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong with this request, and what to do.
    pub detail: String,
    /// What is wrong with which field: the first 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldProblem>,
    /// When it is worth trying again.
    #[serde(skip)]
    retry_after_s: Option<u32>,
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldProblem {
    /// Which field, such as `email.to[1].address`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

impl FieldProblem {
    /// What is wrong with a field. Both may repeat what a caller sent, so both are cut.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: cut(field.into(), FIELD_BYTES_MAX), problem: cut(problem.into(), PROBLEM_BYTES_MAX) }
    }
}

/// Fields that one answer names, at most.
pub const ERRORS_MAX: usize = 100;

/// Bytes of a field's name and of what is wrong with it, at most.
const FIELD_BYTES_MAX: usize = 200;
const PROBLEM_BYTES_MAX: usize = 1_000;

/// The beginning of a text that is too long.
fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
    text
}

impl Problem {
    fn new(status: StatusCode, kind: &str, title: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:redeliver:problem:{kind}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            errors: Vec::new(),
            retry_after_s: None,
        }
    }

    /// 400: what was sent can't be read at all.
    pub fn unreadable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "unreadable", "The request cannot be read", detail)
    }

    /// 401: nobody knows who asks.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "A key is needed", detail)
    }

    /// 403: whoever asks may not.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "This key may not do that", detail)
    }

    /// 404: there is no such thing, as far as whoever asks may know.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "There is no such thing", detail)
    }

    /// 405: not that way.
    pub fn method_not_allowed() -> Self {
        let detail = "the header Allow names the methods that this path knows";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method", "This path does not know that method", detail)
    }

    /// 408: the body came too slowly.
    pub fn too_slow() -> Self {
        let detail = "the body did not come in time; nothing of it was kept";
        Self::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "The request came too slowly", detail)
    }

    /// 409: it makes no sense as things stand.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", "Things stand otherwise", detail)
    }

    /// 413: more than fits.
    pub fn too_large(bytes_max: usize) -> Self {
        let detail = format!(
            "at most {bytes_max} bytes are taken at once; send many messages as NDJSON, or raise http.body_bytes_max"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The request is too large", detail)
    }

    /// 415: not in this form.
    pub fn unsupported_type(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content-type",
            "The content type is not supported",
            detail,
        )
    }

    /// The same, naming the fields that are to blame.
    pub fn naming(self, mut errors: Vec<FieldProblem>) -> Self {
        errors.truncate(ERRORS_MAX);
        Self { errors, ..self }
    }

    /// 422: it can be read, but fields of it are wrong.
    pub fn invalid(errors: Vec<FieldProblem>) -> Self {
        let detail = match errors.as_slice() {
            [only] => format!("{} {}", only.field, only.problem),
            several if several.len() <= ERRORS_MAX => format!("{} fields are wrong", several.len()),
            many => format!("{} fields are wrong; the first {ERRORS_MAX} are listed", many.len()),
        };
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", "Some fields are wrong", detail);
        problem.naming(errors)
    }

    /// 429: not now.
    pub fn overloaded() -> Self {
        let detail = "too much is being accepted at this moment; nothing of this request was kept";
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "overloaded", "Too much at once", detail);
        Self { retry_after_s: Some(1), ..problem }
    }

    /// 500: our fault.
    pub fn internal() -> Self {
        let detail = "this is a bug; the log has more. If something was to be accepted, say it again with the same key";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Something went wrong here", detail)
    }

    /// 503: it did not come to an end in time.
    pub fn timed_out() -> Self {
        let detail = "it is not known whether it was done: say it again with the same key";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "timed-out", "It took too long", detail);
        Self { retry_after_s: Some(1), ..problem }
    }

    /// 503: the store does not answer.
    pub fn unavailable() -> Self {
        let detail =
            "the store does not answer; if something was to be accepted, say it again with the same key";
        let problem =
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", "The store does not answer", detail);
        Self { retry_after_s: Some(1), ..problem }
    }

    /// 503: all connections are taken.
    pub fn too_many_connections() -> Self {
        let detail =
            "all connections are taken, or all that one address may have; nothing was read of this request";
        let problem =
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "connections", "Too many connections", detail);
        Self { retry_after_s: Some(1), ..problem }
    }

    /// 503: nothing can be accepted now.
    pub fn not_ready(detail: &str) -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", "Not ready", detail);
        Self { retry_after_s: Some(1), ..problem }
    }

    /// The status as HTTP knows it.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<FieldProblem> for Problem {
    fn from(error: FieldProblem) -> Self {
        Self::invalid(vec![error])
    }
}

/// Callers learn what they can do; where the store is and how it is doing is for the log.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(event = "store.failed", error = %error, "a request came to nothing");
        match error {
            StoreError::Unavailable(_) | StoreError::Full(_) | StoreError::Broken(_) => Self::unavailable(),
            StoreError::Damaged(_) | StoreError::Unfit(_) => Self::internal(),
        }
    }
}

/// Which kind of trouble it is; the log has the rest.
impl From<Unready> for Problem {
    fn from(unready: Unready) -> Self {
        Self::not_ready(match unready {
            Unready::Starting => "the store has not confirmed the first heartbeat yet",
            Unready::Silent(_) => "the store confirms no heartbeats",
            Unready::Refused(StoreError::Unavailable(_)) => "the store does not answer",
            Unready::Refused(StoreError::Full(_)) => "the store is full",
            Unready::Refused(StoreError::Damaged(_) | StoreError::Unfit(_)) => "the store is damaged",
            Unready::Refused(StoreError::Broken(_)) => "the store is broken; this process ends",
        })
    }
}

impl From<OperateError> for Problem {
    fn from(error: OperateError) -> Self {
        match error {
            OperateError::NoMessage(id) => Self::not_found(format!("there is no message {id}")),
            OperateError::Unfit(unfit) => Self::conflict(unfit.to_string()),
            // The one thing that a store finds unfit here is a message whose route is gone from the config.
            OperateError::Store(StoreError::Unfit(why)) => Self::conflict(why),
            OperateError::Store(error) => error.into(),
        }
    }
}

impl From<EditError> for Problem {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Uneditable(why) => Self::conflict(why.to_string()),
            // The one thing that a store finds unfit here is a route that is gone from the config.
            EditError::Store(StoreError::Unfit(why)) => Self::conflict(why),
            EditError::Store(error) => error.into(),
        }
    }
}

impl From<CampaignError> for Problem {
    fn from(error: CampaignError) -> Self {
        match error {
            CampaignError::NoCampaign(_) | CampaignError::NoProspect(_) => Self::not_found(error.to_string()),
            CampaignError::Stopped { .. } => Self::conflict(error.to_string()),
            CampaignError::NotNow(why) => Self::conflict(why.to_string()),
            CampaignError::Route(why) => Self::conflict(why),
            CampaignError::Wrong(problems) => Self::invalid(
                problems.into_iter().map(|wrong| FieldProblem::new(wrong.field, wrong.problem)).collect(),
            ),
            // The one thing that a store finds unfit here is a campaign whose route is gone from the config.
            CampaignError::Store(StoreError::Unfit(why)) => Self::conflict(why),
            CampaignError::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let retry_after = self.retry_after_s;
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
