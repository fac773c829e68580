//! The console: pages for the person who is called when messages don't arrive.
//!
//! Rendered on the server and complete without script. A page is a file here and a template of the same name in
//! `templates/`; [`router`] says which role it takes, and `frame::PAGES` is the navigation that it joins. Nothing here
//! decides what becomes of a message.

mod act;
mod assets;
mod audit;
mod bulk;
mod calendar;
mod campaign;
mod campaigns;
mod chart;
mod cookie;
mod curve;
mod dead;
mod edit;
mod emails;
mod flash;
mod forecast;
mod form;
mod frame;
mod guard;
mod headers;
mod keys;
mod link;
mod live;
mod login;
mod message;
mod messages;
mod moment;
mod overview;
mod page;
mod preview;
mod progress;
mod prospect;
mod queue;
mod refusal;
mod routes;
mod standing;
mod tally;
mod timeline;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use redeliver_engine::access::Role;

use crate::Server;
use guard::{Door, guard};
use live::Live;

pub use cookie::Secure;

/// What every page may need.
#[derive(Clone)]
struct Console {
    server: Server,
    live: Arc<Live>,
    secure: Secure,
}

/// The pages of a server, each behind the role that it takes.
pub fn router(server: Server, secure: Secure) -> Router<Server> {
    let console = Console { server, live: Arc::default(), secure };
    let behind = |least| from_fn_with_state(Door { console: console.clone(), least }, guard);
    let open = Router::new()
        .route("/", get(login::enter))
        .route("/login", get(login::show).post(login::log_in))
        .route("/assets/console.css", get(assets::stylesheet))
        .route("/assets/console.js", get(assets::script))
        .route("/assets/icon.svg", get(assets::icon));
    let looking = Router::new()
        .route("/admin", get(overview::show))
        .route("/admin/", get(login::enter))
        .route("/admin/live", get(live::listen))
        .route("/admin/email-queue", get(queue::show))
        .route("/admin/messages", get(messages::show))
        .route("/admin/messages/{id}", get(message::show))
        .route("/admin/dead-letters", get(dead::show))
        .route("/admin/bulk", get(bulk::show))
        .route("/admin/bulk/{bulk}", get(bulk::one))
        .route("/admin/campaigns", get(campaigns::show))
        .route("/admin/campaigns/{campaign}", get(campaign::show))
        .route("/admin/campaigns/{campaign}/forecast", get(forecast::show))
        .route("/admin/routes", get(routes::show))
        .route("/admin/audit", get(audit::show))
        .route("/admin/{*rest}", get(page::no_such_page))
        .route("/logout", post(login::log_out))
        .route_layer(behind(Role::Viewer));
    let acting = Router::new()
        .route("/admin/messages/{id}/retry", post(act::retry))
        .route("/admin/messages/{id}/body", get(preview::body))
        .route("/admin/messages/{id}/edit", get(edit::show).post(edit::send))
        .route("/admin/messages/{id}/cancel", post(act::cancel))
        .route("/admin/messages/{id}/dismiss", post(act::dismiss))
        .route("/admin/messages/{id}/restore", post(act::restore))
        .route("/admin/bulk", post(bulk::begin))
        .route("/admin/bulk/{bulk}/{word}", post(bulk::tell))
        .route("/admin/campaigns/{campaign}/{word}", post(campaign::tell))
        .route("/admin/campaigns/{campaign}/prospects/{prospect}/{word}", post(prospect::tell))
        .route("/admin/stopped/{scope}/{name}/release", post(routes::let_go))
        .route("/admin/routes/{name}/pause", post(routes::pause))
        .route("/admin/routes/{name}/resume", post(routes::resume))
        .route_layer(behind(Role::Operator));
    let letting_in = Router::new()
        .route("/admin/keys", get(keys::show).post(keys::create))
        .route("/admin/keys/{id}/revoke", post(keys::revoke))
        .route_layer(behind(Role::Admin));
    open.merge(looking).merge(acting).merge(letting_in).layer(from_fn(headers::protect)).with_state(console)
}
