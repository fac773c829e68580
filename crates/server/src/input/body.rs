//! Reads a body whole: no larger, no slower and no more at once than the limits say.

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::OwnedSemaphorePermit;

use super::Fields;
use crate::problem::Problem;
use crate::{Server, limits};

/// A body with the room that it takes up, which is free again when this is dropped.
pub struct Whole {
    /// The bytes, which are text.
    pub text: String,
    _room: OwnedSemaphorePermit,
}

/// What a body says that it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One JSON value.
    Json,
    /// One JSON value a line.
    Ndjson,
}

/// What the headers say that a body is.
pub fn kind(headers: &HeaderMap) -> Result<Kind, Problem> {
    let said =
        |name| headers.get(name).map(|value| value.to_str().unwrap_or("?").trim().to_ascii_lowercase());
    if let Some(encoding) = said(header::CONTENT_ENCODING)
        && encoding != "identity"
    {
        return Err(Problem::unsupported_type(format!("send it as it is, not encoded as {encoding}")));
    }
    let said = said(header::CONTENT_TYPE).unwrap_or_default();
    match said.split(';').next().unwrap_or_default().trim() {
        "application/json" => Ok(Kind::Json),
        "application/x-ndjson" | "application/ndjson" => Ok(Kind::Ndjson),
        "" => Err(Problem::unsupported_type("the header Content-Type is missing: application/json")),
        other => Err(Problem::unsupported_type(format!(
            "it is application/json (or application/x-ndjson where many are sent), not {other}"
        ))),
    }
}

/// The whole body.
pub async fn whole(server: &Server, headers: &HeaderMap, body: Body) -> Result<Whole, Problem> {
    let bytes_max = server.limits.body_bytes_max;
    let said =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let bytes = said.unwrap_or(bytes_max);
    if bytes > bytes_max {
        return Err(Problem::too_large(bytes_max));
    }
    let room = server.room.take(bytes)?;
    let collected = limits::within(
        server.engine.clock().as_ref(),
        server.limits.body_timeout,
        Limited::new(body, bytes_max).collect(),
    )
    .await
    .ok_or_else(Problem::too_slow)?;
    let bytes: Bytes = collected.map_err(|error| unread(&*error, bytes_max))?.to_bytes();
    let text = String::from_utf8(bytes.into()).map_err(|_| Problem::unreadable("it is not UTF-8"))?;
    Ok(Whole { text, _room: room })
}

/// A small JSON object, in a body that says it is one.
pub async fn object<T>(
    server: &Server,
    headers: &HeaderMap,
    body: Body,
    read: impl FnOnce(&mut Fields<'_>) -> T,
) -> Result<T, Problem> {
    if kind(headers)? != Kind::Json {
        return Err(Problem::unsupported_type("it is application/json"));
    }
    let whole = whole(server, headers, body).await?;
    let read = || {
        let mut fields = Fields::of(&whole.text)?;
        let value = read(&mut fields);
        fields.finish().map_err(Problem::invalid)?;
        Ok(value)
    };
    server.parsing.run(whole.text.len(), read).await
}

fn unread(error: &(dyn std::error::Error + 'static), bytes_max: usize) -> Problem {
    match error.is::<LengthLimitError>() {
        true => Problem::too_large(bytes_max),
        false => Problem::unreadable("the body ended before it was whole"),
    }
}
