//! Reads what a form sends: small, in time, and from a page of our own.

use axum::body::Body;
use axum::extract::FromRequest;
use axum::http::{HeaderMap, Request};
use http_body_util::{BodyExt, Limited};

use crate::problem::Problem;
use crate::{Server, limits};

/// Bytes of a form, at most, unless it carries a message.
pub(super) const BYTES_MAX: usize = 32 * 1024;

/// The fields of a form.
#[derive(Clone, Default)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads the form in a body of at most so many bytes.
    pub(super) async fn read(
        server: &Server,
        headers: &HeaderMap,
        body: Body,
        bytes_max: usize,
    ) -> Result<Self, Problem> {
        check_origin(headers)?;
        let collected = limits::within(
            server.engine.clock().as_ref(),
            server.limits.body_timeout,
            Limited::new(body, bytes_max).collect(),
        );
        let collected = collected.await.ok_or_else(Problem::too_slow)?;
        let bytes = collected.map_err(|_| Problem::too_large(bytes_max))?.to_bytes();
        let mut request = Request::post("/").body(Body::from(bytes)).map_err(|_| Problem::internal())?;
        *request.headers_mut() = headers.clone();
        match axum::Form::from_request(request, &()).await {
            Ok(axum::Form(fields)) => Ok(Self(fields)),
            Err(_) => Err(Problem::unreadable("the request is not a form")),
        }
    }

    /// A field's text; empty if there is none.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text)
    }

    /// All texts of a field that is there several times.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, text)| text.as_str())
    }
}

/// Refuses what a browser says was sent by a page of another site. The token in the form is what holds; this also
/// keeps others from logging somebody in as themselves.
fn check_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    match site {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(Problem::forbidden("the form was submitted from another site")),
    }
}
