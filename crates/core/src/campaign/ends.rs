//! How many mails of a campaign have come to an end without going out, and what one change of a message adds to that.

use std::ops::AddAssign;

use super::key::StepKey;
use crate::message::{Message, State};

/// Mails of a campaign that have come to an end without going out.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Given up, and nobody has put them away.
    pub dead: u64,
    /// Given up, and put away by a person.
    pub dismissed: u64,
    /// Stopped before they went out.
    pub cancelled: u64,
}

/// What is added to these counts, or taken from them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct EndsMoved {
    /// To the dead.
    pub dead: i64,
    /// To the dismissed.
    pub dismissed: i64,
    /// To the cancelled.
    pub cancelled: i64,
}

impl EndsMoved {
    /// What a message moves that stood there and now stands here; nothing, if it isn't called as mails of campaigns are.
    pub fn between(before: &Message, after: &Message) -> Self {
        let moved = Self::of_states(&before.state, &after.state);
        let is_mail = |key: &str| key.parse::<StepKey>().is_ok();
        if moved.is_nothing() || after.key.as_deref().is_some_and(is_mail) { moved } else { Self::default() }
    }

    fn of_states(before: &State, after: &State) -> Self {
        let mut moved = Self::default();
        for (state, by) in [(before, -1), (after, 1)] {
            match state {
                State::Dead { dismissed_at: None, .. } => moved.dead += by,
                State::Dead { dismissed_at: Some(_), .. } => moved.dismissed += by,
                State::Cancelled { .. } => moved.cancelled += by,
                State::Waiting { .. }
                | State::Claimed(_)
                | State::HandedOff { .. }
                | State::Delivered { .. } => {}
            }
        }
        moved
    }

    /// Whether it changes nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for EndsMoved {
    fn add_assign(&mut self, other: Self) {
        self.dead += other.dead;
        self.dismissed += other.dismissed;
        self.cancelled += other.cancelled;
    }
}

impl AddAssign<EndsMoved> for Ends {
    fn add_assign(&mut self, moved: EndsMoved) {
        self.dead = self.dead.saturating_add_signed(moved.dead);
        self.dismissed = self.dismissed.saturating_add_signed(moved.dismissed);
        self.cancelled = self.cancelled.saturating_add_signed(moved.cancelled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::message::DeadReason;

    #[test]
    fn what_ends_is_counted_once_and_what_comes_back_is_counted_no_more() {
        let at = Timestamp::default();
        let waiting = State::Waiting { parked_for: None };
        let dead = State::Dead { at, reason: DeadReason::Refused, dismissed_at: None };
        let dismissed = State::Dead { at, reason: DeadReason::Refused, dismissed_at: Some(at) };
        let cancelled = State::Cancelled { at, reason: "replied".into() };
        let delivered = State::Delivered { at, receipt: None };
        for (before, after, moved) in [
            (&waiting, &dead, (1, 0, 0)),
            (&dead, &dismissed, (-1, 1, 0)),
            (&dismissed, &dead, (1, -1, 0)),
            (&dead, &waiting, (-1, 0, 0)),
            (&dismissed, &waiting, (0, -1, 0)),
            (&waiting, &cancelled, (0, 0, 1)),
            (&cancelled, &waiting, (0, 0, -1)),
            (&waiting, &delivered, (0, 0, 0)),
            (&dead, &dead, (0, 0, 0)),
        ] {
            let found = EndsMoved::of_states(before, after);
            assert_eq!((found.dead, found.dismissed, found.cancelled), moved, "{before:?} {after:?}");
        }
        let mut ends = Ends { dead: 1, ..Ends::default() };
        ends += EndsMoved { dead: -2, cancelled: 3, ..EndsMoved::default() };
        assert_eq!(ends, Ends { cancelled: 3, ..Ends::default() }, "never below nothing");
    }
}
