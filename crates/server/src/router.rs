//! Puts the calls together, with what stands before all of them: limits, the guard, and a word for what goes wrong.

use std::any::Any;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::health::Description;
use crate::api::{health, keys, messages, outbox, routes as ways, stats};
use crate::limits::within;
use crate::problem::Problem;
use crate::{Server, auth, console, metrics, openapi};

/// Every call, with its description.
pub(crate) fn calls() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(messages::list::list, messages::submit::submit))
        .routes(routes!(messages::one::get))
        .routes(routes!(messages::one::attempts))
        .routes(routes!(messages::one::explain))
        .routes(routes!(messages::act::retry))
        .routes(routes!(messages::act::cancel))
        .routes(routes!(messages::act::dismiss))
        .routes(routes!(messages::act::restore))
        .routes(routes!(messages::report::report))
        .routes(routes!(ways::list))
        .routes(routes!(ways::pause))
        .routes(routes!(ways::resume))
        .routes(routes!(stats::stats))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(outbox::list))
        .routes(routes!(outbox::retry))
        .routes(routes!(outbox::dismiss))
        .routes(routes!(outbox::dashboard))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(health::openapi))
}

/// The whole face of a server.
pub fn router(server: Server) -> Router {
    let (calls, description) = calls().split_for_parts();
    let description = Description(openapi::document(description, &server.engine).into());
    calls
        .route_layer(middleware::from_fn_with_state(server.clone(), auth::guard))
        .merge(console::router(server.clone(), console::Secure::default()))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(server.clone(), in_time))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(server.clone(), metrics::measure))
        .layer(Extension(description))
        .layer(set(header::CACHE_CONTROL, "no-store"))
        .layer(set(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .with_state(server)
}

fn set(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
}

async fn no_such_path() -> Problem {
    Problem::not_found("there is nothing at this path: GET /openapi.json has all of them")
}

async fn no_such_method() -> Problem {
    Problem::method_not_allowed()
}

/// Answers for a call that has not begun to answer in time.
async fn in_time(State(server): State<Server>, request: Request, next: Next) -> Response {
    let answer =
        within(server.engine.clock().as_ref(), server.limits.request_timeout, next.run(request)).await;
    answer.unwrap_or_else(|| Problem::timed_out().into_response())
}

fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    Problem::internal().into_response()
}
