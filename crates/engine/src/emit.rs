//! Tells what happened, once it is committed: one event, one log line, one metric. Labels come from closed sets.

use std::time::Duration;

use metrics::Unit;
use redeliver_core::event::Kind;
use redeliver_core::gate::Scope;
use redeliver_core::quota::Whose;
use redeliver_core::{DeadReason, Event, Message, MessageId, Outcome, Route};

use crate::life::Lateness;

/// Hears what happened. Must return quickly: it is called on the way of the messages.
pub trait Observer: Send + Sync + 'static {
    /// Hears one event.
    fn observe(&self, event: &Event);

    /// Hears that a message is about to be carried, so long after it was due.
    fn carrying(&self, _message: &Message, _lateness: Duration) {}

    /// Hears what a try came to, once the store has answered for it.
    fn tried(&self, _message: &Message, _outcome: &Outcome) {}

    /// Hears that a worker vanished with a message, whatever became of the message then.
    fn lease_lost(&self, _message: &Message) {}

    /// Hears that a mail was counted in a quota, taken back from it, or found it used up.
    fn quota(&self, _whose: Whose, _counted: Counted) {}

    /// Hears that the store confirmed a heartbeat of this instance.
    fn beaten(&self, _lateness: Lateness) {}

    /// Hears that a part of a campaign was planned.
    fn planned(&self, _part: &Planned<'_>) {}

    /// Hears that a campaign was paused because it cannot be planned.
    fn campaign_paused(&self, campaign: &str, reason: &str) {
        tracing::error!(event = "campaign.paused", campaign, reason, "campaign paused: {reason}");
    }

    /// Hears that the store failed while something was being done.
    fn store_failed(&self, doing: &'static str, error: &crate::store::StoreError) {
        tracing::error!(event = "store.failed", doing, error = %error, "the store failed: {doing}");
    }
}

/// What became of a mail and a quota.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// It was counted: it is about to go out.
    Used,
    /// It was taken back: it did not go out.
    Returned,
    /// There was no room left: it waits.
    Full,
}

impl Counted {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Used, Self::Returned, Self::Full];

    const fn name(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Returned => "returned",
            Self::Full => "full",
        }
    }
}

/// A part of a campaign that was planned.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Planned<'a> {
    /// Of which campaign.
    pub campaign: &'a str,
    /// Mails that were scheduled.
    pub scheduled: u64,
    /// Mails whose keys were known, so that nothing was scheduled twice.
    pub skipped: u64,
    /// Prospects who could not be planned, beyond those of whom that was told before.
    pub unplanned: u64,
}

/// Writes events to the log and counts them.
#[derive(Copy, Clone, Debug, Default)]
pub struct Telemetry;

impl Observer for Telemetry {
    fn observe(&self, event: &Event) {
        count(event);
        log(event);
    }

    fn carrying(&self, message: &Message, lateness: Duration) {
        metrics::histogram!(LATENESS, "route" => message.route.to_string()).record(lateness.as_secs_f64());
    }

    fn tried(&self, message: &Message, outcome: &Outcome) {
        count_attempts(&message.route, outcome.name(), 1);
    }

    fn lease_lost(&self, message: &Message) {
        count_leases_lost(&message.route, 1);
    }

    fn quota(&self, whose: Whose, counted: Counted) {
        count_quota(whose, counted, 1);
    }

    fn beaten(&self, lateness: Lateness) {
        let Lateness { late, limit } = lateness;
        metrics::histogram!(HEARTBEAT_LATENESS).record(late.as_secs_f64());
        if late > limit / 2 {
            tracing::warn!(
                event = "heartbeat.late",
                late_ms = late.as_millis() as u64,
                limit_ms = limit.as_millis() as u64,
                "heartbeat confirmed late: beyond the limit, sends under way count as lost"
            );
        }
    }

    fn planned(&self, part: &Planned<'_>) {
        for (result, mails) in [("scheduled", part.scheduled), ("skipped", part.skipped)] {
            metrics::counter!(PLANNED, "result" => result).increment(mails);
        }
        let Planned { campaign, scheduled, skipped, unplanned } = part;
        match unplanned {
            0 => tracing::info!(
                event = "campaign.planned",
                campaign,
                scheduled,
                skipped,
                "a part of a campaign was planned"
            ),
            _ => tracing::warn!(
                event = "campaign.planned",
                campaign,
                scheduled,
                skipped,
                unplanned,
                "a part of a campaign was planned, and some prospects can't be written to: `redeliver campaign show` says why"
            ),
        }
    }

    fn store_failed(&self, doing: &'static str, error: &crate::store::StoreError) {
        metrics::counter!(STORE_FAILED).increment(1);
        tracing::error!(event = "store.failed", doing, error = %error, "the store failed: {doing}");
    }
}

/// Hears nothing.
#[derive(Copy, Clone, Debug, Default)]
pub struct Silence;

impl Observer for Silence {
    fn observe(&self, _: &Event) {}
}

const EVENTS: &str = "redeliver_events_total";
const ATTEMPTS: &str = "redeliver_attempts_total";
const DEAD: &str = "redeliver_dead_total";
const LEASES_LOST: &str = "redeliver_leases_lost_total";
const STORE_FAILED: &str = "redeliver_store_failures_total";
const PLANNED: &str = "redeliver_campaign_mails_total";
const HEARTBEAT_LATENESS: &str = "redeliver_heartbeat_lateness_seconds";
const QUOTA: &str = "redeliver_quota_total";
const ROWS_REQUEUED: &str = "email_retries_requeued_total";
const ROWS_DEAD: &str = "email_retries_dead_total";

