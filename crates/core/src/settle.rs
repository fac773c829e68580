//! The one place that decides what a message's next state is: retried, ended, or held.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::accept::take_back_inline_try;
use crate::attempt::{AttemptRecord, Verdict};
use crate::change::{Change, NewRow};
use crate::content::ContentSource;
use crate::event::{Event, Kind};
use crate::message::{DeadReason, Fate, InstanceId, Lease, Message, MessageId, RecipientVerdict, State};
use crate::outcome::{Blame, Failure, Outcome, Until};
use crate::planted::{self, Bug};
use crate::route::{OnLost, Route};
use crate::time::Timestamp;

/// The longest time that jitter-free backoff is counted in, for losses of one message.
const LOSS_STEPS_MAX: u32 = 1_000;

/// Turns a message and the outcome of its try into its next state.
///
/// The message is claimed, or was handed off and has been reported on.
pub fn settle(message: &Message, outcome: &Outcome, route: &Route, now: Timestamp) -> Change {
    let settles = lease(message).map(|lease| lease.claim);
    let mut next = message.clone();
    next.settled_claim = settles.or(message.settled_claim);
    let change = next_state(message, next, outcome, route, now);
    Change { settles, ..change }
}

fn next_state(
    message: &Message,
    mut next: Message,
    outcome: &Outcome,
    route: &Route,
    now: Timestamp,
) -> Change {
    match outcome {
        Outcome::Delivered { receipt } => {
            count_try(&mut next);
            next.recipients.clear();
            next.state = State::Delivered { at: now, receipt: receipt.clone() };
            let lateness = now.since(message.due_at);
            finish(message, next, Kind::Delivered { lateness }, now)
        }
        Outcome::HandedOff => {
            let report_by = route.report_within.map(|within| now.plus(within));
            next.state = State::HandedOff { since: now, report_by };
            finish(message, next, Kind::HandedOff, now)
        }
        Outcome::Failed(failure) => failed(message, next, failure, route, now),
        Outcome::Refused(failure) => refused(message, next, failure, route, now),
        Outcome::Partial(verdicts) => partial(message, next, verdicts, route, now),
        Outcome::Deferred { until, reason } => deferred(message, next, until, reason, route, now),
        Outcome::Skipped { reason } => cancelled(message, next, reason.clone(), now),
        Outcome::Lost { reason } => unconfirmed(message, next, reason, route, now),
    }
}

/// Settles a message whose lease ran out: its worker vanished and nobody knows what it did.
pub fn lapse(message: &Message, route: &Route, now: Timestamp) -> Option<Change> {
    let State::Claimed(lease) = &message.state else { return None };
    let mut next = message.clone();
    let records_start = route.records_start(message);
    let surely_unsent = records_start && lease.started_at.is_none();
    match surely_unsent {
        true => take_back_inline_try(&mut next, route),
        false => next.possible_duplicates += 1,
    }
    // Whether an earlier claim has sent it, nobody can tell by its counts: those of an inline try look like tries elsewhere.
    if surely_unsent && lease.claim == 1 {
        next.first_sent_at = None;
    }
    // A suspect that never started was its neighbour's victim, not the culprit.
    if !(message.is_suspect() && surely_unsent) {
        next.losses += 1;
    }
    if planted::is(Bug::LossLosesAttemptId) {
        next.attempts += 1;
    }
    let record =
        lost_record(message, Some(lease.instance), "the worker vanished while it had the message", now);
    let mut change = if route.on_lost == OnLost::Hold
        && lease.started_at.is_some()
        && !planted::is(Bug::HoldRetriesLost)
    {
        dead(message, next, DeadReason::Uncertain, None, route, now)
    } else if next.losses >= route.losses_max && !planted::is(Bug::LossIgnoresBudget) {
        dead(message, next, DeadReason::Poison, None, route, now)
    } else {
        let wait = match next.losses {
            0 | 1 => Duration::ZERO,
            n => route.policy(message).delay(&message.id, n.min(LOSS_STEPS_MAX)),
        };
        wait_again(message, next, now.plus(wait), Kind::LeaseLost, route, now)
    };
    change.attempt = Some(record);
    Some(change)
}

/// Settles a handed-off message whose report is overdue.
pub fn overdue(message: &Message, route: &Route, now: Timestamp) -> Option<Change> {
    match &message.state {
        State::HandedOff { report_by: Some(by), .. } if *by <= now => {
            Some(unconfirmed(message, message.clone(), "no report came in time", route, now))
        }
        _ => None,
    }
}

/// Settles a message that waits, or is with somebody else, past its expiry.
pub fn expire(message: &Message, route: &Route, now: Timestamp) -> Option<Change> {
    let mut next = message.clone();
    match message.state {
        State::Waiting { .. } if message.is_expired(now) => {}
        // Nobody will ever know what the outside worker made of it.
        State::HandedOff { .. } if message.is_expired(now) => next.possible_duplicates += 1,
        _ => return None,
    }
    Some(dead(message, next, DeadReason::Expired, None, route, now))
}

