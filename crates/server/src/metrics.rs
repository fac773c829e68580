//! What is counted and measured. Labels come from closed sets: routes of the config, paths of the router, words of ours.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use redeliver_core::{Lane, Name};
use redeliver_engine::Engine;
use redeliver_engine::store::{Count, StoreError};
use tokio::sync::Mutex;

use crate::Server;

/// How long counts are told again before the store is asked anew: `/metrics` is open to all, and counting isn't free.
const COUNTS_FOR: Duration = Duration::from_secs(1);

/// How long things take here, in seconds.
const BUCKETS_S: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];

/// What `/metrics` tells.
#[derive(Clone, Default)]
pub struct Metrics {
    recorded: Option<PrometheusHandle>,
    counted: Arc<Mutex<Option<Counted>>>,
}

struct Counted {
    /// The engine's uptime then.
    at: Duration,
    counts: Vec<Count>,
    /// How long the first due message of a lane has been due.
    overdue: Vec<(Name, Lane, Duration)>,
}

impl Metrics {
    /// Records everything that this process counts and measures from now on. Without it, only the store's counts are told.
    pub fn install() -> Self {
        let recorded = PrometheusBuilder::new()
            .set_buckets(&BUCKETS_S)
            .and_then(PrometheusBuilder::install_recorder)
            .inspect_err(|error| tracing::warn!(event = "metrics.doubted", "nothing is measured: {error}"))
            .ok();
        Self { recorded, ..Self::default() }
    }

    /// Everything, as Prometheus reads it.
    pub async fn render(&self, engine: &Engine) -> Result<String, StoreError> {
        let mut text = self.recorded.as_ref().map(PrometheusHandle::render).unwrap_or_default();
        let mut counted = self.counted.lock().await;
        let uptime = engine.clock().uptime();
        let is_fresh = |counted: &Counted| uptime.saturating_sub(counted.at) < COUNTS_FOR;
        if !counted.as_ref().is_some_and(is_fresh) {
            *counted = Some(Counted { at: uptime, ..count(engine).await? });
        }
        if let Some(counted) = counted.as_ref() {
            write_counts(&mut text, &counted.counts);
            write_overdue(&mut text, &counted.overdue);
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

async fn count(engine: &Engine) -> Result<Counted, StoreError> {
    let now = engine.clock().now();
    let counts = engine.store().counts(now).await?;
    let mut overdue = Vec::new();
    for count in counts.iter().filter(|count| count.due > 0) {
        if let Some(at) = engine.store().next_due_at(count.route.clone(), count.lane).await? {
            overdue.push((count.route.clone(), count.lane, now.since(at)));
        }
    }
    Ok(Counted { at: Duration::ZERO, counts, overdue })
}

fn write_overdue(text: &mut String, overdue: &[(Name, Lane, Duration)]) {
    let name = "redeliver_oldest_due_seconds";
    // Writing to a text cannot fail.
    let _ = writeln!(text, "# HELP {name} How long the first due message has been due.\n# TYPE {name} gauge");
    for (route, lane, span) in overdue {
        let _ = writeln!(text, "{name}{{{}}} {}", labels(route, *lane), span.as_secs_f64());
    }
}

/// The labels of a lane. A route's name may come from a store that others wrote.
fn labels(route: &str, lane: Lane) -> String {
    format!("route=\"{}\",lane=\"{}\"", route.replace(['\\', '"', '\n'], "_"), lane.name())
}

fn write_counts(text: &mut String, counts: &[Count]) {
    gauge(text, "redeliver_messages", "Messages by state, dismissed ones aside.", counts, |count| {
        Some((format!("state=\"{}\"", count.state), count.count))
    });
    gauge(text, "redeliver_due", "Messages whose time has come.", counts, |count| {
        (count.state == "waiting").then(|| (String::new(), count.due))
    });
    gauge(text, "redeliver_held", "Messages that wait for a gate.", counts, |count| {
        (count.state == "waiting").then(|| (String::new(), count.parked))
    });
    gauge(text, "redeliver_dead", "Messages that were given up, by reason.", counts, |count| {
        Some((format!("reason=\"{}\"", count.reason?), count.count))
    });
}

/// One gauge, a line for each count that has something to say, those of the same labels together.
fn gauge(
    text: &mut String,
    name: &str,
    help: &str,
    counts: &[Count],
    value: impl Fn(&Count) -> Option<(String, u64)>,
) {
    let mut lines: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for count in counts {
        if let Some((label, value)) = value(count) {
            let comma = if label.is_empty() { "" } else { "," };
            let labels = format!("{}{comma}{label}", labels(&count.route, count.lane));
            *lines.entry(labels).or_default() += value;
        }
    }
    // Writing to a text cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
    for (labels, value) in lines {
        let _ = writeln!(text, "{name}{{{labels}}} {value}");
    }
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
        let labels = [
            ("method", self.method.to_owned()),
            ("path", path.to_owned()),
            ("status", status.as_str().to_owned()),
        ];
        ::metrics::counter!("redeliver_http_requests_total", &labels).increment(1);
        ::metrics::histogram!("redeliver_http_seconds", "method" => self.method, "path" => path.to_owned())
            .record(took.as_secs_f64());
    }
}

/// A method's name; those that somebody made up are all alike.
fn method_name(method: &Method) -> &'static str {
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
