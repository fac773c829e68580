//! The span of one try, for whoever collects traces. While nobody does, it costs a look at a flag.

use redeliver_core::{AttemptId, Content, Message, Outcome};
use tracing::Span;
use tracing::field::Empty;

/// The target of every span: nothing else has it, so that traces and log lines can be told apart.
pub const TARGET: &str = "redeliver::span";

/// The span of the try that this message has before it, within the trace that the message belongs to.
pub(crate) fn of(message: &Message, content: &Content) -> Span {
    tracing::info_span!(
        target: TARGET,
        "attempt",
        otel.kind = "producer",
        otel.status_code = Empty,
        traceparent = content.traceparent(),
        message.id = %message.id,
        attempt.id = %AttemptId::of(message),
        attempt = message.next_attempt(),
        route = &*message.route,
        lane = message.lane.name(),
        outcome = Empty,
    )
}

/// Writes down what the try came to.
pub(crate) fn end(span: &Span, outcome: &Outcome) {
    span.record("outcome", outcome.name());
    match outcome {
        Outcome::Failed(_) | Outcome::Refused(_) | Outcome::Partial(_) | Outcome::Lost { .. } => {
            span.record("otel.status_code", "ERROR");
        }
        Outcome::Delivered { .. }
        | Outcome::HandedOff
        | Outcome::Deferred { .. }
        | Outcome::Skipped { .. } => {}
    }
}
