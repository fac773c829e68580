//! What is counted and measured. Labels come from closed sets: routes of the config, paths of the router, words of ours.

mod requests;
mod scrape;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use redeliver_core::Name;
use redeliver_engine::Engine;
use redeliver_engine::emit::LATENESS;
use redeliver_engine::store::StoreError;
use tokio::sync::Mutex;

use crate::Server;
use crate::serve::CONNECTIONS_REFUSED;
use requests::{REQUEST_SECONDS, REQUESTS, Requests};
use scrape::Counted;

/// How long counts are told again before the store is asked anew: `/metrics` is open to all, and counting isn't free.
const COUNTS_FOR: Duration = Duration::from_secs(1);

/// How long requests take, in seconds.
const BUCKETS_S: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];

/// How late messages are, in seconds: from what nobody notices to what everybody does.
const LATENESS_S: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0];

/// What `/metrics` tells.
#[derive(Clone, Default)]
pub struct Metrics {
    recorded: Option<PrometheusHandle>,
    counted: Arc<Mutex<Option<Counted>>>,
    /// The routes whose waiting messages are told as the depth of a retry queue.
    retry_routes: Arc<[Name]>,
    requests: Arc<Requests>,
}

impl Metrics {
    /// Records everything that this process counts and measures from now on. Without it, only the store's counts are told.
    pub fn install() -> Self {
        let recorded = recorder()
            .inspect_err(|error| tracing::warn!(event = "metrics.doubted", "nothing is measured: {error}"))
            .ok();
        describe();
        Self { recorded, ..Self::default() }
    }

    /// The same, with `retry_queue_depth` of these routes.
    pub fn with_retry_routes(self, routes: impl IntoIterator<Item = Name>) -> Self {
        Self { retry_routes: routes.into_iter().collect(), ..self }
    }

    /// Everything, as Prometheus reads it.
    pub async fn render(&self, engine: &Engine) -> Result<String, StoreError> {
        let mut text = self.recorded.as_ref().map(PrometheusHandle::render).unwrap_or_default();
        scrape::write_heartbeat_age(&mut text, engine);
        let mut counted = self.counted.lock().await;
        let uptime = engine.clock().uptime();
        let is_fresh = |counted: &Counted| uptime.saturating_sub(counted.at) < COUNTS_FOR;
        if !counted.as_ref().is_some_and(is_fresh) {
            *counted = Some(scrape::count(engine, uptime).await?);
        }
        if let Some(counted) = counted.as_ref() {
            counted.write(&mut text);
            counted.write_depth(&mut text, &self.retry_routes);
        }
        Ok(text)
    }

    /// Drops what has been measured into its buckets; to be called once in a while, whether or not anybody reads it.
    pub fn keep(&self) {
        if let Some(recorded) = &self.recorded {
            recorded.run_upkeep();
        }
    }
}

fn recorder() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new()
        .set_buckets(&BUCKETS_S)?
        .set_buckets_for_metric(Matcher::Full(LATENESS.to_owned()), &LATENESS_S)?
        .install_recorder()
}

fn describe() {
    ::metrics::describe_counter!(CONNECTIONS_REFUSED, "Connections beyond the limits of [http].");
    ::metrics::counter!(CONNECTIONS_REFUSED).increment(0);
    ::metrics::describe_counter!(REQUESTS, "Requests answered.");
    ::metrics::describe_histogram!(
        REQUEST_SECONDS,
        ::metrics::Unit::Seconds,
        "How long answers took to begin."
    );
}

/// A request that is counted and timed.
pub struct Measured {
    method: &'static str,
    path: Option<MatchedPath>,
    start: Duration,
}

impl Measured {
    /// It begins.
    pub fn begin(server: &Server, request: &Request) -> Self {
        let path = request.extensions().get::<MatchedPath>().cloned();
        Self { method: method_name(request.method()), path, start: server.engine.clock().uptime() }
    }

    /// It has been answered.
    pub fn end(self, server: &Server, status: StatusCode) {
        let took = server.engine.clock().uptime().saturating_sub(self.start);
        let path = self.path.as_ref().map_or("other", MatchedPath::as_str);
        server.metrics.requests.count(self.method, path, status.as_u16(), took);
    }
}

/// A method's name; those that somebody made up are all alike.
pub(crate) fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
