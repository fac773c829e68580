//! What a person does to a message: start it over, stop it, put it away.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::change::{Audit, Change};
use crate::event::{Event, Kind};
use crate::message::{Fate, Lease, Message, State};
use crate::planted::{self, Bug};
use crate::route::Route;
use crate::time::Timestamp;

/// What a person wants done.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A fresh budget, due now.
    Retry,
    /// Stop it before it goes out.
    Cancel,
    /// Put a dead one away.
    Dismiss,
    /// Bring a dismissed one back.
    Restore,
}

impl Action {
    /// The action's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
            Self::Dismiss => "dismiss",
            Self::Restore => "restore",
        }
    }
}

/// Why an action makes no sense for a message as it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {action} a message that is {state}: {hint}")]
pub struct Unfit {
    /// What was wanted, by its word.
    pub action: &'static str,
    /// Where the message stands.
    pub state: &'static str,
    /// What can be done instead.
    pub hint: &'static str,
}

/// Works out what an action does to a message.
pub fn operate(
    message: &Message,
    action: Action,
    actor: &Arc<str>,
    route: &Route,
    now: Timestamp,
) -> Result<Change, Unfit> {
    let (next, kind) = match action {
        Action::Retry => retry(message, route, now),
        Action::Cancel => cancel(message, now),
        Action::Dismiss => dismiss(message, now),
        Action::Restore => restore(message),
    }
    .map_err(|hint| Unfit { action: action.name(), state: message.state.name(), hint })?;
    let event = Event::of(&next, kind, now);
    let mut change = Change::new(message, next, event);
    change.audit = Some(Audit {
        actor: actor.clone(),
        action: action.name(),
        subject: message.id.to_string().into(),
        at: now,
        detail: None,
    });
    Ok(change)
}

pub(crate) fn retry(
    message: &Message,
    route: &Route,
    now: Timestamp,
) -> Result<(Message, Kind), &'static str> {
    match message.state {
        State::Dead { .. } | State::Cancelled { .. } | State::Waiting { .. } => {}
        State::Claimed(_) => return Err("it is being sent now; look again in a moment"),
        State::HandedOff { .. } => return Err("an outside worker has it; wait for its report"),
        State::Delivered { .. } => return Err("it has arrived; send a new message to send it again"),
    }
    let mut next = message.clone();
    next.state = State::Waiting { parked_for: None };
    next.due_at = now;
    if !planted::is(Bug::RetryKeepsAttemptId) {
        next.generation += 1;
    }
    // A message that came with its budget spent gets a whole one, or its retry would be no retry.
    next.attempts =
        if message.attempts_before < route.max_attempts(message) { message.attempts_before } else { 0 };
    next.losses = 0;
    next.unconfirmed = 0;
    next.last_error = None;
    // Who has it keeps it; everybody else is tried again, those who were refused included.
    next.recipients.retain(|known| known.fate == Fate::Delivered);
    if next.is_expired(now) {
        next.expires_at = None;
    }
    Ok((next, Kind::Retried))
}

fn cancel(message: &Message, now: Timestamp) -> Result<(Message, Kind), &'static str> {
    let mut next = message.clone();
    match &message.state {
        State::Waiting { .. } => {
            let reason: Arc<str> = "operator".into();
            next.state = State::Cancelled { at: now, reason: reason.clone() };
            Ok((next, Kind::Cancelled { reason }))
        }
        State::Claimed(lease) => {
            next.state = State::Claimed(Lease { cancel_requested: true, ..lease.clone() });
            Ok((next, Kind::CancelRequested))
        }
        State::HandedOff { .. } => Err("an outside worker has it already"),
        State::Delivered { .. } => Err("it has arrived"),
        State::Dead { .. } => Err("it is given up already; dismiss it to put it away"),
        State::Cancelled { .. } => Err("it is cancelled already"),
    }
}

fn dismiss(message: &Message, now: Timestamp) -> Result<(Message, Kind), &'static str> {
    match message.state {
        State::Dead { at, reason, dismissed_at: None } => {
            let mut next = message.clone();
            next.state = State::Dead { at, reason, dismissed_at: Some(now) };
            Ok((next, Kind::Dismissed))
        }
        State::Dead { .. } => Err("it is dismissed already"),
        State::Waiting { .. } | State::Claimed(_) => Err("cancel it instead"),
        State::HandedOff { .. } => Err("wait for its report"),
        State::Delivered { .. } | State::Cancelled { .. } => Err("it goes by itself when its retention ends"),
    }
}

