//! Spans that have ended wait here until they are sent. There is room for so many; more are dropped and counted.

use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter, SpanProcessor};
use tokio::sync::{mpsc, oneshot};

/// Spans that wait at once, at most.
const WAITING_MAX: usize = 8_192;

/// Spans that are sent at once, at most.
const BATCH_MAX: usize = 512;

/// How long spans gather before they are sent.
const GATHER: Duration = Duration::from_millis(500);

/// Spans that never reached a collector: no room, or no good answer.
pub const DROPPED: &str = "redeliver_spans_dropped_total";

/// Where ended spans go in.
#[derive(Debug)]
pub(super) struct Queue(mpsc::Sender<SpanData>);

/// Where they come out, and who sends them.
pub(super) struct Sending {
    waiting: mpsc::Receiver<SpanData>,
    exporter: opentelemetry_otlp::SpanExporter,
    /// Whether the last batch got through: only a change is worth a line.
    is_well: bool,
}

/// A queue, both ends of it.
pub(super) fn queue(exporter: opentelemetry_otlp::SpanExporter) -> (Queue, Sending) {
    let (sender, waiting) = mpsc::channel(WAITING_MAX);
    (Queue(sender), Sending { waiting, exporter, is_well: true })
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.0.try_send(span).is_err() {
            metrics::counter!(DROPPED).increment(1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl Sending {
    /// Sends what comes until told to stop, and then what is left.
    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        metrics::describe_counter!(DROPPED, "Spans that never reached the collector.");
        metrics::counter!(DROPPED).increment(0);
        let mut stopping = false;
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            if !stopping {
                // The first span of a batch waits for others, unless this is the end.
                tokio::select! {
                    _ = &mut stop => stopping = true,
                    () = gather(&mut self.waiting, &mut batch) => {}
                }
            }
            if stopping {
                self.waiting.close();
                while batch.len() < BATCH_MAX
                    && let Ok(span) = self.waiting.try_recv()
                {
                    batch.push(span);
                }
            }
            if batch.is_empty() {
                return;
            }
            self.send(&mut batch).await;
        }
    }

    async fn send(&mut self, batch: &mut Vec<SpanData>) {
        let count = batch.len() as u64;
        let sent = self.exporter.export(std::mem::take(batch)).await;
        match (&sent, self.is_well) {
            (Err(error), true) => tracing::warn!(
                event = "traces.dropped",
                "the collector takes no traces, they are dropped until it does: {error}"
            ),
            (Ok(()), false) => tracing::info!(event = "traces.resumed", "the collector takes traces again"),
            (Err(_), false) | (Ok(()), true) => {}
        }
        self.is_well = sent.is_ok();
        if sent.is_err() {
            metrics::counter!(DROPPED).increment(count);
        }
    }
}

/// Fills a batch: what has come a while after its first span, or a full one.
async fn gather(waiting: &mut mpsc::Receiver<SpanData>, batch: &mut Vec<SpanData>) {
    if waiting.recv_many(batch, BATCH_MAX).await == 0 {
        // Nobody makes spans any more.
        return std::future::pending().await;
    }
    let rest = async {
        while batch.len() < BATCH_MAX && waiting.recv_many(batch, BATCH_MAX - batch.len()).await > 0 {}
    };
    // Too late is as good as full.
    let _ = tokio::time::timeout(GATHER, rest).await;
}
