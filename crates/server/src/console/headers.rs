//! What every answer of the console tells the browser: run nothing and load nothing but our own, and keep nothing.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

/// Nothing inline, nothing from elsewhere, in nobody's frame.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'; connect-src 'self'; frame-src 'self'";

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// What an answer carries within that has a stricter policy of its own, and may stand in a frame of ours.
#[derive(Copy, Clone, Debug)]
pub(super) struct OwnPolicy;

/// Puts the headers on whatever the answer is.
pub(super) async fn protect(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let has_own = response.extensions().get::<OwnPolicy>().is_some();
    for (name, value) in HEADERS {
        if has_own && response.headers().contains_key(&name) {
            continue;
        }
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
