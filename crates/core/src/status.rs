//! What people call where a message stands. Worked out from its state and the time, and never stored.

use crate::message::{Message, State};
use crate::time::Timestamp;

/// Where a message stands, in a person's words.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It waits for its time and was never tried.
    Scheduled,
    /// Its time has come.
    Due,
    /// It failed, and waits for its next try.
    Retrying,
    /// It waits for a gate whose end nobody knows.
    Held,
    /// A worker has it.
    Sending,
    /// An outside worker has it and will report.
    HandedOff,
    /// The other side took it.
    Delivered,
    /// It was given up.
    Dead,
    /// It was stopped before it went out.
    Cancelled,
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 9] = [
        Self::Scheduled,
        Self::Due,
        Self::Retrying,
        Self::Held,
        Self::Sending,
        Self::HandedOff,
        Self::Delivered,
        Self::Dead,
        Self::Cancelled,
    ];

    /// The status of a message at this time.
    pub fn of(message: &Message, now: Timestamp) -> Self {
        match &message.state {
            State::Waiting { parked_for: Some(_) } => Self::Held,
            State::Waiting { parked_for: None } if message.due_at <= now => Self::Due,
            State::Waiting { parked_for: None } if message.attempts > 0 => Self::Retrying,
            State::Waiting { parked_for: None } => Self::Scheduled,
            State::Claimed(_) => Self::Sending,
            State::HandedOff { .. } => Self::HandedOff,
            State::Delivered { .. } => Self::Delivered,
            State::Dead { .. } => Self::Dead,
            State::Cancelled { .. } => Self::Cancelled,
        }
    }

    /// The status's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Due => "due",
            Self::Retrying => "retrying",
            Self::Held => "held",
            Self::Sending => "sending",
            Self::HandedOff => "handed_off",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status with this word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::{NewMessage, admit};
    use crate::content::Content;
    use crate::gate::{GateKey, Scope};
    use crate::message::MessageId;
    use crate::policy::{Backoff, Jitter, Policy};
    use crate::route::Route;
    use std::time::Duration;

    fn waiting(due_ms: i64, attempts: u32) -> Message {
        let policy = Policy {
            backoff: Backoff::Table(vec![Duration::from_secs(1)]),
            jitter: Jitter::None,
            max_attempts: 9,
            expires_after: None,
        };
        let route = Route::new("r", "t", policy);
        let new = NewMessage {
            due_at: Some(Timestamp::from_ms(due_ms)),
            attempts,
            ..NewMessage::new("r", Content::default())
        };
        admit(new, &route, MessageId::own(1), None, Timestamp::default()).message
    }

    #[test]
    fn what_waits_is_called_by_what_it_waits_for() {
        let at = Timestamp::from_ms(1_000);
        assert_eq!(Status::of(&waiting(1_001, 0), at), Status::Scheduled);
        assert_eq!(Status::of(&waiting(1_001, 2), at), Status::Retrying);
        assert_eq!(Status::of(&waiting(1_000, 2), at), Status::Due);
        let gate = GateKey::pause(Scope::Route, "r");
        let parked = Message { state: State::Waiting { parked_for: Some(gate) }, ..waiting(1_000, 0) };
        assert_eq!(Status::of(&parked, at), Status::Held);
    }

    #[test]
    fn statuses_have_one_word_each() {
        for status in Status::ALL {
            assert_eq!(Status::from_name(status.name()), Some(status));
        }
        assert_eq!(Status::from_name("pending"), None);
    }
}
