//! Tells what happened, once it is committed: one event, one log line, one metric.

use redeliver_core::Event;
use redeliver_core::event::Kind;

/// Hears what happened. Must return quickly: it is called on the way of the messages.
pub trait Observer: Send + Sync + 'static {
    /// Hears one event.
    fn observe(&self, event: &Event);

    /// Hears that the store failed while something was being done.
    fn store_failed(&self, doing: &'static str, error: &crate::store::StoreError) {
        tracing::error!(doing, error = %error, "store.failed");
    }
}

/// Writes events to the log and counts them.
#[derive(Copy, Clone, Debug, Default)]
pub struct Telemetry;

impl Observer for Telemetry {
    fn observe(&self, event: &Event) {
        count(event);
        log(event);
    }
}

/// Hears nothing.
#[derive(Copy, Clone, Debug, Default)]
pub struct Silence;

impl Observer for Silence {
    fn observe(&self, _: &Event) {}
}

fn count(event: &Event) {
    let labels = [("event", event.kind.name().to_owned()), ("route", event.route.to_string())];
    metrics::counter!("redeliver_events_total", &labels).increment(1);
    match &event.kind {
        Kind::Delivered { lateness } => {
            metrics::histogram!("redeliver_lateness_seconds", "route" => event.route.to_string())
                .record(lateness.as_secs_f64());
        }
        Kind::Dead { reason } => {
            let labels = [("reason", reason.name().to_owned()), ("route", event.route.to_string())];
            metrics::counter!("redeliver_dead_total", &labels).increment(1);
        }
        _ => {}
    }
}

/// The log line of an event. A dead message needs a person's eye; everything else is the ordinary course.
fn log(event: &Event) {
    macro_rules! line {
        ($level:ident, $($field:tt)*) => {
            tracing::$level!(
                event = event.kind.name(), id = %event.id, route = %event.route, lane = event.lane.name(),
                attempts = event.attempts, due_at = %event.due_at, $($field)*
            )
        };
    }
    match &event.kind {
        Kind::Accepted => line!(debug, "message accepted"),
        Kind::Duplicate => line!(info, "message said before, nothing new kept"),
        Kind::Reentered => line!(info, "message came back by its source"),
        Kind::Delivered { lateness } => {
            line!(debug, lateness_ms = lateness.as_millis() as u64, "message delivered");
        }
        Kind::HandedOff => line!(debug, "message handed off, a report is awaited"),
        Kind::AttemptFailed { code } => {
            line!(info, code = code.as_deref().unwrap_or("-"), "attempt failed, another will follow");
        }
        Kind::AttemptPartial => line!(info, "some recipients took it, the rest will be tried again"),
        Kind::AttemptUnconfirmed => {
            line!(info, "nobody confirmed the attempt, it will be repeated under the same id")
        }
        Kind::AttemptLate => line!(info, "a result came too late and changed nothing"),
        Kind::LeaseLost => line!(warn, "a worker vanished with the message, it waits again"),
        Kind::Deferred { reason } => line!(debug, reason = %reason, "message deferred, no attempt counted"),
        Kind::Parked { gate } => line!(debug, gate = %gate, "message parked until its gate opens"),
        Kind::Dead { reason } => line!(warn, reason = reason.name(), "message given up"),
        Kind::Cancelled { reason } => line!(info, reason = %reason, "message cancelled"),
        Kind::CancelRequested => line!(info, "cancel requested while a worker has the message"),
        Kind::Retried => line!(info, "message started over by a person"),
        Kind::Dismissed => line!(info, "dead message put away by a person"),
        Kind::Restored => line!(info, "dismissed message brought back by a person"),
    }
}
