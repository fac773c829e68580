//! Sets up what is written to standard error while the process serves.

use std::io::{self, IsTerminal};
use std::panic::PanicHookInfo;

use redeliver_engine::span::TARGET;
use tracing::Subscriber;
use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets};
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::config::{LogConfig, LogFormat};
use crate::log_throttle::LogThrottle;
use crate::traces::Spans;

/// Sends events to standard error as the config says, and spans to whoever collects traces, if anybody does; panics
/// become events too.
pub fn set_up(config: &LogConfig, spans: Option<Spans>) {
    // The only error is that events go somewhere already, which is as good.
    let _ = subscriber(config, spans).try_init();
    std::panic::set_hook(Box::new(tell_panic));
}

fn subscriber(config: &LogConfig, spans: Option<Spans>) -> impl Subscriber + Send + Sync + 'static {
    // Only layers that are there: one that may be missing counts as one that wants everything.
    let throttle = LogThrottle::default();
    throttle.start();
    let mut layers = vec![lines(config).with_filter(filter(config).and(throttle)).boxed()];
    if let Some(spans) = spans {
        layers.push(spans.with_filter(Targets::new().with_target(TARGET, LevelFilter::INFO)).boxed());
    }
    Registry::default().with(layers)
}

fn lines(config: &LogConfig) -> Box<dyn Layer<Registry> + Send + Sync> {
    let lines = layer()
        .with_writer(io::stderr)
        .with_ansi(wants_colour(&io::stderr()))
        // When nobody reads us any more, saying so to the same place would be the end of the process.
        .log_internal_errors(false);
    match config.format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => {
            lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
        }
    }
}

/// Which lines there are. Spans are for traces only: while nobody collects those, they are never made.
fn filter(config: &LogConfig) -> EnvFilter {
    let filter = EnvFilter::builder().parse_lossy(&config.filter);
    match format!("{TARGET}=off").parse() {
        Ok(no_spans) => filter.add_directive(no_spans),
        Err(_) => filter,
    }
}

/// Whether colours are seen there, and welcome.
pub fn wants_colour(out: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    out.is_terminal() && !set("NO_COLOR") && !dumb
}

fn tell_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let said = panic.payload_as_str().unwrap_or("no words");
    tracing::error!(event = "process.panicked", place, "panicked, which is a bug: {said}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TelemetryConfig;
    use crate::traces;

    /// Whether a span is made while this is set up, with every line that there is.
    fn makes_spans(endpoint: Option<&str>) -> bool {
        let config =
            TelemetryConfig { otlp_endpoint: endpoint.map(str::to_owned), ..TelemetryConfig::default() };
        let spans = traces::open(&config).unwrap().map(|(spans, _)| spans);
        let log = LogConfig { filter: "trace".to_owned(), ..LogConfig::default() };
        tracing::subscriber::with_default(subscriber(&log, spans), || {
            !tracing::info_span!(target: TARGET, "attempt").is_disabled()
        })
    }

    #[test]
    fn spans_are_made_only_while_somebody_collects_them() {
        assert!(!makes_spans(None));
        assert!(makes_spans(Some("http://127.0.0.1:9")));
    }
}