/// Settles a waiting message that nobody would ever claim: one that somebody else wrote with its tries used up, or
/// without a time for the next.
pub fn rescue(message: &Message, route: &Route, now: Timestamp) -> Option<Change> {
    let State::Waiting { .. } = message.state else { return None };
    if message.attempts >= route.max_attempts(message) {
        return Some(dead(message, message.clone(), DeadReason::AttemptsExhausted, None, route, now));
    }
    if message.due_at < Timestamp::MAX {
        return None;
    }
    let wait = match message.attempts {
        0 => Duration::ZERO,
        n => route.policy(message).delay(&message.id, n),
    };
    let kind = Kind::Deferred { reason: "it had no time for its next try".into() };
    Some(wait_again(message, message.clone(), now.plus(wait), kind, route, now))
}

/// The recipients that the next try is for: all but those that have a final verdict. Empty means all.
pub fn recipients_left(message: &Message, count: u32) -> Vec<u32> {
    if message.recipients.is_empty() || planted::is(Bug::PartialSendsToAllAgain) {
        return (0..count).collect();
    }
    let settled = |index: &u32| {
        message
            .recipients
            .iter()
            .any(|known| known.index == *index && matches!(known.fate, Fate::Delivered | Fate::Refused(_)))
    };
    (0..count).filter(|index| !settled(index)).collect()
}

fn failed(message: &Message, mut next: Message, failure: &Failure, route: &Route, now: Timestamp) -> Change {
    count_try(&mut next);
    next.last_error = Some(failure.clone());
    let record = record(message, Verdict::Failed, Some(failure), now);
    let kind = Kind::AttemptFailed { code: failure.code.clone() };
    let mut change = after_failed_try(message, next, Some(failure), kind, route, now);
    change.attempt = Some(record);
    change
}

fn refused(message: &Message, mut next: Message, failure: &Failure, route: &Route, now: Timestamp) -> Change {
    count_try(&mut next);
    let record = record(message, Verdict::Refused, Some(failure), now);
    let mut change = if planted::is(Bug::RetriesRefused) {
        after_failed_try(message, next, None, Kind::AttemptFailed { code: None }, route, now)
    } else {
        dead(message, next, DeadReason::Refused, Some(failure), route, now)
    };
    change.attempt = Some(record);
    change
}

fn partial(
    message: &Message,
    mut next: Message,
    verdicts: &[RecipientVerdict],
    route: &Route,
    now: Timestamp,
) -> Change {
    next.recipients = merged(&message.recipients, verdicts);
    let last_first = || next.recipients.iter().rev().map(|known| &known.fate);
    // Nobody waits because another one's mailbox is full.
    let soonest = last_first().filter_map(|fate| match fate {
        Fate::Failed(failure) => Some(failure),
        Fate::Delivered | Fate::Refused(_) => None,
    });
    let failure = soonest.min_by_key(|failure| failure.retry_after).cloned();
    let refusal = last_first().find_map(|fate| match fate {
        Fate::Refused(failure) => Some(failure.clone()),
        Fate::Delivered | Fate::Failed(_) => None,
    });
    count_try(&mut next);
    match (failure, refusal) {
        (Some(failure), _) => {
            let record = record(message, Verdict::Partial, Some(&failure), now);
            next.last_error = Some(failure.clone());
            let mut change =
                after_failed_try(message, next, Some(&failure), Kind::AttemptPartial, route, now);
            change.attempt = Some(record);
            change
        }
        (None, Some(refusal)) => {
            let record = record(message, Verdict::Refused, Some(&refusal), now);
            let mut change = dead(message, next, DeadReason::Refused, Some(&refusal), route, now);
            change.attempt = Some(record);
            change
        }
        (None, None) => {
            next.state = State::Delivered { at: now, receipt: None };
            finish(message, next, Kind::Delivered { lateness: now.since(message.due_at) }, now)
        }
    }
}

fn deferred(
    message: &Message,
    mut next: Message,
    until: &Until,
    reason: &Arc<str>,
    route: &Route,
    now: Timestamp,
) -> Change {
    take_back_inline_try(&mut next, route);
    if planted::is(Bug::DefersCostAttempts) {
        count_try(&mut next);
    }
    match until {
        Until::At(at) => {
            wait_again(message, next, (*at).max(now), Kind::Deferred { reason: reason.clone() }, route, now)
        }
        Until::Opens(gate) => {
            let kind = Kind::Parked { gate: gate.as_str().into() };
            let due_at = next.due_at;
            let mut change = wait_again(message, next, due_at, kind, route, now);
            if let State::Waiting { parked_for } = &mut change.message.state {
                *parked_for = Some(gate.clone());
            }
            change
        }
    }
}