fn restore(message: &Message) -> Result<(Message, Kind), &'static str> {
    match message.state {
        State::Dead { at, reason, dismissed_at: Some(_) } => {
            let mut next = message.clone();
            next.state = State::Dead { at, reason, dismissed_at: None };
            Ok((next, Kind::Restored))
        }
        State::Dead { .. }
        | State::Waiting { .. }
        | State::Claimed(_)
        | State::HandedOff { .. }
        | State::Delivered { .. }
        | State::Cancelled { .. } => Err("only a dismissed one can be brought back"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{GateKey, Scope};
    use crate::message::DeadReason;
    use crate::outcome::Failure;
    use crate::settle::tests::{at, claimed, message, route};

    fn dead() -> Message {
        let state = State::Dead { at: at(1), reason: DeadReason::Refused, dismissed_at: None };
        Message { attempts: 3, losses: 2, last_error: Some(Failure::new("x")), ..message(state) }
    }

    fn act(message: &Message, action: Action) -> Result<Change, Unfit> {
        operate(message, action, &"ada".into(), &route(), at(500))
    }

    #[test]
    fn a_retry_starts_over_with_a_fresh_budget_and_another_attempt_id() {
        let change = act(&Message { attempts_before: 1, ..dead() }, Action::Retry).unwrap();
        let after = &change.message;
        assert_eq!((after.attempts, after.losses, after.generation, after.due_at), (1, 0, 1, at(500)));
        assert_eq!((after.fence, after.last_error.clone()), (8, None));
        assert_eq!(change.audit.unwrap().actor.as_ref(), "ada");
    }

    #[test]
    fn a_retry_of_what_came_with_its_budget_spent_gets_a_whole_one() {
        let change = act(&Message { attempts_before: 3, ..dead() }, Action::Retry).unwrap();
        assert_eq!(change.message.attempts, 0);
    }

    #[test]
    fn a_retry_of_what_has_expired_is_worth_sending_again() {
        let change = act(&Message { expires_at: Some(at(100)), ..dead() }, Action::Retry).unwrap();
        assert_eq!(change.message.expires_at, None);
        let change = act(&Message { expires_at: Some(at(900)), ..dead() }, Action::Retry).unwrap();
        assert_eq!(change.message.expires_at, Some(at(900)));
    }

    #[test]
    fn a_retry_takes_a_parked_one_out_of_its_park() {
        let parked = State::Waiting { parked_for: Some(GateKey::pause(Scope::Route, "email")) };
        let change = act(&message(parked), Action::Retry).unwrap();
        assert_eq!(change.message.state, State::Waiting { parked_for: None });
    }

    #[test]
    fn cancelling_a_claimed_one_is_only_a_request() {
        let change = act(&claimed(), Action::Cancel).unwrap();
        assert_eq!(change.event.kind, Kind::CancelRequested);
        assert_eq!(change.message.state.name(), "claimed");
        assert_eq!(change.message.fence, 8, "so that the worker's own write has to look again");
    }

    #[test]
    fn each_action_fits_only_some_states() {
        let waiting = message(State::Waiting { parked_for: None });
        let handed = message(State::HandedOff { since: at(0), report_by: None });
        let delivered = message(State::Delivered { at: at(0), receipt: None });
        let cancelled = message(State::Cancelled { at: at(0), reason: "operator".into() });
        let dismissed = act(&dead(), Action::Dismiss).unwrap().message;
        let rows = [
            (&waiting, [true, true, false, false]),
            (&claimed(), [false, true, false, false]),
            (&handed, [false, false, false, false]),
            (&delivered, [false, false, false, false]),
            (&dead(), [true, false, true, false]),
            (&dismissed, [true, false, false, true]),
            (&cancelled, [true, false, false, false]),
        ];
        let actions = [Action::Retry, Action::Cancel, Action::Dismiss, Action::Restore];
        for (message, fits) in rows {
            for (action, fit) in actions.into_iter().zip(fits) {
                let result = act(message, action);
                assert_eq!(result.is_ok(), fit, "{} of {:?}", action.name(), message.state);
                if let Err(unfit) = result {
                    assert!(unfit.to_string().starts_with(&format!("cannot {} a message", action.name())));
                }
            }
        }
    }
}
