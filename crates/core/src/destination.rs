//! What an outcome says about the destination, beyond the one message.

use std::time::Duration;

use crate::gate::{Closed, GateKey, Scope};
use crate::outcome::{Blame, Failure, Outcome, Until};
use crate::route::{OnAuthError, Route};
use crate::time::Timestamp;

/// How long a refused login is left alone before one message finds out whether it is good again. Long enough that
/// nobody's account is locked for it.
pub const HOLD_PROBE: Duration = Duration::from_secs(300);

/// What the connection to a destination has just shown.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It answered, whatever it said.
    Answered,
    /// It could not be reached.
    Unreachable,
    /// Nothing was tried.
    Silent,
}

/// An outcome with its consequences for everybody who goes to the same destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Consequence {
    /// The outcome for the message itself, if this try closes the gate.
    outcome: Outcome,
    /// The gate that closes for all, and how.
    pub close: Option<(GateKey, Closed, &'static str)>,
    /// What the breaker learns.
    pub sign: Sign,
}

/// Where a try was bound for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Bound<'a> {
    /// Where to.
    pub destination: &'a str,
    /// Whose mail it is, if it is a campaign's.
    pub sender: Option<&'a str>,
    /// Whether the destination is held as the try comes to its end: it was to find out whether the login is good again, or
    /// was under way already when the hold began.
    pub is_held: bool,
}

impl Consequence {
    /// The outcome for the message itself, once it is known whether this try was the one that closed the gate. A hold costs
    /// the message that closed it, and none of those that were under way with it.
    pub fn outcome(self, has_closed: bool) -> Outcome {
        match (self.outcome, self.close) {
            (Outcome::Refused(_), Some((key, Closed::Held { .. }, _))) if !has_closed => held(key),
            (outcome, _) => outcome,
        }
    }
}

/// Works out what an outcome means for the message's destination.
pub fn consequence(outcome: Outcome, bound: Bound<'_>, route: &Route, now: Timestamp) -> Consequence {
    let sign = sign(&outcome);
    let (outcome, close) = match outcome {
        Outcome::Failed(failure) => failed(failure, bound, route, now),
        other => (other, None),
    };
    Consequence { outcome, close, sign }
}

