//! Whether a step may follow the one before it, as that one stands.

use std::time::Duration;

use crate::calendar::Zone;
use crate::message::{DeadReason, Message, State};
use crate::time::Timestamp;

/// How soon a step is looked at again whose step before has not gone out.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Whether a step may go out, as far as the step before it is concerned.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Follows {
    /// Nothing stands against it.
    Now,
    /// Not before this time.
    NotBefore {
        /// The time.
        at: Timestamp,
        /// Why.
        reason: &'static str,
    },
    /// Whoever it is for can't be reached.
    Never {
        /// Why.
        reason: &'static str,
    },
}

/// Whether a step may follow the message of the step before it, so many local days later.
pub fn follows(before: &Message, delay_days: u32, zone: &Zone, now: Timestamp) -> Follows {
    let days_after = |at: Timestamp| match delay_days {
        0 => at,
        days => zone.day_start(zone.local_day(at).plus(i32::try_from(days).unwrap_or(i32::MAX))),
    };
    match &before.state {
        State::Delivered { at, .. } if days_after(*at) > now => {
            Follows::NotBefore { at: days_after(*at), reason: "too soon after the step before it" }
        }
        State::Dead { reason: DeadReason::Refused, .. } => Follows::Never { reason: "step_before_refused" },
        State::Delivered { .. } | State::Dead { .. } | State::Cancelled { .. } => Follows::Now,
        State::Waiting { .. } | State::Claimed(_) | State::HandedOff { .. } => Follows::NotBefore {
            at: days_after(before.due_at.max(now)).max(now.plus(LOOK_AGAIN)),
            reason: "the step before it has not gone out",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::{NewMessage, admit};
    use crate::policy::{Backoff, Jitter};
    use crate::{Content, MessageId, Policy, Route};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_step_follows_what_went_out_and_waits_for_what_has_not() {
        let policy = Policy {
            backoff: Backoff::Table(vec![Duration::from_secs(60)]),
            jitter: Jitter::None,
            max_attempts: 4,
            expires_after: None,
        };
        let now = at("2026-12-03T10:00:00Z");
        let route = Route::new("email", "smtp", policy);
        let new = NewMessage::new("email", Content::default());
        let mut before = admit(new, &route, MessageId::own(1), None, at("2026-12-01T23:30:00Z")).message;
        let zone: Zone = "Europe/Paris".parse().unwrap();
        let mut check = |state: State, expected: Follows| {
            before.state = state;
            assert_eq!(follows(&before, 2, &zone, now), expected, "{:?}", before.state);
        };
        let delivered = |text: &str| State::Delivered { at: at(text), receipt: None };
        let dead = |reason| State::Dead { at: now, reason, dismissed_at: None };
        let too_soon = "too soon after the step before it";
        check(delivered("2026-12-01T22:30:00Z"), Follows::Now);
        check(
            delivered("2026-12-01T23:30:00Z"),
            Follows::NotBefore { at: at("2026-12-03T23:00:00Z"), reason: too_soon },
        );
        check(dead(DeadReason::Refused), Follows::Never { reason: "step_before_refused" });
        check(dead(DeadReason::AttemptsExhausted), Follows::Now);
        check(
            State::Waiting { parked_for: None },
            Follows::NotBefore {
                at: at("2026-12-04T23:00:00Z"),
                reason: "the step before it has not gone out",
            },
        );
    }
}
