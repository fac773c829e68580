//! Mistakes in the protocol. A model is worth the mistakes that it catches.

use crate::model::Rules;
use crate::properties::{
    CANCEL_IS_SEEN, CARRIED_ONCE, CARRIED_UNDER_THE_CLAIM, CARRYINGS_COUNT, HELD_STAYS, NO_OLD_FENCE,
    OWN_IS_KNOWN,
};

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bug {
    /// A write is accepted whatever the fence.
    ApplyIgnoresFence,
    /// A claim leaves the fence as it is.
    ClaimKeepsFence,
    /// A person's cancel leaves the fence as it is.
    OperatorKeepsFence,
    /// A person's cancel writes the lease as it was read, over a renewal or a start in between.
    CancelWritesLeaseBack,
    /// A worker carries whatever is left of its lease.
    NoSelfFence,
    /// A worker looks at its lease before it records the start, and not again afterwards.
    ChecksBeforeStart,
    /// A worker counts its lease from the answer instead of from the request.
    DeadlineFromAnswer,
    /// The reaper takes what is still leased.
    ReaperIgnoresLease,
    /// The reaper counts an instance as silent before that instance does.
    ReaperIsImpatient,
    /// A worker carries although none of its heartbeats was confirmed for too long.
    CarriesAfterHeartbeatLimit,
    /// A heartbeat that is confirmed after the limit brings old claims back to life.
    LateBeatRevives,
    /// An old heartbeat that arrives after a newer one counts.
    BeatMovesBack,
    /// A renewal that is confirmed after the deadline brings the claim back to life.
    LateRenewalRevives,
    /// An old renewal that arrives after a newer one shortens the lease.
    RenewalMovesBack,
    /// The repeat of a settling whose answer was lost is told that somebody else was first.
    OwnAnswerTakenForSuperseded,
    /// A worker whose settling was not answered carries again instead of saying it again.
    CarriesAgainWhenUnheard,
    /// A lost lease doesn't count.
    LossNotCounted,
    /// A route that holds doesn't record the start.
    StartNotRecorded,
}

impl Bug {
    pub const ALL: [Self; 18] = [
        Self::ApplyIgnoresFence,
        Self::ClaimKeepsFence,
        Self::OperatorKeepsFence,
        Self::CancelWritesLeaseBack,
        Self::NoSelfFence,
        Self::ChecksBeforeStart,
        Self::DeadlineFromAnswer,
        Self::ReaperIgnoresLease,
        Self::ReaperIsImpatient,
        Self::CarriesAfterHeartbeatLimit,
        Self::LateBeatRevives,
        Self::BeatMovesBack,
        Self::LateRenewalRevives,
        Self::RenewalMovesBack,
        Self::OwnAnswerTakenForSuperseded,
        Self::CarriesAgainWhenUnheard,
        Self::LossNotCounted,
        Self::StartNotRecorded,
    ];

    /// The smallest rules under which the mistake can do harm.
    pub fn rules(self) -> Rules {
        let rules = Rules { bug: Some(self), workers: 1, ..Rules::default() };
        match self {
            Self::ApplyIgnoresFence
            | Self::NoSelfFence
            | Self::DeadlineFromAnswer
            | Self::ReaperIgnoresLease
            | Self::LateRenewalRevives
            | Self::OwnAnswerTakenForSuperseded
            | Self::CarriesAgainWhenUnheard
            | Self::LossNotCounted => rules,
            Self::ClaimKeepsFence | Self::OperatorKeepsFence | Self::CancelWritesLeaseBack => {
                Rules { operator: true, ..rules }
            }
            Self::ChecksBeforeStart | Self::StartNotRecorded => Rules { hold: true, ..rules },
            Self::ReaperIsImpatient | Self::CarriesAfterHeartbeatLimit | Self::LateBeatRevives => {
                Rules { beats: true, ..rules }
            }
            Self::BeatMovesBack => Rules { beats: true, strays_max: 1, ..rules },
            Self::RenewalMovesBack => Rules { strays_max: 1, ..rules },
        }
    }

    /// The property that the mistake breaks.
    pub fn breaks(self) -> &'static str {
        match self {
            Self::ApplyIgnoresFence | Self::ClaimKeepsFence => NO_OLD_FENCE,
            Self::OperatorKeepsFence => CANCEL_IS_SEEN,
            Self::CancelWritesLeaseBack
            | Self::NoSelfFence
            | Self::ChecksBeforeStart
            | Self::DeadlineFromAnswer
            | Self::ReaperIgnoresLease
            | Self::ReaperIsImpatient
            | Self::CarriesAfterHeartbeatLimit
            | Self::LateBeatRevives
            | Self::BeatMovesBack
            | Self::LateRenewalRevives
            | Self::RenewalMovesBack => CARRIED_UNDER_THE_CLAIM,
            Self::OwnAnswerTakenForSuperseded => OWN_IS_KNOWN,
            Self::CarriesAgainWhenUnheard => CARRIED_ONCE,
            Self::LossNotCounted => CARRYINGS_COUNT,
            Self::StartNotRecorded => HELD_STAYS,
        }
    }
}
