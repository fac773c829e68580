//! Traces by OTLP: [`layer`] makes spans of what the server and the engine mark, [`queue`] keeps them until they are
//! sent. Nothing here holds up or fails the work: what can't be sent is dropped and counted.

mod layer;
mod post;
mod queue;

use std::time::Duration;

use anyhow::Context;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanExporter as _};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use layer::Spans;

use crate::config::TelemetryConfig;
use queue::Sending;

/// How long the last spans have to be sent when everything stops.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// Where traces go, and what makes them; not yet at work.
pub struct Traces {
    sending: Sending,
    endpoint: String,
}

/// Traces at work.
pub struct Running {
    stop: oneshot::Sender<()>,
    sending: JoinHandle<()>,
}

/// What makes spans and what sends them, if the config names a collector.
pub fn open(config: &TelemetryConfig) -> anyhow::Result<Option<(Spans, Traces)>> {
    let Some(endpoint) = &config.otlp_endpoint else { return Ok(None) };
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(post::Client::new(endpoint)?)
        .with_endpoint(format!("{endpoint}/v1/traces"))
        .build()
        .with_context(|| format!("cannot send traces to {endpoint} (telemetry.otlp_endpoint)"))?;
    exporter.set_resource(&resource(&config.service_name));
    let (queue, sending) = queue::queue(exporter);
    let provider = SdkTracerProvider::builder().with_span_processor(queue).build();
    let spans = Spans::new(provider.tracer("redeliver"));
    Ok(Some((spans, Traces { sending, endpoint: endpoint.clone() })))
}

/// Who we are, as traces tell: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over the config.
fn resource(service_name: &str) -> Resource {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let attributes = variable("OTEL_RESOURCE_ATTRIBUTES");
    let mut names =
        attributes.split(',').filter_map(|attribute| attribute.split_once('=')).map(|(name, _)| name);
    let is_named =
        !variable("OTEL_SERVICE_NAME").is_empty() || names.any(|name| name.trim() == "service.name");
    let said = Resource::builder();
    match is_named {
        true => said.build(),
        false => said.with_service_name(service_name.to_owned()).build(),
    }
}

impl Traces {
    /// Sends what there is from now on.
    pub fn start(self) -> Running {
        tracing::info!(
            event = "traces.started",
            endpoint = self.endpoint,
            "sending traces to {}",
            self.endpoint
        );
        let (stop, stopped) = oneshot::channel();
        Running { stop, sending: tokio::spawn(self.sending.run(stopped)) }
    }
}

impl Running {
    /// Sends what is left, if that is quickly done.
    pub async fn end(self) {
        let _ = self.stop.send(());
        if tokio::time::timeout(END_TIMEOUT, self.sending).await.is_err() {
            tracing::warn!(event = "traces.cut", "the last traces could not be sent in time");
        }
    }
}
