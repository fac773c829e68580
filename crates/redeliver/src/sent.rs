//! What an application is told about a message that it handed over.

use redeliver_core::status::Status;
use redeliver_core::{Failure, Message, MessageId, State, Timestamp};

/// What became of a message so far. In every case it is stored, and will reach an end.
#[derive(Clone, Debug, PartialEq)]
pub enum Sent {
    /// The other side took it.
    Delivered {
        /// Which message.
        id: MessageId,
        /// What the other side said.
        receipt: Option<String>,
    },
    /// It waits, or is still being tried: the worker goes on with it.
    Queued {
        /// Which message.
        id: MessageId,
        /// When it is, or was, to be tried.
        due_at: Timestamp,
        /// What went wrong so far.
        last_error: Option<Failure>,
    },
    /// It will not go out unless a person decides otherwise.
    Refused {
        /// Which message.
        id: MessageId,
        /// Why, in the other side's words where it said something.
        reason: String,
    },
    /// Its key was said before, with the same content: nothing new was kept.
    Duplicate {
        /// The first message.
        id: MessageId,
        /// How that one stands; `None` if it has ended and is no longer kept.
        status: Option<Status>,
    },
}

impl Sent {
    /// Which message.
    pub fn id(&self) -> &MessageId {
        match self {
            Self::Delivered { id, .. }
            | Self::Queued { id, .. }
            | Self::Refused { id, .. }
            | Self::Duplicate { id, .. } => id,
        }
    }

    /// What there is to say of a message that stands like this.
    pub(crate) fn of(message: Message) -> Self {
        let Message { id, due_at, last_error, .. } = message;
        match message.state {
            State::Delivered { receipt, .. } => {
                Self::Delivered { id, receipt: receipt.map(|said| said.to_string()) }
            }
            State::Waiting { .. } | State::Claimed(_) | State::HandedOff { .. } => {
                Self::Queued { id, due_at, last_error }
            }
            State::Dead { reason, .. } => {
                let said = last_error.map(|failure| show(&failure));
                Self::Refused { id, reason: said.unwrap_or_else(|| reason.name().to_owned()) }
            }
            State::Cancelled { reason, .. } => Self::Refused { id, reason: format!("cancelled: {reason}") },
        }
    }
}

fn show(failure: &Failure) -> String {
    match &failure.code {
        Some(code) if !failure.text.starts_with(&**code) => format!("{code} {}", failure.text),
        _ => failure.text.to_string(),
    }
}

/// A message that was accepted, or had been before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Which message.
    pub id: MessageId,
    /// Whether its key was said before, with the same content: this is the first message then.
    pub duplicate: bool,
}
