//! What happened, as one value: it makes the log line and the metric. Never a body, an address or a secret.

use std::sync::Arc;
use std::time::Duration;

use crate::message::{DeadReason, Lane, Message, MessageId, Name};
use crate::time::Timestamp;

/// Something that happened to a message, told after it was committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What.
    pub kind: Kind,
    /// To which message.
    pub id: MessageId,
    /// Whose.
    pub workspace: Name,
    /// On which route.
    pub route: Name,
    /// At which priority.
    pub lane: Lane,
    /// When.
    pub at: Timestamp,
    /// Tries with a verdict so far.
    pub attempts: u32,
    /// When it is due next, or was.
    pub due_at: Timestamp,
}

/// The kinds of event, named by what they mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Stored; it will reach an end.
    Accepted,
    /// Said before, with the same content; nothing changed.
    Duplicate,
    /// Ended before, and came back by its source.
    Reentered,
    /// The other side took it.
    Delivered {
        /// How long after its due time.
        lateness: Duration,
    },
    /// A broker took it; an outside worker will report.
    HandedOff,
    /// A try failed and there will be another.
    AttemptFailed {
        /// The other side's code.
        code: Option<Arc<str>>,
    },
    /// Some recipients took it; the rest will be tried again.
    AttemptPartial,
    /// Nobody confirmed a carrying; it will be repeated under the same id.
    AttemptUnconfirmed,
    /// A result came after somebody else had decided; it changed nothing.
    AttemptLate,
    /// A worker vanished in the middle; the message waits again.
    LeaseLost,
    /// Nothing was sent and nothing counted: a gate has a later time.
    Deferred {
        /// Why.
        reason: Arc<str>,
    },
    /// Nothing was sent and nothing counted: a gate is closed until further notice.
    Parked {
        /// Which gate.
        gate: Arc<str>,
    },
    /// Given up.
    Dead {
        /// Why.
        reason: DeadReason,
    },
    /// Stopped before it went out.
    Cancelled {
        /// Why.
        reason: Arc<str>,
    },
    /// A person asked for it to be cancelled while a worker had it.
    CancelRequested,
    /// A person started it over.
    Retried,
    /// A person corrected it and started it over.
    Edited,
    /// A person put a dead one away.
    Dismissed,
    /// A person brought a dismissed one back.
    Restored,
}

impl Kind {
    /// The event's name: `noun.past_verb`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Accepted => "message.accepted",
            Self::Duplicate => "message.duplicated",
            Self::Reentered => "message.reentered",
            Self::Delivered { .. } => "message.delivered",
            Self::HandedOff => "message.handed_off",
            Self::AttemptFailed { .. } => "attempt.failed",
            Self::AttemptPartial => "attempt.partly_failed",
            Self::AttemptUnconfirmed => "attempt.lost",
            Self::AttemptLate => "attempt.superseded",
            Self::LeaseLost => "lease.lost",
            Self::Deferred { .. } => "message.deferred",
            Self::Parked { .. } => "message.parked",
            Self::Dead { .. } => "message.dead",
            Self::Cancelled { .. } => "message.cancelled",
            Self::CancelRequested => "message.cancel_requested",
            Self::Retried => "message.retried",
            Self::Edited => "message.edited",
            Self::Dismissed => "message.dismissed",
            Self::Restored => "message.restored",
        }
    }
}

impl Event {
    /// The event that this happened to the message, as it stands afterwards.
    pub fn of(message: &Message, kind: Kind, at: Timestamp) -> Self {
        Self {
            kind,
            id: message.id.clone(),
            workspace: message.workspace.clone(),
            route: message.route.clone(),
            lane: message.lane,
            at,
            attempts: message.attempts,
            due_at: message.due_at,
        }
    }
}
