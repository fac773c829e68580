//! Something done to many messages: to which, how fast, how far it has come, and when it stops by itself.
//!
//! A careful one goes in stages of 1, 10 and 100 messages before all the others, and looks after each stage whether those
//! fail again.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::change::Audit;
use crate::message::{InstanceId, Message, State};
use crate::operate::Action;
use crate::time::Timestamp;

/// Messages of each careful stage.
pub const STAGES: [usize; 3] = [1, 10, 100];

/// Messages in a second, at most.
pub const RATE_PER_S_MAX: u32 = 1_000;

/// Messages that may be named one by one.
pub const IDS_MAX: usize = 500;

/// Something done to many messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bulk {
    /// Which one.
    pub id: Arc<str>,
    /// Goes up with every change; a change names the one that it read (0: there was none).
    #[serde(skip)]
    pub version: u64,
    /// Who wants it.
    pub actor: Arc<str>,
    /// What: `retry`, `cancel` or `dismiss`.
    pub action: Action,
    /// To which.
    pub which: Which,
    /// How many in a second.
    pub rate_per_s: u32,
    /// Whether it goes in stages first.
    pub is_careful: bool,
    /// Where it stands.
    pub standing: Standing,
    /// Why it stopped by itself.
    pub why: Option<Arc<str>>,
    /// How many it was done to.
    pub done: u64,
    /// How many were no longer as they should be.
    pub skipped: u64,
    /// How many there were to do when it began, once they have been counted.
    #[serde(default)]
    pub total: Option<Total>,
    /// How long somebody has been at it, pauses left out.
    #[serde(default)]
    pub worked_ms: u64,
    /// Behind which message it goes on, or how many of those that were named are behind it.
    pub after: Option<Arc<str>>,
    /// The stage that it is in.
    pub stage: usize,
    /// The messages of this stage, with the generation that each was given.
    pub trial: Vec<(Arc<str>, u32)>,
    /// Who works on it, and until when nobody else does.
    pub held: Option<(InstanceId, Timestamp)>,
    /// Since when.
    pub created_at: Timestamp,
    /// When something happened last.
    pub updated_at: Timestamp,
}

/// How fast, and how carefully.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How many in a second.
    pub rate_per_s: u32,
    /// Whether it goes in stages first.
    pub is_careful: bool,
}

/// How many messages there are to do.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// As many as were counted.
    pub count: u64,
    /// Whether there may be more.
    pub is_least: bool,
}

/// Which messages, as somebody asked for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Which {
    /// These.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Arc<str>>,
    /// Of this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Arc<str>>,
    /// Of this route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Arc<str>>,
    /// Of this workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Arc<str>>,
    /// Of this priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Arc<str>>,
    /// With this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Arc<str>>,
    /// For somebody with this in the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// With an error that has this in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whose last error has this fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Accepted then or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Accepted before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Timestamp>,
}

/// Where it stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It goes on.
    Running,
    /// A person has it wait.
    Paused,
    /// A person ended it, or it ended itself because messages failed again.
    Stopped,
    /// All that fit are done.
    Done,
}

impl Standing {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Done => "done",
        }
    }

    /// Whether nothing more will happen.
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Stopped | Self::Done)
    }
}

/// What became of a message of a stage.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fared {
    /// It went out, or is gone.
    Well,
    /// It failed again.
    Badly,
    /// Nobody knows yet.
    Open,
}

/// What a finished stage comes to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not all of it is known.
    Wait,
    /// The next stage may begin.
    GoOn,
    /// Too many failed again.
    Stop {
        /// How many.
        failed: usize,
    },
}

