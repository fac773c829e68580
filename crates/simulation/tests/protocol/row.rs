//! A message as the store has it, and what core decides about it, in small.

use crate::bug::Bug;
use crate::model::Rules;

/// What the store remembers of one message.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    pub standing: Standing,
    pub fence: u8,
    pub settled_claim: Option<u8>,
    pub generation: u8,
    pub attempts: u8,
    pub losses: u8,
    pub possible_duplicates: u8,
    /// Goes up with each write, whatever the fence does. For the properties.
    pub version: u8,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    Waiting,
    Claimed(Lease),
    Delivered,
    Dead(Reason),
    Cancelled,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// The worker that has it; nobody if that worker has crashed or given up waiting for its claim.
    pub owner: Option<u8>,
    pub claim: u8,
    /// Ticks until it is over.
    pub left: u8,
    pub started: bool,
    pub cancel_requested: bool,
    /// The row's version at the claim, which tells claims apart where the fence fails to. For the properties.
    pub born: u8,
    /// What came of its carrying, whoever knows of it. For the properties.
    pub carried: Option<Verdict>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    Exhausted,
    Uncertain,
    Poison,
}

/// What a worker knows of its try.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    Delivered,
    Failed,
    /// Nothing was carried.
    Deferred,
}

impl Row {
    pub const NEW: Self = Self {
        standing: Standing::Waiting,
        fence: 0,
        settled_claim: None,
        generation: 0,
        attempts: 0,
        losses: 0,
        possible_duplicates: 0,
        version: 0,
    };

    pub fn lease(&self) -> Option<&Lease> {
        match &self.standing {
            Standing::Claimed(lease) => Some(lease),
            Standing::Waiting | Standing::Delivered | Standing::Dead(_) | Standing::Cancelled => None,
        }
    }

    pub fn lease_mut(&mut self) -> Option<&mut Lease> {
        match &mut self.standing {
            Standing::Claimed(lease) => Some(lease),
            Standing::Waiting | Standing::Delivered | Standing::Dead(_) | Standing::Cancelled => None,
        }
    }

    pub fn is_claimed_as(&self, claim: u8) -> bool {
        self.lease().is_some_and(|lease| lease.claim == claim)
    }

    pub fn is_ended(&self) -> bool {
        match self.standing {
            Standing::Waiting | Standing::Claimed(_) => false,
            Standing::Delivered | Standing::Dead(_) | Standing::Cancelled => true,
        }
    }

    /// Whether the start of its carrying is recorded first.
    pub fn records_start(&self, rules: &Rules) -> bool {
        (rules.hold || self.losses > 0) && rules.bug != Some(Bug::StartNotRecorded)
    }

    /// The row as somebody read it: what changes without a write of its own is left out.
    pub fn as_read(mut self) -> Self {
        if let Some(lease) = self.lease_mut() {
            lease.owner = None;
            lease.left = 0;
            lease.carried = None;
        }
        self
    }

    /// The row after its own worker's verdict; `core::settle::settle`.
    pub fn settle(&self, verdict: Verdict, rules: &Rules) -> Self {
        let mut next = Self { settled_claim: self.lease().map(|lease| lease.claim), ..*self };
        match verdict {
            Verdict::Delivered => {
                next.attempts += 1;
                next.standing = Standing::Delivered;
            }
            Verdict::Failed => {
                next.attempts += 1;
                next.standing = if next.attempts >= rules.attempts_max {
                    Standing::Dead(Reason::Exhausted)
                } else {
                    self.wait_again()
                };
            }
            Verdict::Deferred => next.standing = self.wait_again(),
        }
        next.raised()
    }

    /// The row after its lease ran out; `core::settle::lapse`.
    pub fn lapse(&self, rules: &Rules) -> Option<Self> {
        let lease = self.lease()?;
        let mut next = *self;
        let surely_unsent = (rules.hold || self.losses > 0) && !lease.started;
        if !surely_unsent {
            next.possible_duplicates += 1;
        }
        if !(self.losses > 0 && surely_unsent) && rules.bug != Some(Bug::LossNotCounted) {
            next.losses += 1;
        }
        next.standing = if rules.hold && lease.started {
            Standing::Dead(Reason::Uncertain)
        } else if next.losses >= rules.losses_max {
            Standing::Dead(Reason::Poison)
        } else {
            self.wait_again()
        };
        Some(next.raised())
    }

    /// The row after an operator's cancel; `core::operate`.
    pub fn cancel(&self, rules: &Rules) -> Option<Self> {
        let standing = match self.standing {
            Standing::Waiting => Standing::Cancelled,
            Standing::Claimed(lease) => Standing::Claimed(Lease { cancel_requested: true, ..lease }),
            Standing::Delivered | Standing::Dead(_) | Standing::Cancelled => return None,
        };
        let next = Self { standing, ..*self };
        Some(if rules.bug == Some(Bug::OperatorKeepsFence) { next } else { next.raised() })
    }

    /// The row after an operator's retry; `core::operate`.
    pub fn retry(&self) -> Option<Self> {
        match self.standing {
            Standing::Waiting | Standing::Dead(_) | Standing::Cancelled => {}
            Standing::Claimed(_) | Standing::Delivered => return None,
        }
        let generation = self.generation + 1;
        Some(Self { standing: Standing::Waiting, generation, attempts: 0, losses: 0, ..*self }.raised())
    }

    fn wait_again(&self) -> Standing {
        match self.lease() {
            Some(lease) if lease.cancel_requested => Standing::Cancelled,
            _ => Standing::Waiting,
        }
    }

    fn raised(self) -> Self {
        Self { fence: self.fence + 1, ..self }
    }
}
