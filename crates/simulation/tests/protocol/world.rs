//! Everything there is at one moment: the store, the workers, and what is on its way between them.

use crate::model::{HEARTBEAT_LIMIT_TICKS, SILENT_MAX_TICKS};
use crate::row::{Row, Verdict};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub rows: Vec<Row>,
    pub workers: Vec<Worker>,
    /// Requests that nobody waits for any more and that may still arrive.
    pub strays: Vec<Request>,
    /// The reaper's and the operator's work, between reading a row and writing it.
    pub desks: [Option<Draft>; 2],
    /// The rules that have been broken.
    pub broken: Broken,
}

/// A running instance with one permit.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Worker {
    pub hold: Option<Hold>,
    pub call: Option<Call>,
    pub beat: Option<Call>,
    /// Ticks until its last confirmed heartbeat is too old to carry anything.
    pub heard: u8,
    /// Ticks until the store counts it as silent.
    pub known: u8,
}

/// A claim as its worker sees it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hold {
    pub message: u8,
    pub claim: u8,
    pub born: u8,
    /// The message as the worker read it.
    pub row: Row,
    /// Ticks until the worker's own deadline, which is never later than the lease's end.
    pub left: u8,
    pub step: Step,
    /// Whether its settling was written, and no later claim's since. For the properties.
    pub is_applied: bool,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    Fresh,
    Started,
    /// It was carried, or surely not; the store has yet to be told.
    Decided(Verdict),
}

/// A store call that somebody waits for: on its way, or answered with the answer on its way.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    pub request: Request,
    pub answer: Option<Answer>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    /// `left`: the lease that was asked for, counted from the sending.
    Claim {
        message: u8,
        owner: Option<u8>,
        left: u8,
    },
    Start {
        message: u8,
        claim: u8,
    },
    Renew {
        message: u8,
        claim: u8,
        left: u8,
    },
    Beat {
        owner: u8,
        left: u8,
    },
    Apply(Change),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Change {
    pub message: u8,
    pub expected_fence: u8,
    /// The version that was read, to see what the fence lets through.
    pub read: u8,
    pub settles: Option<u8>,
    pub deed: Deed,
    pub row: Row,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    Claimed(Row),
    Nothing,
    Yes,
    No,
    Applied,
    AlreadyMine,
    /// With the message, if it is still the same claim's.
    Superseded(Option<Row>),
}

/// Who writes, and what for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Deed {
    Settle,
    Lapse,
    Cancel,
    Retry,
}

/// A row that was read and is about to be written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Draft {
    pub deed: Deed,
    pub message: u8,
    /// Ticks until the end of the lease that was read, where somebody is foolish enough to write that back.
    pub left: u8,
    pub row: Row,
}

/// The rules that a step can break, as a set.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Broken(u16);

impl Broken {
    pub const CARRIED_TWICE: Self = Self(1);
    pub const OLD_FENCE: Self = Self(2);
    pub const STRAY_CARRYING: Self = Self(4);
    pub const TWO_LEASES: Self = Self(8);
    pub const APPLIED_TWICE: Self = Self(16);
    pub const OWN_TOLD_SUPERSEDED: Self = Self(32);
    pub const END_LEFT: Self = Self(64);
    pub const CANCEL_OVERLOOKED: Self = Self(128);
    pub const CARRYING_UNCOUNTED: Self = Self(256);
    pub const DUPLICATE_UNSUSPECTED: Self = Self(512);
    pub const HELD_GOES_AGAIN: Self = Self(1_024);
    pub const DELIVERED_UNRECEIVED: Self = Self(2_048);

    pub fn note(&mut self, rule: Self, is_broken: bool) {
        if is_broken {
            self.0 |= rule.0;
        }
    }

    pub fn has(self, rule: Self) -> bool {
        self.0 & rule.0 != 0
    }

    pub fn any(self) -> bool {
        self.0 != 0
    }
}

impl Request {
    pub fn message(&self) -> Option<u8> {
        match self {
            Self::Claim { message, .. }
            | Self::Start { message, .. }
            | Self::Renew { message, .. }
            | Self::Apply(Change { message, .. }) => Some(*message),
            Self::Beat { .. } => None,
        }
    }

    /// Lets a tick pass while it is on its way or its answer is.
    pub fn age(&mut self) {
        match self {
            Self::Claim { left, .. } | Self::Renew { left, .. } | Self::Beat { left, .. } => {
                *left = left.saturating_sub(1);
            }
            Self::Start { .. } | Self::Apply(_) => {}
        }
    }
}

impl Worker {
    /// An instance that has just started, and said so.
    pub const NEW: Self =
        Self { hold: None, call: None, beat: None, heard: HEARTBEAT_LIMIT_TICKS, known: SILENT_MAX_TICKS };
}

impl Hold {
    pub fn has_decided(&self) -> bool {
        matches!(self.step, Step::Decided(_))
    }
}

impl World {
    /// Whether a claimed message may be taken from its worker: the lease is over, or the worker is silent.
    pub fn is_lapsed(&self, row: &Row) -> bool {
        row.lease().is_some_and(|lease| {
            lease.left == 0 || lease.owner.is_none_or(|owner| self.workers[usize::from(owner)].known == 0)
        })
    }

    /// Nobody has these messages any more: their worker crashed.
    pub fn disown(&mut self, worker: u8) {
        for lease in self.rows.iter_mut().filter_map(Row::lease_mut) {
            if lease.owner == Some(worker) {
                lease.owner = None;
            }
        }
        self.strays.retain(|request| !matches!(request, Request::Beat { owner, .. } if *owner == worker));
    }
}