impl Bulk {
    /// One that begins now. Only what goes out again can fail again: nothing else is careful.
    pub fn new(
        id: impl Into<Arc<str>>,
        actor: impl Into<Arc<str>>,
        action: Action,
        which: Which,
        pace: Pace,
        now: Timestamp,
    ) -> Self {
        Self {
            id: id.into(),
            version: 0,
            actor: actor.into(),
            action,
            which,
            rate_per_s: pace.rate_per_s,
            is_careful: pace.is_careful && action == Action::Retry,
            standing: Standing::Running,
            why: None,
            done: 0,
            skipped: 0,
            total: None,
            worked_ms: 0,
            after: None,
            stage: 0,
            trial: Vec::new(),
            held: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// How many messages may come next, before this stage is looked at.
    pub fn room(&self) -> usize {
        match STAGES.get(self.stage) {
            Some(len) if self.is_careful => len.saturating_sub(self.trial.len()),
            _ => usize::MAX,
        }
    }

    /// Puts down that a message was done.
    pub fn note(&mut self, after: &Message) {
        self.done += 1;
        if self.is_careful && self.stage < STAGES.len() {
            self.trial.push((after.id.to_string().into(), after.generation));
        }
    }

    /// How many are left: none once it has ended, and nobody knows before all of them were counted.
    pub fn left(&self) -> Option<u64> {
        match self.total {
            _ if self.standing.has_ended() => Some(0),
            Some(Total { count, is_least: false }) => Some(count.saturating_sub(self.done)),
            Some(Total { is_least: true, .. }) | None => None,
        }
    }

    /// How many it has done in a second so far; unknown in the first second.
    pub fn pace_per_s(&self) -> Option<f64> {
        (self.worked_ms >= 1_000).then(|| self.done as f64 * 1_000.0 / self.worked_ms as f64)
    }

    /// Puts down that it is now, and that somebody was at it since the last time: not longer than a worker may be silent.
    pub fn worked(&mut self, now: Timestamp, silent_max: Duration) {
        let worked = now.since(self.updated_at).min(silent_max);
        self.worked_ms += u64::try_from(worked.as_millis()).unwrap_or(u64::MAX);
        self.updated_at = now;
    }

    /// Whether what is wanted makes sense for a message as it stands. What died since it began may be what it has
    /// retried itself, before a crash.
    pub fn fits(&self, message: &Message) -> bool {
        match self.action {
            Action::Retry => matches!(message.state, State::Dead { at, .. } if at <= self.created_at),
            Action::Dismiss => matches!(message.state, State::Dead { dismissed_at: None, .. }),
            Action::Restore => matches!(message.state, State::Dead { dismissed_at: Some(_), .. }),
            Action::Cancel => message.state.ended_at().is_none(),
        }
    }

    /// A person's word: `pause`, `resume` or `stop`. `None` if it makes no sense as things stand.
    pub fn told(&self, word: &str, now: Timestamp) -> Option<Self> {
        let standing = match (word, self.standing) {
            ("pause", Standing::Running) => Standing::Paused,
            ("resume", Standing::Paused) => Standing::Running,
            ("stop", Standing::Running | Standing::Paused) => Standing::Stopped,
            _ => return None,
        };
        Some(Self { standing, held: None, updated_at: now, ..self.clone() })
    }

    /// Who did what to it.
    pub fn audit(&self, actor: &Arc<str>, action: &'static str, at: Timestamp) -> Audit {
        Audit { actor: actor.clone(), action, subject: format!("bulk:{}", self.id).into(), at, detail: None }
    }
}

/// How a message of a stage fared since it was given this generation.
pub fn fared(message: Option<&Message>, generation: u32) -> Fared {
    let Some(message) = message else { return Fared::Well };
    match &message.state {
        _ if message.generation > generation => Fared::Well,
        State::Delivered { .. } | State::HandedOff { .. } | State::Cancelled { .. } => Fared::Well,
        State::Dead { .. } => Fared::Badly,
        State::Waiting { .. } if message.attempts > message.attempts_before => Fared::Badly,
        State::Waiting { .. } | State::Claimed(_) => Fared::Open,
    }
}

/// What a stage comes to: it stops everything if more than a fifth failed again.
pub fn judge(fared: &[Fared]) -> Verdict {
    let failed = fared.iter().filter(|fared| **fared == Fared::Badly).count();
    if failed * 5 > fared.len() {
        Verdict::Stop { failed }
    } else if fared.contains(&Fared::Open) {
        Verdict::Wait
    } else {
        Verdict::GoOn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { rate_per_s: 50, is_careful: true };

    fn bulk() -> Bulk {
        Bulk::new("b", "ada", Action::Retry, Which::default(), PACE, Timestamp::from_ms(0))
    }

    #[test]
    fn only_what_goes_out_again_goes_carefully() {
        let careful =
            |action| Bulk::new("b", "ada", action, Which::default(), PACE, Timestamp::from_ms(0)).is_careful;
        assert_eq!([Action::Retry, Action::Cancel, Action::Dismiss].map(careful), [true, false, false]);
    }

    #[test]
    fn how_fast_it_goes_leaves_out_pauses_and_the_time_in_which_nobody_was_at_it() {
        let (at, silent_max) = (|s: i64| Timestamp::from_ms(s * 1_000), Duration::from_secs(10));
        let mut bulk = bulk();
        assert_eq!(bulk.pace_per_s(), None);
        bulk.done = 80;
        bulk.worked(at(4), silent_max);
        assert_eq!(bulk.pace_per_s(), Some(20.0));
        let mut resumed = bulk.told("pause", at(4)).unwrap().told("resume", at(1_000)).unwrap();
        resumed.worked(at(1_001), silent_max);
        assert_eq!(resumed.worked_ms, 5_000);
        resumed.worked(at(9_000), silent_max);
        assert_eq!(resumed.worked_ms, 15_000, "whoever was at it had vanished");
    }

    #[test]
    fn how_many_are_left_is_not_said_where_more_may_come_than_were_counted() {
        let left = |standing, is_least, done| {
            let total = Some(Total { count: 10_000, is_least });
            Bulk { standing, total, done, ..bulk() }.left()
        };
        assert_eq!(left(Standing::Running, false, 9_000), Some(1_000));
        assert_eq!(left(Standing::Running, true, 9_000), None);
        assert_eq!(left(Standing::Running, true, 12_000), None, "it goes on");
        assert_eq!(left(Standing::Done, true, 12_000), Some(0));
        assert_eq!((bulk().left(), Bulk { standing: Standing::Stopped, ..bulk() }.left()), (None, Some(0)));
    }

    #[test]
    fn what_was_written_before_there_was_a_total_is_read() {
        let mut written = serde_json::to_value(bulk()).unwrap();
        let fields = written.as_object_mut().unwrap();
        assert!(fields.remove("total").is_some() && fields.remove("worked_ms").is_some());
        assert_eq!(serde_json::from_value::<Bulk>(written).unwrap(), bulk());
    }

    #[test]
    fn a_stage_stops_everything_once_more_than_a_fifth_failed_again() {
        use Fared::{Badly, Open, Well};
        let stage = |badly: usize, open: usize, well: usize| {
            judge(&[vec![Badly; badly], vec![Open; open], vec![Well; well]].concat())
        };
        assert_eq!(stage(1, 0, 0), Verdict::Stop { failed: 1 });
        assert_eq!(stage(0, 1, 0), Verdict::Wait);
        assert_eq!(stage(0, 0, 1), Verdict::GoOn);
        assert_eq!(stage(2, 1, 7), Verdict::Wait);
        assert_eq!(stage(2, 0, 8), Verdict::GoOn);
        assert_eq!(stage(3, 7, 0), Verdict::Stop { failed: 3 }, "without waiting for the others");
        assert_eq!(stage(0, 0, 0), Verdict::GoOn);
    }
}
