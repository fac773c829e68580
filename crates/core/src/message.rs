//! A message: what it is, where it stands, and what has happened to it so far.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::gate::GateKey;
use crate::outcome::Failure;
use crate::time::Timestamp;

/// A short name from a config or a caller: a route, a workspace, a transport.
pub type Name = Arc<str>;

/// Which message this is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageId {
    /// A message of our own store. Ids sort by the time they were made.
    Own(Uuid),
    /// A row of an application's table, as `table:row`.
    Row(Arc<str>),
}

impl MessageId {
    /// The id of a message of our own with these 128 bits.
    pub const fn own(bits: u128) -> Self {
        Self::Own(Uuid::from_u128(bits))
    }

    /// A fresh id (UUID version 7) from the time and 80 bits that nobody else has.
    pub fn fresh(now: Timestamp, bits: [u8; 10]) -> Self {
        let ms = u64::try_from(now.as_ms()).unwrap_or(0);
        Self::Own(uuid::Builder::from_unix_timestamp_millis(ms, &bits).into_uuid())
    }

    pub(crate) fn each_byte(&self, mut visit: impl FnMut(u8)) {
        match self {
            Self::Own(uuid) => uuid.as_bytes().iter().for_each(|byte| visit(*byte)),
            Self::Row(text) => text.bytes().for_each(visit),
        }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(uuid) => uuid.fmt(f),
            Self::Row(text) => f.write_str(text),
        }
    }
}

impl FromStr for MessageId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(uuid) = Uuid::try_parse(text) {
            return Ok(Self::Own(uuid));
        }
        match text.split_once(':') {
            Some((table, row)) if !table.is_empty() && !row.is_empty() => Ok(Self::Row(text.into())),
            _ => Err(format!("not a message id: {text:?}")),
        }
    }
}

/// One running engine, from its start to its end.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(pub u64);

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// One priority of a route.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Lane {
    /// First in everything.
    Critical = 0,
    /// Before the ordinary.
    High = 1,
    /// The ordinary.
    #[default]
    Medium = 2,
    /// What can wait, but is never starved.
    Low = 3,
}

impl Lane {
    /// All lanes, the most urgent first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Medium, Self::Low];

    /// The lane's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }

    /// The lane with this word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.name() == name)
    }
}

/// A claim's end time, and what makes a late worker's result harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Who claimed the message.
    pub instance: InstanceId,
    /// The fence that this claim was given. It names this one carrying for ever.
    pub claim: u64,
    /// When the claim ends unless it is renewed.
    pub until_at: Timestamp,
    /// When the carrying was recorded to have started, where that is recorded at all.
    pub started_at: Option<Timestamp>,
    /// Whether a person asked for it to be cancelled in the meantime.
    pub cancel_requested: bool,
}

/// Where a message stands. "Due" is no state: it is `Waiting` with a time that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Until it is due; or parked until a gate opens. From accept, a failed try, an operator's retry.
    Waiting {
        /// The closed gate it waits for, if that gate's end isn't known.
        parked_for: Option<GateKey>,
    },
    /// A worker has it. To any other state, by its outcome or by the end of its lease.
    Claimed(Lease),
    /// A broker confirmed it and an outside worker will report. Left by a report or by its absence.
    HandedOff {
        /// Since when.
        since: Timestamp,
        /// When the report is overdue, if it can be.
        report_by: Option<Timestamp>,
    },
    /// The other side took it: an end, never left.
    Delivered {
        /// When.
        at: Timestamp,
        /// What the other side said.
        receipt: Option<Arc<str>>,
    },
    /// Given up: an end, left only by an operator's retry or a re-entry.
    Dead {
        /// When.
        at: Timestamp,
        /// Why.
        reason: DeadReason,
        /// When a person put it away, out of counts and lists.
        dismissed_at: Option<Timestamp>,
    },
    /// Stopped before it went out: an end, left only by an operator's retry or a re-entry.
    Cancelled {
        /// When.
        at: Timestamp,
        /// Why: `operator`, or what a gate said.
        reason: Arc<str>,
    },
}

impl State {
    /// The state's word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Waiting { .. } => "waiting",
            Self::Claimed(_) => "claimed",
            Self::HandedOff { .. } => "handed_off",
            Self::Delivered { .. } => "delivered",
            Self::Dead { .. } => "dead",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// When the message ended, if it has.
    pub const fn ended_at(&self) -> Option<Timestamp> {
        match self {
            Self::Waiting { .. } | Self::Claimed(_) | Self::HandedOff { .. } => None,
            Self::Delivered { at, .. } | Self::Dead { at, .. } | Self::Cancelled { at, .. } => Some(*at),
        }
    }
}

