//! Where a message stands, as the columns that every store of ours has for it.

use redeliver_core::planted::{self, Bug};
use redeliver_core::{Message, Name, State, Timestamp};

/// The words of the states, at the numbers that stand for them.
pub(crate) const STATES: [&str; 6] = ["waiting", "claimed", "handed_off", "delivered", "dead", "cancelled"];

/// The number that stands for a state's word.
pub(crate) fn state_number(word: &str) -> Option<i16> {
    STATES.iter().zip(0..).find(|(name, _)| **name == word).map(|(_, number)| number)
}

/// Whether a message waits as it came: nothing has happened to it here, whatever it went through elsewhere.
pub(crate) fn is_untouched(message: &Message) -> bool {
    let Message { generation, losses, unconfirmed, possible_duplicates, .. } = *message;
    matches!(message.state, State::Waiting { parked_for: None })
        && [generation, losses, unconfirmed, possible_duplicates] == [0; 4]
        && (message.fence, message.is_dead_letter, message.settled_claim) == (0, false, None)
        && message.recipients.is_empty()
        && message.first_sent_at.is_none()
}

/// The columns that only some states fill.
#[derive(Default)]
pub(crate) struct Standing<'a> {
    pub(crate) state: i16,
    pub(crate) ready_at: Option<i64>,
    pub(crate) suspect_at: Option<i64>,
    pub(crate) parked_for: Option<&'a str>,
    pub(crate) instance: Option<i64>,
    pub(crate) claim: Option<i64>,
    pub(crate) lease_until: Option<i64>,
    pub(crate) started_at: Option<i64>,
    pub(crate) cancel_requested: bool,
    pub(crate) handed_off_at: Option<i64>,
    pub(crate) report_by: Option<i64>,
    pub(crate) ended_at: Option<i64>,
    pub(crate) put_away_at: Option<i64>,
    pub(crate) receipt: Option<&'a str>,
    pub(crate) dead_reason: Option<i16>,
    pub(crate) dismissed_at: Option<i64>,
    pub(crate) cancelled_for: Option<&'a str>,
}

impl<'a> Standing<'a> {
    pub(crate) fn of(message: &'a Message) -> Self {
        match &message.state {
            State::Waiting { parked_for: Some(gate) } => {
                Self { state: 0, parked_for: Some(gate.as_str()), ..Self::default() }
            }
            State::Waiting { parked_for: None } => {
                let due_at = Some(message.due_at.as_ms());
                let (ready_at, suspect_at) =
                    if message.is_suspect() { (None, due_at) } else { (due_at, None) };
                Self { state: 0, ready_at, suspect_at, ..Self::default() }
            }
            State::Claimed(lease) => Self {
                state: 1,
                instance: Some(lease.instance.0 as i64),
                claim: Some(lease.claim as i64),
                lease_until: Some(lease.until_at.as_ms()),
                started_at: lease.started_at.map(Timestamp::as_ms),
                cancel_requested: lease.cancel_requested,
                ..Self::default()
            },
            State::HandedOff { since, report_by } => Self {
                state: 2,
                handed_off_at: Some(since.as_ms()),
                report_by: report_by.map(Timestamp::as_ms),
                ..Self::default()
            },
            State::Delivered { at, receipt } => Self {
                state: 3,
                ended_at: Some(at.as_ms()),
                put_away_at: Some(at.as_ms()),
                receipt: receipt.as_deref(),
                ..Self::default()
            },
            State::Dead { at, reason, dismissed_at } => Self {
                state: 4,
                ended_at: Some(at.as_ms()),
                put_away_at: if planted::is(Bug::PruneTakesTheDead) { Some(*at) } else { *dismissed_at }
                    .map(Timestamp::as_ms),
                dead_reason: Some(*reason as i16),
                dismissed_at: dismissed_at.map(Timestamp::as_ms),
                ..Self::default()
            },
            State::Cancelled { at, reason } => Self {
                state: 5,
                ended_at: Some(at.as_ms()),
                put_away_at: Some(at.as_ms()),
                cancelled_for: Some(reason),
                ..Self::default()
            },
        }
    }
}

/// Names that many rows in a row have in common.
#[derive(Default)]
pub(crate) struct Names {
    workspace: Name,
    route: Name,
}

impl Names {
    pub(crate) fn workspace(&mut self, text: &str) -> Name {
        shared(&mut self.workspace, text)
    }

    pub(crate) fn route(&mut self, text: &str) -> Name {
        shared(&mut self.route, text)
    }
}

fn shared(last: &mut Name, text: &str) -> Name {
    if **last != *text {
        *last = text.into();
    }
    last.clone()
}
