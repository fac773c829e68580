//! Puts the calls together, with what stands before all of them: limits, the guard, and a word for what goes wrong.

use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tracing::Instrument;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{
    audit, bulk, campaigns, dead_letters, destinations, health, instances, keys, messages, outbox,
    routes as ways, senders, stats, suppressions, workspaces,
};
use crate::limits::within;
use crate::metrics::Measured;
use crate::problem::Problem;
use crate::{Server, auth, console, openapi, span};

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
        .routes(routes!(messages::edit::edit))
        .routes(routes!(messages::edit::list))
        .routes(routes!(messages::report::report))
        .routes(routes!(ways::list))
        .routes(routes!(ways::pause))
        .routes(routes!(ways::resume))
        .routes(routes!(destinations::list))
        .routes(routes!(destinations::pause))
        .routes(routes!(destinations::resume))
        .routes(routes!(campaigns::list, campaigns::create))
        .routes(routes!(campaigns::get))
        .routes(routes!(campaigns::prospects::enrol))
        .routes(routes!(campaigns::forecast::forecast))
        .routes(routes!(campaigns::days::days))
        .routes(routes!(campaigns::act::launch))
        .routes(routes!(campaigns::act::pause))
        .routes(routes!(campaigns::act::resume))
        .routes(routes!(campaigns::act::cancel))
        .routes(routes!(campaigns::prospect::get))
        .routes(routes!(campaigns::prospect::pause))
        .routes(routes!(campaigns::prospect::resume))
        .routes(routes!(campaigns::prospect::stop))
        .routes(routes!(campaigns::schedule::list))
        .routes(routes!(campaigns::document::list, campaigns::document::schedule))
        .routes(routes!(workspaces::get, workspaces::put))
        .routes(routes!(workspaces::quotas))
        .routes(routes!(suppressions::list, suppressions::add))
        .routes(routes!(suppressions::remove))
        .routes(routes!(senders::list))
        .routes(routes!(senders::pause))
        .routes(routes!(senders::resume))
        .routes(routes!(stats::stats))
        .routes(routes!(stats::minutes))
        .routes(routes!(instances::list))
        .routes(routes!(dead_letters::list))
        .routes(routes!(bulk::list, bulk::begin))
        .routes(routes!(bulk::get))
        .routes(routes!(bulk::pause))
        .routes(routes!(bulk::resume))
        .routes(routes!(bulk::stop))
        .routes(routes!(audit::list))
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
    server.description.get_or_init(|| openapi::document(description, &server.engine).into());
    calls
        .route_layer(middleware::from_fn_with_state(server.clone(), auth::guard))
        .merge(console::router(server.clone(), console::Secure::default()))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(server.clone(), around))
        .with_state(server)
}

/// What stands around every call. One layer, because each costs every request a copy of all within it.
async fn around(State(server): State<Server>, request: Request, next: Next) -> Response {
    let measured = Measured::begin(&server, &request);
    let span = span::of(&request);
    let answering = AssertUnwindSafe(next.run(request)).catch_unwind().instrument(span.clone());
    let answer = within(server.engine.clock().as_ref(), server.limits.request_timeout, answering).await;
    let mut response = match answer {
        Some(Ok(response)) => response,
        Some(Err(_)) => Problem::internal().into_response(),
        None => Problem::timed_out().into_response(),
    };
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    measured.end(&server, response.status());
    span::end(&span, response.status());
    response
}

async fn no_such_path() -> Problem {
    Problem::not_found("there is nothing at this path: GET /openapi.json has all of them")
}

async fn no_such_method() -> Problem {
    Problem::method_not_allowed()
}