fn failed(
    failure: Failure,
    bound: Bound<'_>,
    route: &Route,
    now: Timestamp,
) -> (Outcome, Option<(GateKey, Closed, &'static str)>) {
    match (failure.blame, failure.retry_after) {
        (Blame::Credential, _) => {
            // Of a destination that is held, nobody's own login is known to be bad.
            let sender = bound.sender.filter(|_| !bound.is_held);
            let (key, reason) = match sender {
                Some(sender) => (
                    GateKey::hold(Scope::Sender, sender),
                    "the destination does not accept the sender's login",
                ),
                None => {
                    let key = GateKey::hold(Scope::Destination, bound.destination);
                    (key, "the destination does not accept the login")
                }
            };
            let probe_at = match (route.on_auth_error, sender) {
                // Whoever found out would be refused: a person opens it.
                (OnAuthError::RefuseAndHold, Some(_)) => None,
                (OnAuthError::RefuseAndHold, None) | (OnAuthError::Hold, _) => Some(now.plus(HOLD_PROBE)),
            };
            let close = Some((key.clone(), Closed::Held { probe_at }, reason));
            let outcome = match (route.on_auth_error, bound.is_held) {
                // A hold costs one message, and not one more each time that somebody finds out.
                (OnAuthError::Hold, _) | (OnAuthError::RefuseAndHold, true) => held(key),
                (OnAuthError::RefuseAndHold, false) => Outcome::Refused(failure),
            };
            (outcome, close)
        }
        (Blame::Throttle, Some(wait)) => {
            let until = now.plus(wait.min(route.retry_after_max));
            let key = GateKey::throttle(bound.destination);
            (
                Outcome::Failed(failure),
                Some((key, Closed::Throttled(until), "the destination asked to slow down")),
            )
        }
        (Blame::Message | Blame::Connection | Blame::Throttle, _) => (Outcome::Failed(failure), None),
    }
}

fn held(key: GateKey) -> Outcome {
    Outcome::Deferred { until: Until::Opens(key), reason: "login refused: held".into() }
}

fn sign(outcome: &Outcome) -> Sign {
    match outcome {
        Outcome::Failed(failure) if failure.blame == Blame::Connection => Sign::Unreachable,
        Outcome::Delivered { .. }
        | Outcome::HandedOff
        | Outcome::Partial(_)
        | Outcome::Failed(_)
        | Outcome::Refused(_) => Sign::Answered,
        Outcome::Deferred { .. } | Outcome::Skipped { .. } | Outcome::Lost { .. } => Sign::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settle::tests::route;

    fn at(s: i64) -> Timestamp {
        Timestamp::from_ms(s * 1_000)
    }

    const MX: Bound<'_> = Bound { destination: "mx", sender: None, is_held: false };

    #[test]
    fn a_refused_login_holds_the_destination_and_costs_no_try() {
        let failure = Failure::new("535 no").blaming(Blame::Credential);
        let all = consequence(Outcome::Failed(failure), MX, &route(), at(0));
        assert!(matches!(all.outcome, Outcome::Deferred { until: Until::Opens(_), .. }));
        assert_eq!(all.close.unwrap().0.as_str(), "hold:destination:mx");
    }

    #[test]
    fn a_refused_login_that_refuses_costs_one_message_and_the_destination_is_probed_again() {
        let failure = Failure::new("535 no").blaming(Blame::Credential);
        let strict = Route { on_auth_error: OnAuthError::RefuseAndHold, ..route() };
        let all = consequence(Outcome::Failed(failure.clone()), MX, &strict, at(0));
        assert_eq!(all.outcome, Outcome::Refused(failure.clone()));
        let held = Closed::Held { probe_at: Some(at(0).plus(HOLD_PROBE)) };
        assert_eq!(all.close.unwrap().1, held, "a good login opens it, and not only a person");
        for sender in [None, Some("ada@example.org")] {
            let bound = Bound { is_held: true, sender, ..MX };
            let probe = consequence(Outcome::Failed(failure.clone()), bound, &strict, at(0));
            assert!(matches!(probe.outcome, Outcome::Deferred { until: Until::Opens(_), .. }), "{probe:?}");
            let (key, closed, _) = probe.close.unwrap();
            assert_eq!((key.as_str(), closed), ("hold:destination:mx", held.clone()));
        }
    }

    #[test]
    fn a_refused_login_of_a_campaign_holds_its_sender_until_a_person_lets_it_go() {
        let failure = Failure::new("535 no").blaming(Blame::Credential);
        let strict = Route { on_auth_error: OnAuthError::RefuseAndHold, ..route() };
        let ada = Bound { sender: Some("ada@example.org"), ..MX };
        let all = consequence(Outcome::Failed(failure.clone()), ada, &strict, at(0));
        let (key, closed, _) = all.close.unwrap();
        assert_eq!(key.as_str(), "hold:sender:ada@example.org");
        assert_eq!(closed, Closed::Held { probe_at: None }, "a probe would cost one more message");
        assert_eq!(all.outcome, Outcome::Refused(failure));
    }

    #[test]
    fn a_hold_costs_the_message_that_closed_it_and_none_that_was_under_way_with_it() {
        let failure = Failure::new("535 no").blaming(Blame::Credential);
        let strict = Route { on_auth_error: OnAuthError::RefuseAndHold, ..route() };
        for sender in [None, Some("ada@example.org")] {
            let bound = Bound { sender, ..MX };
            let all = consequence(Outcome::Failed(failure.clone()), bound, &strict, at(0));
            let key = all.close.clone().unwrap().0;
            assert_eq!(all.clone().outcome(true), Outcome::Refused(failure.clone()));
            let waits = all.outcome(false);
            assert!(matches!(&waits, Outcome::Deferred { until: Until::Opens(gate), .. } if *gate == key));
        }
        let refused = Outcome::Refused(Failure::new("550 no such user"));
        assert_eq!(consequence(refused.clone(), MX, &strict, at(0)).outcome(false), refused);
    }

    #[test]
    fn a_plea_to_slow_down_holds_the_siblings_no_longer_than_allowed() {
        let route = Route { retry_after_max: Duration::from_secs(60), ..route() };
        let failure =
            Failure::new("429").blaming(Blame::Throttle).with_retry_after(Duration::from_secs(3_600));
        let all = consequence(Outcome::Failed(failure), MX, &route, at(0));
        assert_eq!(all.close.unwrap().1, Closed::Throttled(at(60)));
        assert_eq!(all.sign, Sign::Answered);
    }

    #[test]
    fn only_what_was_tried_speaks_of_the_connection() {
        let sign = |outcome| consequence(outcome, MX, &route(), at(0)).sign;
        assert_eq!(sign(Outcome::Failed(Failure::new("x").blaming(Blame::Connection))), Sign::Unreachable);
        assert_eq!(sign(Outcome::Refused(Failure::new("550"))), Sign::Answered);
        assert_eq!(sign(Outcome::Lost { reason: "".into() }), Sign::Silent);
        assert_eq!(sign(Outcome::Skipped { reason: "".into() }), Sign::Silent);
    }
}
