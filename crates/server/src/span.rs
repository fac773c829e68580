//! The span of one request, for whoever collects traces. While nobody does, it costs a look at a flag.

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, StatusCode};
use redeliver_core::trace::{TRACEPARENT, is_traceparent};
use redeliver_engine::span::TARGET;
use tracing::Span;
use tracing::field::Empty;

use crate::metrics::method_name;

/// The span of this request, within its caller's trace. It has the path's pattern, never the path itself.
pub(crate) fn of(request: &Request) -> Span {
    let path = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str);
    let method = method_name(request.method());
    tracing::info_span!(
        target: TARGET,
        "request",
        otel.name = %format_args!("{method} {path}"),
        otel.kind = "server",
        otel.status_code = Empty,
        traceparent = traceparent(request.headers()),
        http.request.method = method,
        http.route = path,
        http.response.status_code = Empty,
    )
}

/// Writes down how it was answered.
pub(crate) fn end(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", u64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}

/// The trace that a request belongs to, if its caller says so as W3C writes it.
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<&str> {
    headers.get(TRACEPARENT)?.to_str().ok().filter(|text| is_traceparent(text))
}