/// Settles a send that nobody confirmed. It counts no try, but has a budget of its own: a receiver that always answers
/// too late would otherwise get the same message for ever.
fn unconfirmed(message: &Message, mut next: Message, reason: &str, route: &Route, now: Timestamp) -> Change {
    next.unconfirmed += 1;
    next.possible_duplicates += 1;
    if planted::is(Bug::LossLosesAttemptId) {
        next.attempts += 1;
    }
    let instance = lease(message).map(|lease| lease.instance);
    let record = lost_record(message, instance, reason, now);
    let holds = route.on_lost == OnLost::Hold && !planted::is(Bug::HoldRetriesLost);
    let is_spent = next.unconfirmed >= route.unconfirmed_max && !planted::is(Bug::UnconfirmedIgnoresBudget);
    let mut change = if holds || is_spent {
        dead(message, next, DeadReason::Uncertain, None, route, now)
    } else {
        let wait = route.policy(message).delay(&message.id, next.unconfirmed.min(LOSS_STEPS_MAX));
        wait_again(message, next, now.plus(wait), Kind::AttemptUnconfirmed, route, now)
    };
    change.attempt = Some(record);
    change
}

/// Another try if the budget has one left; the caller has counted the try and noted its error.
fn after_failed_try(
    message: &Message,
    next: Message,
    failure: Option<&Failure>,
    kind: Kind,
    route: &Route,
    now: Timestamp,
) -> Change {
    if next.attempts >= route.max_attempts(message) {
        return dead(message, next, DeadReason::AttemptsExhausted, None, route, now);
    }
    let backoff = route.policy(message).delay(&message.id, next.attempts);
    let asked = match failure.and_then(|failure| failure.retry_after) {
        Some(wait) if !planted::is(Bug::RetryAfterIgnored) => wait.min(route.retry_after_max),
        _ => Duration::ZERO,
    };
    let asked_at = now.plus(backoff.max(asked));
    // A wait that concerns this message alone is not to be its end: it may be taken earlier, too.
    let is_its_own = failure.is_some_and(|failure| failure.blame == Blame::Message);
    let due_at = if is_its_own && next.is_expired(asked_at) { now.plus(backoff) } else { asked_at };
    wait_again(message, next, due_at, kind, route, now)
}

/// Back to waiting, unless it has expired, will have by then, or a person asked for it to be cancelled.
fn wait_again(
    message: &Message,
    mut next: Message,
    due_at: Timestamp,
    kind: Kind,
    route: &Route,
    now: Timestamp,
) -> Change {
    if lease(message).is_some_and(|lease| lease.cancel_requested) && !planted::is(Bug::CarriesCancelled) {
        return cancelled(message, next, "operator".into(), now);
    }
    if next.is_expired(due_at.max(now)) {
        return dead(message, next, DeadReason::Expired, None, route, now);
    }
    next.state = State::Waiting { parked_for: None };
    next.due_at = due_at;
    finish(message, next, kind, now)
}

fn cancelled(message: &Message, mut next: Message, reason: Arc<str>, now: Timestamp) -> Change {
    next.state = State::Cancelled { at: now, reason: reason.clone() };
    finish(message, next, Kind::Cancelled { reason }, now)
}

fn dead(
    message: &Message,
    mut next: Message,
    reason: DeadReason,
    failure: Option<&Failure>,
    route: &Route,
    now: Timestamp,
) -> Change {
    if let Some(failure) = failure {
        next.last_error = Some(failure.clone());
    }
    next.state = State::Dead { at: now, reason, dismissed_at: None };
    let spawn = dead_letter(&next, route, now);
    let mut change = finish(message, next, Kind::Dead { reason }, now);
    change.spawn = spawn;
    change
}

/// The word of a message's death, itself a message on the route for dead letters.
///
/// Its key makes it one per death however often the death is written.
pub fn dead_letter(message: &Message, route: &Route, now: Timestamp) -> Option<Box<NewRow>> {
    let State::Dead { reason, .. } = &message.state else { return None };
    if message.is_dead_letter || planted::is(Bug::DeadLetterForgotten) {
        return None;
    }
    let to = route.dead_letter.clone()?;
    let key: Arc<str> = format!("dead:{}:{}:{}", message.route, message.id, message.generation).into();
    let mut attributes = BTreeMap::from([
        ("dead_reason".to_owned(), reason.name().to_owned()),
        ("dead_message".to_owned(), message.id.to_string()),
        ("dead_route".to_owned(), message.route.to_string()),
        ("dead_attempts".to_owned(), message.attempts.to_string()),
    ]);
    if let Some(error) = &message.last_error {
        attributes.insert("dead_error".to_owned(), error.text.to_string());
        if let Some(code) = &error.code {
            attributes.insert("dead_code".to_owned(), code.to_string());
        }
    }
    let letter = Message {
        id: letter_id(&message.id, message.generation, now),
        route: to,
        key: Some(key),
        state: State::Waiting { parked_for: None },
        due_at: now,
        scheduled_for: now,
        created_at: now,
        first_sent_at: None,
        expires_at: None,
        generation: 0,
        attempts: 0,
        attempts_before: 0,
        max_attempts: None,
        losses: 0,
        unconfirmed: 0,
        possible_duplicates: 0,
        fence: 0,
        settled_claim: None,
        last_error: None,
        recipients: Vec::new(),
        is_dead_letter: true,
        ..message.clone()
    };
    let content = ContentSource::CopyOf { id: message.id.clone(), attributes };
    Some(Box::new(NewRow { message: letter, content, hash: None, spawn: None, revives: false }))
}

