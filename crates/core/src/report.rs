//! The word of an outside worker about a message that was handed off to it.

mod read;

use crate::attempt::{AttemptId, AttemptRecord, Verdict};
use crate::change::Change;
use crate::classify::Table;
use crate::message::{Message, MessageId, Name, State};
use crate::outcome::Outcome;
use crate::planted::{self, Bug};
use crate::route::Route;
use crate::settle::settle;
use crate::time::Timestamp;

/// What an outside worker says about a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Which message.
    pub message: MessageId,
    /// Which try, if it says so.
    pub attempt: Option<AttemptId>,
    /// What became of it: delivered, failed or refused.
    pub outcome: Outcome,
    /// The only workspace whose message it may be about; any if none.
    pub workspace: Option<Name>,
}

/// What a report comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Reported {
    /// It decides the try.
    Applies(Box<Change>),
    /// It is about another try, or nobody is waiting for it: it is kept in the history and changes nothing.
    Ignored(AttemptRecord),
}

/// Works out what a report does. Without an attempt id it counts only while the message is handed off. A failure whose code says
/// that it is for good is refused.
pub fn report(
    message: &Message,
    attempt: Option<&AttemptId>,
    outcome: &Outcome,
    route: &Route,
    now: Timestamp,
) -> Reported {
    let same_try =
        attempt.is_none_or(|id| *id == AttemptId::of(message)) || planted::is(Bug::LateReportApplied);
    let awaited = match message.state {
        State::HandedOff { .. } => true,
        // A quick worker reports before our own write of the handing-off; a slow one after we gave it up.
        State::Claimed(_) => attempt.is_some(),
        State::Waiting { .. } => attempt.is_some() && message.unconfirmed > 0,
        State::Delivered { .. } | State::Dead { .. } | State::Cancelled { .. } => {
            planted::is(Bug::LateReportApplied)
        }
    };
    if same_try && awaited {
        let by_its_code = match outcome {
            Outcome::Failed(failure) => &Table::common().outcome(failure.clone()),
            other => other,
        };
        let mut change = settle(message, by_its_code, route, now);
        // The claim was settled by somebody else than its own worker, who will find itself superseded.
        change.settles = None;
        change.message.settled_claim = message.settled_claim;
        return Reported::Applies(Box::new(change));
    }
    let (generation, number) =
        attempt.map_or((message.generation, message.attempts), |id| (id.generation, id.attempt));
    let failure = match outcome {
        Outcome::Failed(failure) | Outcome::Refused(failure) => Some(failure.clone()),
        _ => None,
    };
    Reported::Ignored(AttemptRecord {
        generation,
        attempt: number,
        verdict: Verdict::Late,
        at: now,
        due_at: None,
        claimed_at: None,
        sent_at: None,
        instance: None,
        failure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::DeadReason;
    use crate::outcome::Failure;
    use crate::settle::tests::{at, claimed, message, route};

    fn delivered() -> Outcome {
        Outcome::Delivered { receipt: None }
    }

    fn handed() -> Message {
        message(State::HandedOff { since: at(0), report_by: Some(at(60)) })
    }

    fn applies(message: &Message, attempt: Option<&AttemptId>) -> bool {
        matches!(report(message, attempt, &delivered(), &route(), at(10)), Reported::Applies(_))
    }

    #[test]
    fn a_report_decides_the_try_it_is_about() {
        let id = AttemptId::of(&handed());
        assert!(applies(&handed(), Some(&id)));
        assert!(applies(&handed(), None));
        let other = AttemptId { attempt: 2, ..id.clone() };
        assert!(!applies(&handed(), Some(&other)));
        let older = AttemptId { generation: 1, ..id };
        assert!(!applies(&handed(), Some(&older)));
    }

    #[test]
    fn a_report_that_overtakes_our_own_write_counts() {
        let id = AttemptId::of(&claimed());
        let Reported::Applies(change) = report(&claimed(), Some(&id), &delivered(), &route(), at(1)) else {
            panic!("it counts")
        };
        assert_eq!(change.message.settled_claim, None, "the worker's own write is then superseded");
        assert!(!applies(&claimed(), None));
    }

    #[test]
    fn a_report_on_a_try_that_was_given_up_still_counts() {
        let waiting = Message { unconfirmed: 1, ..message(State::Waiting { parked_for: None }) };
        assert!(applies(&waiting, Some(&AttemptId::of(&waiting))));
        assert!(!applies(&waiting, None));
        let never_handed = message(State::Waiting { parked_for: None });
        assert!(!applies(&never_handed, Some(&AttemptId::of(&never_handed))));
    }

    #[test]
    fn a_failure_that_is_for_good_by_its_code_is_not_tried_again() {
        let after = |code: &str| {
            let outcome = Outcome::Failed(Failure::new("no").with_code(code));
            match report(&handed(), None, &outcome, &route(), at(10)) {
                Reported::Applies(change) => change.message.state,
                Reported::Ignored(record) => panic!("{record:?}"),
            }
        };
        for code in ["INVALID_RECIPIENT", "AUTH_REVOKED"] {
            assert!(matches!(after(code), State::Dead { reason: DeadReason::Refused, .. }), "{code}");
        }
        for code in ["ECONNRESET", "EBUSY"] {
            assert!(matches!(after(code), State::Waiting { .. }), "{code}");
        }
    }

    #[test]
    fn a_report_on_what_has_ended_is_kept_and_changes_nothing() {
        let done = message(State::Delivered { at: at(0), receipt: None });
        let outcome = Outcome::Failed(Failure::new("too late"));
        let Reported::Ignored(record) = report(&done, None, &outcome, &route(), at(9)) else {
            panic!("ignored")
        };
        assert_eq!((record.verdict, record.failure), (Verdict::Late, Some(Failure::new("too late"))));
    }
}