/// Why a message was given up.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DeadReason {
    /// Every try failed.
    AttemptsExhausted = 0,
    /// The other side will never take it.
    Refused = 1,
    /// Its time ran out.
    Expired = 2,
    /// Nobody knows whether it went out, and the route says: not twice.
    Uncertain = 3,
    /// It takes its worker down.
    Poison = 4,
}

impl DeadReason {
    /// All reasons.
    pub const ALL: [Self; 5] =
        [Self::AttemptsExhausted, Self::Refused, Self::Expired, Self::Uncertain, Self::Poison];

    /// The reason's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::Refused => "refused",
            Self::Expired => "expired",
            Self::Uncertain => "uncertain",
            Self::Poison => "poison",
        }
    }
}

/// One thing that must reach one destination: its standing, without its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Which one.
    pub id: MessageId,
    /// Whose.
    pub workspace: Name,
    /// The way it travels.
    pub route: Name,
    /// Its priority.
    pub lane: Lane,
    /// What the sender calls it, so that saying it twice sends it once.
    pub key: Option<Arc<str>>,
    /// Where it stands.
    pub state: State,
    /// When it is, or was, to go out next.
    pub due_at: Timestamp,
    /// When it was first to go out. Never moves.
    pub scheduled_for: Timestamp,
    /// When it was accepted; [`Timestamp::UNKNOWN`] where nobody has written that down.
    pub created_at: Timestamp,
    /// When it was first sent, where its claims keep that: the time of the claim under which it was. A mail is dated by
    /// it, at every try.
    pub first_sent_at: Option<Timestamp>,
    /// When sending it stops making sense.
    pub expires_at: Option<Timestamp>,
    /// How often an operator started it over.
    pub generation: u32,
    /// Tries that got a verdict, in this generation, those made elsewhere included.
    pub attempts: u32,
    /// Tries that were made elsewhere before it was accepted.
    pub attempts_before: u32,
    /// Its own budget of tries, where it has one.
    pub max_attempts: Option<u32>,
    /// Leases that ran out in this generation and speak against the message.
    pub losses: u32,
    /// Carryings in this generation that nobody confirmed.
    pub unconfirmed: u32,
    /// Carryings, ever, that may have reached the receiver without our knowing.
    pub possible_duplicates: u32,
    /// Goes up with every write that changes who may write next, and never down.
    pub fence: u64,
    /// The last claim whose own worker settled it, so that a repeated settling is recognised.
    pub settled_claim: Option<u64>,
    /// What went wrong last.
    pub last_error: Option<Failure>,
    /// The verdicts on its recipients, where it has several and some have one.
    pub recipients: Vec<RecipientVerdict>,
    /// Whether it is a dead letter; those make no further ones.
    pub is_dead_letter: bool,
}

impl Message {
    /// The number of the next try, which an unfinished try already has.
    pub const fn next_attempt(&self) -> u32 {
        self.attempts + 1
    }

    /// Whether somebody had it when it was last heard of, so that it is claimed alone from then on.
    pub const fn is_suspect(&self) -> bool {
        self.losses > 0
    }

    /// Forgets the time of the first send if the claim made at `claimed_at` wrote it: nothing was sent under that claim.
    pub fn forget_first_send(&mut self, claimed_at: Timestamp) {
        if self.first_sent_at == Some(claimed_at) {
            self.first_sent_at = None;
        }
    }

    /// Whether its time had run out at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// What became of one recipient of a message that has several.
#[derive(Clone, Debug, PartialEq)]
pub struct RecipientVerdict {
    /// The recipient's place in the content's list.
    pub index: u32,
    /// What became of it.
    pub fate: Fate,
}

/// The three things that can become of a recipient.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// The other side took it for this one.
    Delivered,
    /// Worth another try.
    Failed(Failure),
    /// Never worth another.
    Refused(Failure),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_and_read() {
        let own = MessageId::fresh(Timestamp::from_ms(1_796_115_600_000), [7; 10]);
        assert_eq!(own.to_string().parse(), Ok(own.clone()));
        assert_eq!("email-log:17".parse(), Ok(MessageId::Row("email-log:17".into())));
        for text in ["", "17", ":17", "email-log:"] {
            assert!(text.parse::<MessageId>().is_err(), "{text}");
        }
    }

    #[test]
    fn fresh_ids_sort_by_time() {
        let at = |ms| MessageId::fresh(Timestamp::from_ms(ms), [255; 10]);
        assert!(at(1_000) < at(1_001));
    }

    #[test]
    fn lanes_have_one_word_each() {
        for lane in Lane::ALL {
            assert_eq!(Lane::from_name(lane.name()), Some(lane));
        }
        assert_eq!(Lane::from_name("urgent"), None);
    }
}