/// An id for the dead letter that nobody has to draw: the same death always has the same one.
fn letter_id(dead: &MessageId, generation: u32, now: Timestamp) -> MessageId {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(format!("dead letter of {dead}.{generation}").as_bytes());
    let mut bits = [0; 10];
    bits.copy_from_slice(&digest[..10]);
    MessageId::fresh(now, bits)
}

/// What is known of each recipient after one more try; a delivery and a refusal are final.
fn merged(known: &[RecipientVerdict], news: &[RecipientVerdict]) -> Vec<RecipientVerdict> {
    let mut all: BTreeMap<u32, Fate> = known.iter().map(|v| (v.index, v.fate.clone())).collect();
    for verdict in news {
        let entry = all.entry(verdict.index).or_insert_with(|| verdict.fate.clone());
        if matches!(entry, Fate::Failed(_)) {
            *entry = verdict.fate.clone();
        }
    }
    all.into_iter().map(|(index, fate)| RecipientVerdict { index, fate }).collect()
}

fn count_try(next: &mut Message) {
    if !planted::is(Bug::AttemptNotCounted) {
        next.attempts += 1;
    }
}

fn finish(message: &Message, next: Message, kind: Kind, now: Timestamp) -> Change {
    let event = Event::of(&next, kind, now);
    Change::new(message, next, event)
}

fn lease(message: &Message) -> Option<&Lease> {
    match &message.state {
        State::Claimed(lease) => Some(lease),
        State::Waiting { .. }
        | State::HandedOff { .. }
        | State::Delivered { .. }
        | State::Dead { .. }
        | State::Cancelled { .. } => None,
    }
}

fn record(message: &Message, verdict: Verdict, failure: Option<&Failure>, now: Timestamp) -> AttemptRecord {
    let (due_at, sent_at) = match &message.state {
        State::Claimed(lease) => (said(message.due_at), lease.started_at),
        State::HandedOff { since, .. } => (said(message.due_at), said(*since)),
        // The try was given up before it was heard of, and the message is due for the next one.
        State::Waiting { .. } | State::Delivered { .. } | State::Dead { .. } | State::Cancelled { .. } => {
            (None, None)
        }
    };
    AttemptRecord {
        generation: message.generation,
        attempt: message.next_attempt(),
        verdict,
        at: now,
        due_at,
        claimed_at: None,
        sent_at,
        instance: lease(message).map(|lease| lease.instance),
        failure: failure.cloned(),
    }
}

/// A time, unless it stands for one that an application's row doesn't say.
fn said(at: Timestamp) -> Option<Timestamp> {
    (Timestamp::default() < at && at < Timestamp::MAX).then_some(at)
}