/// How late messages are carried; its buckets are for whoever records it to choose.
pub const LATENESS: &str = "redeliver_lateness_seconds";

/// Says what each metric means, and begins those of these routes that can be told beforehand: what was never counted
/// can't be told from what isn't measured.
pub fn begin<'a>(routes: impl Iterator<Item = &'a Route>) {
    metrics::describe_counter!(EVENTS, "Events, by what happened.");
    metrics::describe_counter!(ATTEMPTS, "Tries, by what they came to. Deferred ones sent nothing.");
    metrics::describe_counter!(DEAD, "Messages given up, by reason.");
    metrics::describe_counter!(LEASES_LOST, "Claims whose worker vanished.");
    metrics::describe_counter!(STORE_FAILED, "Calls of the store that failed.");
    metrics::describe_histogram!(
        LATENESS,
        Unit::Seconds,
        "How long after its due time a message is carried."
    );
    metrics::describe_histogram!(
        HEARTBEAT_LATENESS,
        Unit::Seconds,
        "How long after its time the store confirmed a heartbeat of this instance."
    );
    metrics::describe_counter!(QUOTA, "Mails counted in a quota, taken back, or found it used up.");
    for whose in Whose::ALL {
        Counted::ALL.iter().for_each(|counted| count_quota(whose, *counted, 0));
    }
    metrics::describe_counter!(PLANNED, "Mails of campaigns, scheduled or known before.");
    metrics::counter!(STORE_FAILED).increment(0);
    metrics::describe_counter!(
        ROWS_REQUEUED,
        "Rows of applications' tables that were published for their sender."
    );
    metrics::describe_counter!(ROWS_DEAD, "Rows of applications' tables that were given up.");
    for route in routes {
        if route.table.is_some() {
            metrics::counter!(ROWS_REQUEUED).increment(0);
            metrics::counter!(ROWS_DEAD).increment(0);
        }
        Outcome::NAMES.iter().for_each(|outcome| count_attempts(&route.name, outcome, 0));
        DeadReason::ALL.iter().for_each(|reason| count_dead(&route.name, *reason, 0));
        count_leases_lost(&route.name, 0);
    }
}

fn count(event: &Event) {
    let labels = [("event", event.kind.name().to_owned()), ("route", event.route.to_string())];
    metrics::counter!(EVENTS, &labels).increment(1);
    if let Kind::Dead { reason } = &event.kind {
        count_dead(&event.route, *reason, 1);
    }
    if is_row(event) {
        match &event.kind {
            Kind::HandedOff => metrics::counter!(ROWS_REQUEUED).increment(1),
            Kind::Dead { .. } => metrics::counter!(ROWS_DEAD).increment(1),
            _ => {}
        }
    }
}

/// Whether this is about a row of an application's table, every scheduling of which is logged.
fn is_row(event: &Event) -> bool {
    matches!(event.id, MessageId::Row(_))
}

fn count_quota(whose: Whose, counted: Counted, by: u64) {
    metrics::counter!(QUOTA, "whose" => whose.name(), "result" => counted.name()).increment(by);
}

fn count_attempts(route: &str, outcome: &'static str, by: u64) {
    metrics::counter!(ATTEMPTS, "route" => route.to_owned(), "outcome" => outcome).increment(by);
}

fn count_dead(route: &str, reason: DeadReason, by: u64) {
    metrics::counter!(DEAD, "route" => route.to_owned(), "reason" => reason.name()).increment(by);
}

fn count_leases_lost(route: &str, by: u64) {
    metrics::counter!(LEASES_LOST, "route" => route.to_owned()).increment(by);
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
        Kind::HandedOff if is_row(event) => line!(info, "row published, its sender has it"),
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
        Kind::Deferred { reason } if is_row(event) => {
            line!(info, reason = %reason, "row not published, it stays failed and nothing is counted");
        }
        Kind::Deferred { reason } => line!(debug, reason = %reason, "message deferred, no attempt counted"),
        Kind::Parked { gate } if is_row(event) => {
            let gate = without_address(gate);
            line!(info, gate, "row waits for its gate to open, it stays failed and nothing is counted")
        }
        Kind::Parked { gate } => {
            line!(debug, gate = without_address(gate), "message parked until its gate opens")
        }
        Kind::Dead { reason } => line!(warn, reason = reason.name(), "message given up"),
        Kind::Cancelled { reason } => line!(info, reason = %reason, "message cancelled"),
        Kind::CancelRequested => line!(info, "cancel requested while a worker has the message"),
        Kind::Retried => line!(info, "message started over by a person"),
        Kind::Edited => line!(info, "message corrected and started over by a person"),
        Kind::Dismissed => line!(info, "dead message put away by a person"),
        Kind::Restored => line!(info, "dismissed message brought back by a person"),
    }
}

/// A gate's key as it may be logged: a sender's name is an address.
fn without_address(gate: &str) -> &str {
    let sender = Scope::Sender.name();
    let mut parts = gate.splitn(3, ':');
    match (parts.next(), parts.next()) {
        (Some(what), Some(scope)) if scope == sender => &gate[..what.len() + 1 + scope.len()],
        _ => gate,
    }
}

#[cfg(test)]
pub(crate) mod tests;
