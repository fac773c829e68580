//! What a question means in the terms of our tables, and what an answer of theirs means in words.

use redeliver_core::Timestamp;
use redeliver_core::status::Status;
use redeliver_engine::store::{Filter, StatusAt};

use crate::standing::state_number;

/// Where a list begins that begins at its newest: no id of ours comes behind this.
pub(crate) const PAST_EVERY_ID: &str = "\u{10FFFF}";

/// What a filter's state and status come to in the terms of the table.
pub(crate) enum Wanted {
    Any,
    State(&'static str),
    Parked,
    Due { now: Timestamp },
    Waiting { now: Timestamp, tried: bool },
}

impl Wanted {
    /// `None` if nothing can be both.
    pub(crate) fn by(filter: &Filter) -> Option<Self> {
        let Some(StatusAt { status, now }) = filter.status else {
            let state = filter.state.filter(|state| state_number(state).is_some());
            return if filter.state == state { Some(state.map_or(Self::Any, Self::State)) } else { None };
        };
        let (state, wanted) = match status {
            Status::Scheduled => ("waiting", Self::Waiting { now, tried: false }),
            Status::Retrying => ("waiting", Self::Waiting { now, tried: true }),
            Status::Due => ("waiting", Self::Due { now }),
            Status::Held => ("waiting", Self::Parked),
            Status::Sending => ("claimed", Self::State("claimed")),
            Status::HandedOff => ("handed_off", Self::State("handed_off")),
            Status::Delivered => ("delivered", Self::State("delivered")),
            Status::Dead => ("dead", Self::State("dead")),
            Status::Cancelled => ("cancelled", Self::State("cancelled")),
        };
        filter.state.is_none_or(|asked| asked == state).then_some(wanted)
    }

    /// The number of the only state that fits, if there is only one.
    pub(crate) fn state(&self) -> Option<i16> {
        match self {
            Self::Any => None,
            Self::State(word) => state_number(word),
            Self::Parked | Self::Due { .. } | Self::Waiting { .. } => state_number("waiting"),
        }
    }
}

/// The word for what somebody did; a later version may know more of them.
pub(crate) fn action(text: &str) -> &'static str {
    const ACTIONS: [&str; 25] = [
        "retry",
        "edit",
        "cancel",
        "dismiss",
        "restore",
        "pause",
        "resume",
        "hold",
        "release",
        "create_key",
        "put_settings",
        "create_campaign",
        "launch",
        "schedule",
        "stop",
        "finish",
        "suppress",
        "unsuppress",
        "revoke_key",
        "bulk_retry",
        "bulk_cancel",
        "bulk_dismiss",
        "bulk_pause",
        "bulk_resume",
        "bulk_stop",
    ];
    ACTIONS.into_iter().find(|word| *word == text).unwrap_or("other")
}