fn lost_record(message: &Message, instance: Option<InstanceId>, text: &str, now: Timestamp) -> AttemptRecord {
    AttemptRecord { instance, ..record(message, Verdict::Lost, Some(&Failure::new(text)), now) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::gate::{GateKey, Scope};
    use crate::message::Lane;
    use crate::policy::{Backoff, Jitter, Policy};

    pub(crate) fn at(s: i64) -> Timestamp {
        Timestamp::from_ms(s * 1_000)
    }

    pub(crate) fn policy(max_attempts: u32) -> Policy {
        Policy {
            backoff: Backoff::Table(vec![Duration::from_secs(60), Duration::from_secs(300)]),
            jitter: Jitter::None,
            max_attempts,
            expires_after: None,
        }
    }

    pub(crate) fn route() -> Route {
        Route { dead_letter: Some("dead".into()), ..Route::new("email", "scripted", policy(3)) }
    }

    pub(crate) fn message(state: State) -> Message {
        Message {
            id: MessageId::own(1),
            workspace: "default".into(),
            route: "email".into(),
            lane: Lane::Medium,
            key: None,
            state,
            due_at: at(100),
            scheduled_for: at(100),
            created_at: at(100),
            first_sent_at: None,
            expires_at: None,
            generation: 0,
            attempts: 0,
            attempts_before: 0,
            max_attempts: None,
            losses: 0,
            unconfirmed: 0,
            possible_duplicates: 0,
            fence: 7,
            settled_claim: None,
            last_error: None,
            recipients: Vec::new(),
            is_dead_letter: false,
        }
    }

    pub(crate) fn claimed() -> Message {
        claimed_with(|_| {})
    }

    pub(crate) fn claimed_with(alter: impl FnOnce(&mut Lease)) -> Message {
        let mut lease = Lease {
            instance: InstanceId(5),
            claim: 7,
            until_at: at(160),
            started_at: None,
            cancel_requested: false,
        };
        alter(&mut lease);
        message(State::Claimed(lease))
    }

    fn dead_reason(change: &Change) -> Option<DeadReason> {
        match change.message.state {
            State::Dead { reason, .. } => Some(reason),
            _ => None,
        }
    }

    fn fail() -> Outcome {
        Outcome::Failed(Failure::new("try later").with_code("451"))
    }

    #[test]
    fn a_delivery_ends_the_message_and_remembers_whose_it_was() {
        let change =
            settle(&claimed(), &Outcome::Delivered { receipt: Some("250 ok".into()) }, &route(), at(101));
        assert_eq!(change.message.state, State::Delivered { at: at(101), receipt: Some("250 ok".into()) });
        assert_eq!((change.expected_fence, change.message.fence), (7, 8));
        assert_eq!(change.message.settled_claim, Some(7));
        assert_eq!(change.message.attempts, 1);
        assert_eq!(change.event.kind, Kind::Delivered { lateness: Duration::from_secs(1) });
        assert!(change.attempt.is_none(), "a success is on the message, not in the history");
    }

    #[test]
    fn a_failure_waits_its_turn_until_the_budget_is_spent() {
        let mut before = claimed();
        let mut dues = Vec::new();
        loop {
            let change = settle(&before, &fail(), &route(), at(1_000));
            assert_eq!(change.attempt.as_ref().unwrap().attempt, change.message.attempts);
            if let Some(reason) = dead_reason(&change) {
                assert_eq!(reason, DeadReason::AttemptsExhausted);
                assert_eq!(change.message.last_error.unwrap().code.as_deref(), Some("451"));
                break;
            }
            dues.push(change.message.due_at);
            before = Message { state: claimed().state, ..change.message };
        }
        assert_eq!(dues, [at(1_060), at(1_300)]);
    }

    #[test]
    fn a_try_before_the_callers_eyes_that_was_put_off_was_not_made() {
        let route = Route { inline_first: true, ..route() };
        let later = Outcome::Deferred { until: Until::At(at(200)), reason: "the quota is used up".into() };
        // As it is accepted for somebody who waits.
        let inline = |message: Message| {
            let state = claimed_with(|lease| lease.claim = 1).state;
            Message { attempts_before: message.attempts + 1, state, fence: 1, ..message }
        };
        let standing =
            |message: &Message| (message.attempts_before, message.attempts, route.max_attempts(message));
        let check = |message: Message, outcome: &Outcome, expected: (u32, u32, u32), why: &str| {
            assert_eq!(standing(&settle(&message, outcome, &route, at(101)).message), expected, "{why}");
        };
        check(inline(claimed()), &later, (0, 0, 2), "two tries of workers, as if nobody had waited for it");
        check(inline(claimed()), &fail(), (1, 1, 3), "one that failed was made");
        let elsewhere = Message { attempts: 1, ..claimed() };
        check(inline(elsewhere), &later, (1, 1, 3), "one elsewhere was made all the same");
        let own = Message { max_attempts: Some(2), ..claimed() };
        check(inline(own), &later, (0, 0, 2), "a budget of its own stays");
        let workers = Message { attempts_before: 1, attempts: 1, ..claimed() };
        check(workers, &later, (1, 1, 3), "what a worker puts off takes nothing back");
        let started_over = Message { attempts_before: 3, generation: 1, ..inline(claimed()) };
        check(started_over, &later, (3, 0, 3), "nor does one that was started over");
        let hold = Route { on_lost: OnLost::Hold, ..route.clone() };
        let lost = lapse(&inline(claimed()), &hold, at(200)).unwrap().message;
        assert_eq!(standing(&lost), (0, 0, 2), "lost before it was begun");
    }

    #[test]
    fn a_message_with_a_budget_of_its_own_keeps_to_it() {
        let before = Message { max_attempts: Some(1), ..claimed() };
        assert_eq!(
            dead_reason(&settle(&before, &fail(), &route(), at(0))),
            Some(DeadReason::AttemptsExhausted)
        );
    }

    #[test]
    fn the_longer_of_backoff_and_retry_after_wins_within_its_limit() {
        let due = |secs| {
            let outcome = Outcome::Failed(Failure::new("429").with_retry_after(Duration::from_secs(secs)));
            let route = Route { retry_after_max: Duration::from_secs(600), ..route() };
            settle(&claimed(), &outcome, &route, at(0)).message.due_at
        };
        assert_eq!([10, 90, 9_000].map(due), [at(60), at(90), at(600)]);
    }

    #[test]
    fn a_refusal_is_never_tried_again() {
        let change = settle(&claimed(), &Outcome::Refused(Failure::new("550")), &route(), at(0));
        assert_eq!(dead_reason(&change), Some(DeadReason::Refused));
        assert_eq!(change.attempt.unwrap().verdict, Verdict::Refused);
    }

    #[test]
    fn a_deferral_costs_nothing() {
        let until = Until::At(at(500));
        let change =
            settle(&claimed(), &Outcome::Deferred { until, reason: "window".into() }, &route(), at(0));
        assert_eq!((change.message.attempts, change.message.due_at), (0, at(500)));
        let gate = GateKey::pause(Scope::Route, "email");
        let until = Until::Opens(gate.clone());
        let change =
            settle(&claimed(), &Outcome::Deferred { until, reason: "pause".into() }, &route(), at(0));
        assert_eq!(change.message.state, State::Waiting { parked_for: Some(gate) });
        assert_eq!(
            (change.message.attempts, change.message.due_at),
            (0, at(100)),
            "parked with its due time kept"
        );
    }

    #[test]
    fn a_skip_cancels_with_its_reason() {
        let change = settle(&claimed(), &Outcome::Skipped { reason: "ineligible".into() }, &route(), at(9));
        assert_eq!(change.message.state, State::Cancelled { at: at(9), reason: "ineligible".into() });
    }

    #[test]
    fn an_unconfirmed_carrying_is_repeated_under_the_same_id_or_held() {
        let lost = Outcome::Lost { reason: "no confirm".into() };
        let change = settle(&claimed(), &lost, &route(), at(0));
        assert_eq!((change.message.attempts, change.message.unconfirmed, change.message.losses), (0, 1, 0));
        assert_eq!((change.message.due_at, change.message.possible_duplicates), (at(60), 1));
        let hold = Route { on_lost: OnLost::Hold, ..route() };
        assert_eq!(dead_reason(&settle(&claimed(), &lost, &hold, at(0))), Some(DeadReason::Uncertain));
    }

    #[test]
    fn unconfirmed_sends_end_as_uncertain_when_their_budget_is_spent() {
        let lost = Outcome::Lost { reason: "no answer in time".into() };
        let mut message = claimed();
        for sends in 1..=3 {
            let change = settle(&message, &lost, &route(), at(0));
            assert_eq!((change.message.attempts, change.message.unconfirmed), (0, sends));
            match sends {
                1 => assert_eq!((dead_reason(&change), change.message.due_at), (None, at(60))),
                2 => assert_eq!((dead_reason(&change), change.message.due_at), (None, at(300))),
                _ => assert_eq!(dead_reason(&change), Some(DeadReason::Uncertain)),
            }
            message = Message { state: message.state, ..change.message };
        }
    }

    #[test]
    fn what_nobody_would_claim_is_given_up_or_given_a_time() {
        let waiting = |attempts, due_at| Message {
            attempts,
            due_at,
            last_error: Some(Failure::new("451")),
            ..message(State::Waiting { parked_for: None })
        };
        let spent = rescue(&waiting(3, at(900)), &route(), at(0)).unwrap();
        let State::Dead { reason, .. } = spent.message.state else { panic!("its tries are used up") };
        assert_eq!(reason, DeadReason::AttemptsExhausted);
        assert_eq!((spent.message.attempts, spent.attempt), (3, None), "nothing was tried");
        assert_eq!(spent.message.last_error, Some(Failure::new("451")));
        assert!(spent.spawn.is_some());
        for (attempts, due_at) in [(0, at(0)), (1, at(60)), (2, at(300))] {
            let given = rescue(&waiting(attempts, Timestamp::MAX), &route(), at(0)).unwrap();
            assert_eq!((given.message.due_at, given.message.attempts), (due_at, attempts));
        }
        assert_eq!(rescue(&waiting(2, at(900)), &route(), at(0)), None, "it only waits");
    }

    #[test]
    fn the_first_lost_lease_returns_at_once_and_five_make_poison() {
        let mut before = claimed();
        let mut waits = Vec::new();
        loop {
            let change = lapse(&before, &route(), at(1_000)).unwrap();
            assert_eq!(change.message.attempts, 0);
            if let Some(reason) = dead_reason(&change) {
                assert_eq!(reason, DeadReason::Poison);
                assert_eq!(change.message.losses, 5);
                break;
            }
            waits.push(change.message.due_at.since(at(1_000)).as_secs());
            let State::Claimed(lease) = claimed_with(|lease| lease.started_at = Some(at(1))).state else {
                panic!()
            };
            before = Message { state: State::Claimed(lease), ..change.message };
        }
        assert_eq!(waits, [0, 300, 300, 300]);
    }

    #[test]
    fn a_suspect_that_never_started_is_not_to_blame() {
        let before = Message { losses: 2, ..claimed() };
        let change = lapse(&before, &route(), at(1_000)).unwrap();
        assert_eq!((change.message.losses, change.message.possible_duplicates), (2, 0));
    }

    #[test]
    fn a_route_that_holds_is_only_uncertain_about_what_had_started() {
        let hold = Route { on_lost: OnLost::Hold, ..route() };
        let unstarted = lapse(&claimed(), &hold, at(1_000)).unwrap();
        assert_eq!(unstarted.message.state, State::Waiting { parked_for: None });
        assert_eq!(unstarted.message.possible_duplicates, 0);
        let first_sent_at = |claim: u64, route: &Route| {
            let claimed = claimed_with(|lease| lease.claim = claim);
            let dated = Message { first_sent_at: Some(at(990)), attempts: 1, attempts_before: 1, ..claimed };
            lapse(&dated, route, at(1_000)).unwrap().message.first_sent_at
        };
        assert_eq!(first_sent_at(1, &hold), None, "nothing was sent");
        assert_eq!(first_sent_at(3, &hold), Some(at(990)), "an earlier claim may have sent it");
        assert_eq!(first_sent_at(1, &route()), Some(at(990)), "nobody knows");
        let started = lapse(&claimed_with(|lease| lease.started_at = Some(at(1))), &hold, at(1_000)).unwrap();
        assert_eq!(dead_reason(&started), Some(DeadReason::Uncertain));
    }

    #[test]
    fn what_can_only_go_after_its_expiry_is_dead() {
        let before = Message { expires_at: Some(at(30)), ..claimed() };
        let change = settle(&before, &fail(), &route(), at(0));
        assert_eq!(dead_reason(&change), Some(DeadReason::Expired));
        let delivered = settle(&before, &Outcome::Delivered { receipt: None }, &route(), at(40));
        assert_eq!(dead_reason(&delivered), None, "what arrived has arrived");
        let waiting = Message { expires_at: Some(at(30)), ..message(State::Waiting { parked_for: None }) };
        assert!(expire(&waiting, &route(), at(29)).is_none());
        assert_eq!(dead_reason(&expire(&waiting, &route(), at(30)).unwrap()), Some(DeadReason::Expired));
    }

    #[test]
    fn a_full_mailbox_is_not_the_end_of_a_mail_that_would_expire_meanwhile() {
        let hour = Duration::from_secs(3_600);
        for (blame, expires_at, due_at) in [
            (Blame::Message, at(7_200), Some(at(3_600))),
            (Blame::Message, at(1_800), Some(at(60))),
            (Blame::Message, at(30), None),
            // Whoever asks everybody to wait is not asked earlier.
            (Blame::Throttle, at(1_800), None),
        ] {
            let before = Message { expires_at: Some(expires_at), ..claimed() };
            let failure = Failure::new("452").blaming(blame).with_retry_after(hour);
            let change = settle(&before, &Outcome::Failed(failure), &route(), at(0));
            let is_waiting = change.message.state.name() == "waiting";
            assert_eq!(is_waiting.then_some(change.message.due_at), due_at, "{blame:?} {expires_at:?}");
        }
    }

    #[test]
    fn a_requested_cancel_takes_effect_instead_of_the_next_try() {
        let before = claimed_with(|lease| lease.cancel_requested = true);
        let change = settle(&before, &fail(), &route(), at(0));
        assert_eq!(change.message.state, State::Cancelled { at: at(0), reason: "operator".into() });
        let change = settle(&before, &Outcome::Delivered { receipt: None }, &route(), at(0));
        assert_eq!(change.message.state.name(), "delivered", "it went out before the cancel was seen");
    }

    #[test]
    fn an_overdue_report_is_a_loss_and_an_early_look_is_not() {
        let handed = message(State::HandedOff { since: at(0), report_by: Some(at(60)) });
        assert!(overdue(&handed, &route(), at(59)).is_none());
        let change = overdue(&handed, &route(), at(60)).unwrap();
        assert_eq!((change.message.unconfirmed, change.message.due_at), (1, at(120)));
        let patient = message(State::HandedOff { since: at(0), report_by: None });
        assert!(overdue(&patient, &route(), at(1_000_000)).is_none());
    }

    #[test]
    fn a_recorded_try_knows_when_it_was_due_and_what_was_noted_of_its_start() {
        let known = |change: Change| {
            let record = change.attempt.unwrap();
            (record.due_at, record.claimed_at, record.sent_at)
        };
        let due = Some(at(100));
        assert_eq!(known(settle(&claimed(), &fail(), &route(), at(101))), (due, None, None));
        let started = claimed_with(|lease| lease.started_at = Some(at(150)));
        assert_eq!(known(lapse(&started, &route(), at(900)).unwrap()), (due, None, Some(at(150))));
        assert_eq!(known(lapse(&claimed(), &route(), at(900)).unwrap()), (due, None, None));
        let handed = message(State::HandedOff { since: at(160), report_by: Some(at(220)) });
        assert_eq!(known(overdue(&handed, &route(), at(220)).unwrap()), (due, None, Some(at(160))));
        let given_up = Message { unconfirmed: 1, ..message(State::Waiting { parked_for: None }) };
        let late = "it is due for the next one by now";
        assert_eq!(known(settle(&given_up, &fail(), &route(), at(300))), (None, None, None), "{late}");
        let row = message(State::HandedOff { since: Timestamp::default(), report_by: None });
        let silent = Message { due_at: Timestamp::MAX, ..row };
        assert_eq!(
            known(settle(&silent, &fail(), &route(), at(300))),
            (None, None, None),
            "its row says none"
        );
    }

    #[test]
    fn recipients_that_took_it_never_get_it_again() {
        let fate = |index, fate| RecipientVerdict { index, fate };
        let first = settle(
            &claimed(),
            &Outcome::Partial(vec![
                fate(0, Fate::Delivered),
                fate(1, Fate::Failed(Failure::new("451"))),
                fate(2, Fate::Refused(Failure::new("550"))),
            ]),
            &route(),
            at(0),
        );
        assert_eq!(recipients_left(&first.message, 3), [1]);
        assert_eq!(first.message.attempts, 1);
        let again = Message { state: claimed().state, ..first.message.clone() };
        let contrary = vec![fate(0, Fate::Failed(Failure::new("no"))), fate(1, Fate::Delivered)];
        let second = settle(&again, &Outcome::Partial(contrary), &route(), at(100));
        assert_eq!(dead_reason(&second), Some(DeadReason::Refused), "one was refused and none is left");
        assert_eq!(second.message.recipients[0].fate, Fate::Delivered);
        assert_eq!(second.message.last_error.unwrap().text.as_ref(), "550");
    }

    #[test]
    fn nobody_waits_because_the_mailbox_of_another_recipient_is_full() {
        let full = Fate::Failed(Failure::new("452").with_retry_after(Duration::from_secs(3_600)));
        let due = |fates: &[&Fate]| {
            let verdict = |(index, fate): (usize, &&Fate)| RecipientVerdict {
                index: index as u32,
                fate: (*fate).clone(),
            };
            let verdicts = fates.iter().enumerate().map(verdict).collect();
            settle(&claimed(), &Outcome::Partial(verdicts), &route(), at(0)).message.due_at
        };
        let greylisted = Fate::Failed(Failure::new("451"));
        assert_eq!(due(&[&Fate::Delivered, &greylisted, &full]), at(60));
        assert_eq!(due(&[&Fate::Delivered, &full]), at(3_600));
    }

    #[test]
    fn all_recipients_delivered_is_delivered() {
        let verdicts = vec![RecipientVerdict { index: 0, fate: Fate::Delivered }];
        let change = settle(&claimed(), &Outcome::Partial(verdicts), &route(), at(100));
        assert_eq!(change.message.state.name(), "delivered");
        assert_eq!(recipients_left(&claimed(), 2), [0, 1]);
    }

    #[test]
    fn a_death_brings_its_letter_and_a_letter_brings_none() {
        let change =
            settle(&claimed(), &Outcome::Refused(Failure::new("550").with_code("550")), &route(), at(9));
        let letter = change.spawn.unwrap();
        assert_eq!(
            letter.message.key.as_deref(),
            Some(format!("dead:email:{}:0", MessageId::own(1)).as_str())
        );
        assert_eq!((letter.message.route.as_ref(), letter.message.due_at), ("dead", at(9)));
        let ContentSource::CopyOf { id, attributes } = &letter.content else { panic!("a copy") };
        assert_eq!((id, attributes["dead_reason"].as_str()), (&MessageId::own(1), "refused"));
        let mut of_letter = claimed();
        of_letter.is_dead_letter = true;
        assert!(settle(&of_letter, &Outcome::Refused(Failure::new("x")), &route(), at(9)).spawn.is_none());
        let plain = Route { dead_letter: None, ..route() };
        assert!(settle(&claimed(), &Outcome::Refused(Failure::new("x")), &plain, at(9)).spawn.is_none());
    }

    #[test]
    fn only_a_claim_can_lapse() {
        for state in [State::Waiting { parked_for: None }, State::HandedOff { since: at(0), report_by: None }]
        {
            assert!(lapse(&message(state), &route(), at(0)).is_none());
        }
    }
}
