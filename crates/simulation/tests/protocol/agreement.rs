//! Holds the model's decisions against core's, row by row, so that what is checked is what is built.

use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::operate::{Action, operate};
use redeliver_core::outcome::Until;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::route::OnLost;
use redeliver_core::settle::{lapse, settle};
use redeliver_core::{
    Content, DeadReason, Failure, InstanceId, Message, MessageId, Outcome, Policy, Route, State, Timestamp,
};

use crate::model::Rules;
use crate::row::{Lease, Reason, Row, Standing, Verdict};

const NOW: Timestamp = Timestamp::from_ms(1_000);

#[test]
fn the_model_decides_as_core_does() {
    let mut compared = 0;
    for hold in [false, true] {
        let rules = Rules { hold, ..Rules::default() };
        let route = route(&rules);
        for row in rows(&rules) {
            let message = message(&row, &route);
            let mut check = |what: &str, model: Option<Row>, core: Option<Message>| {
                assert_eq!(model.map(Some), core.as_ref().map(as_row), "{what} of {row:?} (hold: {hold})");
                compared += 1;
            };
            if row.lease().is_some() {
                for verdict in [Verdict::Delivered, Verdict::Failed, Verdict::Deferred] {
                    let settled = settle(&message, &outcome(verdict), &route, NOW).message;
                    check("settling", Some(row.settle(verdict, &rules)), Some(settled));
                }
            }
            check("the lapse", row.lapse(&rules), lapse(&message, &route, NOW).map(|change| change.message));
            let act = |action| operate(&message, action, &"ada".into(), &route, NOW).ok().map(|c| c.message);
            check("the cancel", row.cancel(&rules), act(Action::Cancel));
            check("the retry", row.retry(), act(Action::Retry));
            assert_eq!(row.records_start(&rules), route.records_start(&message));
        }
    }
    println!("{compared} decisions agree");
}

/// Every row that can be, up to the numbers of its fences.
fn rows(rules: &Rules) -> Vec<Row> {
    let mut standings = vec![
        Standing::Waiting,
        Standing::Delivered,
        Standing::Dead(Reason::Exhausted),
        Standing::Dead(Reason::Uncertain),
        Standing::Dead(Reason::Poison),
        Standing::Cancelled,
    ];
    for (started, cancel_requested) in [(false, false), (false, true), (true, false), (true, true)] {
        let lease =
            Lease { owner: None, claim: 4, left: 0, started, cancel_requested, born: 0, carried: None };
        standings.push(Standing::Claimed(lease));
    }
    let mut rows = Vec::new();
    for standing in standings {
        for settled_claim in [None, Some(2)] {
            for attempts in 0..rules.attempts_max {
                for losses in 0..rules.losses_max {
                    rows.push(Row { standing, fence: 5, settled_claim, attempts, losses, ..Row::NEW });
                }
            }
        }
    }
    rows
}

fn route(rules: &Rules) -> Route {
    let policy = Policy {
        backoff: Backoff::Table(vec![std::time::Duration::from_secs(60)]),
        jitter: Jitter::None,
        max_attempts: u32::from(rules.attempts_max),
        expires_after: None,
    };
    Route {
        on_lost: if rules.hold { OnLost::Hold } else { OnLost::Retry },
        losses_max: u32::from(rules.losses_max),
        ..Route::new("email", "scripted", policy)
    }
}

fn outcome(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Delivered => Outcome::Delivered { receipt: None },
        Verdict::Failed => Outcome::Failed(Failure::new("try later")),
        Verdict::Deferred => Outcome::Deferred { until: Until::At(NOW), reason: "window".into() },
    }
}

fn message(row: &Row, route: &Route) -> Message {
    let new = NewMessage::new("email", Content::default());
    let state = match row.standing {
        Standing::Waiting => State::Waiting { parked_for: None },
        Standing::Claimed(lease) => State::Claimed(redeliver_core::Lease {
            instance: InstanceId(1),
            claim: u64::from(lease.claim),
            until_at: NOW,
            started_at: lease.started.then_some(NOW),
            cancel_requested: lease.cancel_requested,
        }),
        Standing::Delivered => State::Delivered { at: NOW, receipt: None },
        Standing::Dead(reason) => {
            let reason = match reason {
                Reason::Exhausted => DeadReason::AttemptsExhausted,
                Reason::Uncertain => DeadReason::Uncertain,
                Reason::Poison => DeadReason::Poison,
            };
            State::Dead { at: NOW, reason, dismissed_at: None }
        }
        Standing::Cancelled => State::Cancelled { at: NOW, reason: "operator".into() },
    };
    Message {
        state,
        fence: u64::from(row.fence),
        settled_claim: row.settled_claim.map(u64::from),
        generation: u32::from(row.generation),
        attempts: u32::from(row.attempts),
        losses: u32::from(row.losses),
        possible_duplicates: u32::from(row.possible_duplicates),
        ..admit(new, route, MessageId::own(1), None, NOW).message
    }
}

/// The message in small; nothing if the model has no such state.
fn as_row(message: &Message) -> Option<Row> {
    let standing = match &message.state {
        State::Waiting { .. } => Standing::Waiting,
        State::Claimed(lease) => Standing::Claimed(Lease {
            owner: None,
            claim: lease.claim as u8,
            left: 0,
            started: lease.started_at.is_some(),
            cancel_requested: lease.cancel_requested,
            born: 0,
            carried: None,
        }),
        State::Delivered { .. } => Standing::Delivered,
        State::Dead { reason: DeadReason::AttemptsExhausted, .. } => Standing::Dead(Reason::Exhausted),
        State::Dead { reason: DeadReason::Uncertain, .. } => Standing::Dead(Reason::Uncertain),
        State::Dead { reason: DeadReason::Poison, .. } => Standing::Dead(Reason::Poison),
        State::Cancelled { .. } => Standing::Cancelled,
        State::Dead { reason: DeadReason::Refused | DeadReason::Expired, .. } | State::HandedOff { .. } => {
            return None;
        }
    };
    Some(Row {
        standing,
        fence: message.fence as u8,
        settled_claim: message.settled_claim.map(|claim| claim as u8),
        generation: message.generation as u8,
        attempts: message.attempts as u8,
        losses: message.losses as u8,
        possible_duplicates: message.possible_duplicates as u8,
        version: 0,
    })
}
