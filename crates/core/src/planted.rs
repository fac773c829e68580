//! Deliberate faults that the simulation must catch: a simulator is worth its planted bugs.
//!
//! Without the feature `planted` every question here is the constant `false`, and nothing of it is compiled in.

/// A fault that can be planted, named by what goes wrong.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each name says what goes wrong")]
pub enum Bug {
    ApplyIgnoresFence,
    ClaimKeepsFence,
    NoSelfFence,
    CarriesAfterHeartbeatLimit,
    AcksWithoutStoring,
    AttemptNotCounted,
    LossIgnoresBudget,
    OwnAnswerTakenForSuperseded,
    ReapsTooEarly,
    ClaimsBeforeDue,
    RetriesRefused,
    CarriesExpired,
    CarriesCancelled,
    DefersCostAttempts,
    DeadLetterForgotten,
    KeyIgnored,
    ConflictTakenForDuplicate,
    HoldRetriesLost,
    StartNotRecorded,
    PartialSendsToAllAgain,
    ReleaseForgotten,
    RetryKeepsAttemptId,
    LateReportApplied,
    OverdueIgnored,
    PauseIgnored,
    RetryAfterIgnored,
    AcksBeforeCommit,
    PruneTakesTheDead,
    ReentryDropped,
    LossLosesAttemptId,
    BeatsBehindTheReaper,
    PrunesOneBatch,
    IntakeKeyWithoutQueue,
    IntakeKeyWithoutSource,
    OtherContentTakenForDuplicate,
    OtherContentReplacesMessage,
    UnconfirmedIgnoresBudget,
    AnswersBeforeSync,
    FailedSyncIgnored,
    FailedCommitAnswered,
    LimitsHoldPerInstance,
}

impl Bug {
    /// All faults.
    pub const ALL: [Self; 41] = [
        Self::ApplyIgnoresFence,
        Self::ClaimKeepsFence,
        Self::NoSelfFence,
        Self::CarriesAfterHeartbeatLimit,
        Self::AcksWithoutStoring,
        Self::AttemptNotCounted,
        Self::LossIgnoresBudget,
        Self::OwnAnswerTakenForSuperseded,
        Self::ReapsTooEarly,
        Self::ClaimsBeforeDue,
        Self::RetriesRefused,
        Self::CarriesExpired,
        Self::CarriesCancelled,
        Self::DefersCostAttempts,
        Self::DeadLetterForgotten,
        Self::KeyIgnored,
        Self::ConflictTakenForDuplicate,
        Self::HoldRetriesLost,
        Self::StartNotRecorded,
        Self::PartialSendsToAllAgain,
        Self::ReleaseForgotten,
        Self::RetryKeepsAttemptId,
        Self::LateReportApplied,
        Self::OverdueIgnored,
        Self::PauseIgnored,
        Self::RetryAfterIgnored,
        Self::AcksBeforeCommit,
        Self::PruneTakesTheDead,
        Self::ReentryDropped,
        Self::LossLosesAttemptId,
        Self::BeatsBehindTheReaper,
        Self::PrunesOneBatch,
        Self::IntakeKeyWithoutQueue,
        Self::IntakeKeyWithoutSource,
        Self::OtherContentTakenForDuplicate,
        Self::OtherContentReplacesMessage,
        Self::UnconfirmedIgnoresBudget,
        Self::AnswersBeforeSync,
        Self::FailedSyncIgnored,
        Self::FailedCommitAnswered,
        Self::LimitsHoldPerInstance,
    ];
}

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Plants a fault on this thread, or takes it away.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.with(|planted| planted.set(bug));
}

/// Whether this fault is planted on this thread.
#[cfg(feature = "planted")]
pub fn is(bug: Bug) -> bool {
    PLANTED.with(|planted| planted.get() == Some(bug))
}

/// The fault that is planted on this thread, for threads that it starts.
#[cfg(feature = "planted")]
pub fn planted() -> Option<Bug> {
    PLANTED.with(std::cell::Cell::get)
}

/// The fault that is planted on this thread: none, in this build.
#[cfg(not(feature = "planted"))]
pub const fn planted() -> Option<Bug> {
    None
}

/// Whether this fault is planted: never, in this build.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn is(_: Bug) -> bool {
    false
}
