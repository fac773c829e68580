//! What becomes of something new: a message, a duplicate, a conflict, or one that came back.

use std::sync::Arc;

use crate::change::{Change, NewRow};
use crate::content::{Content, ContentHash, ContentSource};
use crate::event::{Event, Kind};
use crate::message::{DeadReason, InstanceId, Lane, Lease, Message, MessageId, Name, State};
use crate::outcome::Failure;
use crate::planted::{self, Bug};
use crate::route::Route;
use crate::settle::dead_letter;
use crate::time::Timestamp;

/// Something that somebody wants sent.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage {
    /// Whose.
    pub workspace: Name,
    /// The way it travels.
    pub route: Name,
    /// Its priority.
    pub lane: Lane,
    /// What the sender calls it.
    pub key: Option<Arc<str>>,
    /// When it is to go out; at once if it doesn't say.
    pub due_at: Option<Timestamp>,
    /// When sending it stops making sense.
    pub expires_at: Option<Timestamp>,
    /// Tries already made elsewhere.
    pub attempts: u32,
    /// The error of the last of those.
    pub error: Option<Failure>,
    /// A budget of its own.
    pub max_attempts: Option<u32>,
    /// What it carries.
    pub content: Content,
    /// How it reached us.
    pub source: Source,
    /// Whether it can never be carried, for the reason in `error`: it is kept as dead, before an operator's eyes.
    pub is_refused: bool,
}

/// How something new reached us, which decides what a repeated key means.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Source {
    /// A caller said it: the same key again is a duplicate or a conflict.
    #[default]
    Caller,
    /// A broker brought it: a message that ended may come back by its source.
    Broker {
        /// Whether the broker says that it brought it before.
        redelivered: bool,
    },
}

/// Somebody who takes the message at once, to try it before the caller's eyes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Taker {
    /// Who.
    pub instance: InstanceId,
    /// Until when.
    pub until_at: Timestamp,
}

impl NewMessage {
    /// A message with nothing but a route and content.
    pub fn new(route: impl Into<Name>, content: Content) -> Self {
        Self {
            workspace: "default".into(),
            route: route.into(),
            lane: Lane::default(),
            key: None,
            due_at: None,
            expires_at: None,
            attempts: 0,
            error: None,
            max_attempts: None,
            content,
            source: Source::Caller,
            is_refused: false,
        }
    }
}

/// The row that a new message becomes. One whose budget is spent, or whose time has run out, is dead on arrival.
pub fn admit(new: NewMessage, route: &Route, id: MessageId, taker: Option<Taker>, now: Timestamp) -> NewRow {
    let policy = &route.travel(new.lane).policy;
    let due_at = new.due_at.unwrap_or_else(|| match new.attempts {
        0 => now,
        n => policy.due_after(&id, n, now),
    });
    let hash = new.key.as_ref().map(|_| new.content.hash(&new.route));
    let mut message = Message {
        id,
        workspace: new.workspace,
        route: new.route,
        lane: new.lane,
        key: new.key,
        state: State::Waiting { parked_for: None },
        due_at,
        scheduled_for: due_at,
        created_at: now,
        expires_at: new.expires_at.or_else(|| policy.expires_after.map(|span| now.plus(span))),
        generation: 0,
        attempts: new.attempts,
        attempts_before: new.attempts,
        max_attempts: new.max_attempts,
        losses: 0,
        unconfirmed: 0,
        possible_duplicates: 0,
        fence: 0,
        settled_claim: None,
        last_error: new.error,
        recipients: Vec::new(),
        is_dead_letter: false,
    };
    message.state = match new.is_refused {
        true => State::Dead { at: now, reason: DeadReason::Refused, dismissed_at: None },
        false => first_state(&message, route, taker, now),
    };
    if matches!(message.state, State::Claimed(_)) {
        message.fence = 1;
        // The try before the caller's eyes is no try of a worker: an operator's retry doesn't make it again.
        message.attempts_before += 1;
    } else if route.inline_first && message.attempts == 0 && message.max_attempts.is_none() {
        message.max_attempts = Some(policy.max_attempts.saturating_sub(1).max(1));
    }
    let spawn = dead_letter(&message, route, now);
    NewRow { message, content: ContentSource::Given(Arc::new(new.content)), hash, spawn, revives: false }
}

fn first_state(message: &Message, route: &Route, taker: Option<Taker>, now: Timestamp) -> State {
    let dead = |reason| State::Dead { at: now, reason, dismissed_at: None };
    if message.attempts >= route.max_attempts(message) {
        return dead(DeadReason::AttemptsExhausted);
    }
    if message.is_expired(message.due_at.max(now)) {
        return dead(DeadReason::Expired);
    }
    match taker {
        Some(Taker { instance, until_at }) if message.due_at <= now => {
            State::Claimed(Lease { instance, claim: 1, until_at, started_at: None, cancel_requested: false })
        }
        _ => State::Waiting { parked_for: None },
    }
}

/// What a store knows under a key that was said before.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The first message's id.
    pub id: MessageId,
    /// The digest of its content, if one was kept.
    pub hash: Option<ContentHash>,
    /// The message, while it is kept.
    pub message: Option<Message>,
    /// What it had come to when it was pruned.
    pub ended: Option<Ended>,
}

/// What is remembered of a message that is gone.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Tries it had when it last came in.
    pub attempts_before: u32,
    /// Tries it had when it ended.
    pub attempts: u32,
    /// How often it had been started over.
    pub generation: u32,
    /// Carryings that may have arrived without our knowing.
    pub possible_duplicates: u32,
    /// Its fence, which never goes down.
    pub fence: u64,
}

/// What saying a key again comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Repeat {
    /// The first message stands; nothing changes.
    Duplicate,
    /// The same key for another content.
    Conflict,
    /// The same message, next try.
    Reenters(Box<Change>),
    /// The same message, next try, though its row is gone.
    Revives(Box<NewRow>),
}

/// Works out what it means that `row` has a key that is known already.
pub fn repeat(known: &Known, row: NewRow, source: Source, route: &Route, now: Timestamp) -> Repeat {
    match source {
        Source::Caller => {
            let same = row.hash.is_none() || known.hash.is_none() || row.hash == known.hash;
            if same || planted::is(Bug::ConflictTakenForDuplicate) {
                Repeat::Duplicate
            } else {
                Repeat::Conflict
            }
        }
        Source::Broker { redelivered } => come_back(known, row, redelivered, route, now),
    }
}

fn come_back(known: &Known, row: NewRow, redelivered: bool, route: &Route, now: Timestamp) -> Repeat {
    if planted::is(Bug::ReentryDropped) {
        return Repeat::Duplicate;
    }
    let Some((attempts_before, attempts, under_way, delivered)) = standing(known) else {
        return Repeat::Duplicate;
    };
    let said = row.message.attempts;
    if (under_way || redelivered) && said <= attempts_before {
        return Repeat::Duplicate;
    }
    // What was delivered to the source's queue is the try that has now failed there: it is counted already.
    let counted = if delivered { attempts } else { attempts.saturating_add(1) };
    let attempts = counted.max(said);
    match &known.message {
        Some(message) => Repeat::Reenters(Box::new(reenter(message, row, attempts, route, now))),
        None => Repeat::Revives(Box::new(revive(known, row, attempts, route, now))),
    }
}

/// Tries when it last came in, tries now, whether it is under way, whether it was delivered.
fn standing(known: &Known) -> Option<(u32, u32, bool, bool)> {
    match (&known.message, &known.ended) {
        (Some(message), _) => {
            let under_way = message.state.ended_at().is_none();
            let delivered = matches!(message.state, State::Delivered { .. });
            Some((message.attempts_before, message.attempts, under_way, delivered))
        }
        (None, Some(ended)) => Some((ended.attempts_before, ended.attempts, false, true)),
        (None, None) => None,
    }
}

fn reenter(message: &Message, row: NewRow, attempts: u32, route: &Route, now: Timestamp) -> Change {
    let next = come_again(Message { id: message.id.clone(), ..row.message }, message, attempts, route, now);
    let event = Event::of(&next, Kind::Reentered, now);
    let spawn = dead_letter(&next, route, now);
    let mut change = Change::new(message.fence, next, event);
    change.spawn = spawn;
    if let ContentSource::Given(content) = row.content {
        change.content = Some(content);
    }
    change
}

fn revive(known: &Known, row: NewRow, attempts: u32, route: &Route, now: Timestamp) -> NewRow {
    let mut gone = Message { id: known.id.clone(), ..row.message.clone() };
    if let Some(ended) = known.ended {
        gone.generation = ended.generation;
        gone.possible_duplicates = ended.possible_duplicates;
        gone.fence = ended.fence;
    }
    let mut message =
        come_again(Message { id: known.id.clone(), ..row.message }, &gone, attempts, route, now);
    message.fence = gone.fence + 1;
    let spawn = dead_letter(&message, route, now);
    NewRow { message, spawn, revives: true, ..row }
}

/// The message that came back: what is new of it, on top of what it has been through.
fn come_again(fresh: Message, old: &Message, attempts: u32, route: &Route, now: Timestamp) -> Message {
    // It came back while somebody had it: what that one did will never be settled.
    let unsettled = matches!(old.state, State::Claimed(_) | State::HandedOff { .. });
    let mut next = Message {
        created_at: old.created_at,
        scheduled_for: old.scheduled_for,
        generation: old.generation + 1,
        attempts,
        attempts_before: attempts,
        possible_duplicates: old.possible_duplicates + u32::from(unsettled),
        fence: old.fence,
        settled_claim: old.settled_claim,
        ..fresh
    };
    // What can never be carried is no better for coming again.
    let is_refused = matches!(next.state, State::Dead { reason: DeadReason::Refused, .. });
    if !is_refused {
        next.state = first_state(&next, route, None, now);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settle::tests::{at, claimed, message, route};

    fn new(attempts: u32) -> NewMessage {
        NewMessage { key: Some("k".into()), attempts, ..NewMessage::new("email", Content::of_bytes("x")) }
    }

    fn row(attempts: u32) -> NewRow {
        admit(new(attempts), &route(), MessageId::own(2), None, at(1_000))
    }

    fn known(message: Message) -> Known {
        Known { id: message.id.clone(), hash: row(0).hash, message: Some(message), ended: None }
    }

    fn again(message: Message, attempts: u32, redelivered: bool) -> Repeat {
        repeat(&known(message), row(attempts), Source::Broker { redelivered }, &route(), at(1_000))
    }

    fn delivered(attempts_before: u32, attempts: u32) -> Message {
        Message { attempts_before, attempts, ..message(State::Delivered { at: at(0), receipt: None }) }
    }

    #[test]
    fn what_is_new_is_due_at_once_and_what_failed_elsewhere_after_its_backoff() {
        assert_eq!(row(0).message.due_at, at(1_000));
        assert_eq!(row(1).message.due_at, at(1_060));
        assert_eq!(row(2).message.due_at, at(1_300));
        let timed = admit(
            NewMessage { due_at: Some(at(5_000)), ..new(2) },
            &route(),
            MessageId::own(2),
            None,
            at(1_000),
        );
        assert_eq!(timed.message.due_at, at(5_000));
        assert_eq!((timed.message.attempts, timed.message.attempts_before), (2, 2));
    }

    #[test]
    fn input_that_nobody_can_read_is_kept_once_however_often_it_is_brought() {
        let refused = |redelivered| {
            let source = Source::Broker { redelivered };
            let new = NewMessage { is_refused: true, source, ..new(0) };
            admit(new, &route(), MessageId::own(2), None, at(1_000))
        };
        let first = refused(false).message;
        assert!(matches!(first.state, State::Dead { reason: DeadReason::Refused, .. }));
        let brought = |redelivered| {
            let source = Source::Broker { redelivered };
            repeat(&known(first.clone()), refused(redelivered), source, &route(), at(2_000))
        };
        assert!(matches!(brought(true), Repeat::Duplicate));
        let Repeat::Reenters(again) = brought(false) else { panic!("somebody said it again") };
        assert!(matches!(again.message.state, State::Dead { reason: DeadReason::Refused, .. }));
        assert!(again.spawn.is_some(), "and it is sent on again");
    }

    #[test]
    fn a_spent_budget_is_dead_on_arrival_with_its_letter() {
        let row = row(3);
        assert!(matches!(row.message.state, State::Dead { reason: DeadReason::AttemptsExhausted, .. }));
        assert_eq!(row.spawn.unwrap().message.route.as_ref(), "dead");
    }

    #[test]
    fn what_nobody_can_read_is_dead_on_arrival_with_its_letter() {
        let error = Some(Failure::new("no protobuf"));
        let bad = NewMessage { is_refused: true, error, ..new(0) };
        let row = admit(bad, &route(), MessageId::own(2), None, at(1_000));
        assert!(matches!(row.message.state, State::Dead { reason: DeadReason::Refused, .. }));
        assert_eq!(row.message.last_error.unwrap().text.as_ref(), "no protobuf");
        assert!(row.spawn.is_some());
    }

    #[test]
    fn what_has_expired_is_dead_on_arrival() {
        let late = NewMessage { expires_at: Some(at(999)), ..new(0) };
        let row = admit(late, &route(), MessageId::own(2), None, at(1_000));
        assert!(matches!(row.message.state, State::Dead { reason: DeadReason::Expired, .. }));
    }

    #[test]
    fn an_inline_try_is_stored_as_claimed_unless_it_is_for_later() {
        let taker = Some(Taker { instance: InstanceId(9), until_at: at(1_060) });
        let now = admit(new(0), &route(), MessageId::own(2), taker, at(1_000));
        assert!(matches!(now.message.state, State::Claimed(Lease { claim: 1, .. })));
        assert_eq!(now.message.fence, 1);
        let later = NewMessage { due_at: Some(at(2_000)), ..new(0) };
        let later = admit(later, &route(), MessageId::own(2), taker, at(1_000));
        assert_eq!(later.message.state.name(), "waiting");
    }

    #[test]
    fn the_try_before_the_callers_eyes_is_none_of_the_workers() {
        let route = Route { inline_first: true, ..route() };
        let taker = Taker { instance: InstanceId(1), until_at: at(2_000) };
        let budget = |taker, attempts| {
            let row = admit(new(attempts), &route, MessageId::own(2), taker, at(1_000));
            (row.message.attempts_before, route.max_attempts(&row.message))
        };
        let max = route.lanes[0].policy.max_attempts;
        assert_eq!(budget(Some(taker), 0), (1, max), "tried inline");
        assert_eq!(budget(None, 1), (1, max), "tried elsewhere");
        assert_eq!(budget(None, 0), (0, max - 1), "never tried");
    }

    #[test]
    fn a_caller_who_repeats_itself_gets_the_first_message_and_one_who_changes_its_mind_a_conflict() {
        let first = known(claimed());
        assert_eq!(repeat(&first, row(0), Source::Caller, &route(), at(0)), Repeat::Duplicate);
        let other = NewMessage { content: Content::of_bytes("y"), ..new(0) };
        let other = admit(other, &route(), MessageId::own(2), None, at(0));
        assert_eq!(repeat(&first, other, Source::Caller, &route(), at(0)), Repeat::Conflict);
    }

    #[test]
    fn while_it_is_under_way_the_same_or_a_lower_count_is_a_duplicate() {
        let waiting =
            Message { attempts: 2, attempts_before: 2, ..message(State::Waiting { parked_for: None }) };
        for attempts in [1, 2] {
            assert_eq!(again(waiting.clone(), attempts, false), Repeat::Duplicate);
        }
        assert!(matches!(again(waiting, 3, false), Repeat::Reenters(_)));
    }

    #[test]
    fn after_its_end_it_is_the_same_message_and_the_next_try() {
        let Repeat::Reenters(change) = again(delivered(1, 2), 2, false) else { panic!("it re-enters") };
        let after = &change.message;
        assert_eq!((after.id.clone(), after.attempts, after.attempts_before), (MessageId::own(1), 2, 2));
        assert_eq!((after.generation, after.fence, after.due_at), (1, 8, at(1_300)));
        assert!(change.content.is_some());
    }

    #[test]
    fn a_handler_that_forgets_to_count_does_not_loop_for_ever() {
        let Repeat::Reenters(change) = again(delivered(1, 2), 1, false) else { panic!("it re-enters") };
        assert_eq!(change.message.attempts, 2);
        let Repeat::Reenters(change) = again(delivered(2, 3), 1, false) else { panic!("it re-enters") };
        assert!(matches!(change.message.state, State::Dead { .. }), "its budget of 3 is spent");
        assert!(change.spawn.is_some());
    }

    #[test]
    fn a_redelivery_of_what_was_stored_is_a_duplicate() {
        assert_eq!(again(delivered(2, 3), 2, true), Repeat::Duplicate);
        assert!(matches!(again(delivered(1, 2), 2, true), Repeat::Reenters(_)), "a higher count is news");
    }

    #[test]
    fn a_message_whose_row_is_gone_comes_back_under_its_id() {
        let known = Known {
            id: MessageId::own(1),
            hash: None,
            message: None,
            ended: Some(Ended {
                attempts_before: 1,
                attempts: 2,
                generation: 3,
                possible_duplicates: 1,
                fence: 20,
            }),
        };
        let again = repeat(&known, row(2), Source::Broker { redelivered: false }, &route(), at(1_000));
        let Repeat::Revives(row) = again else { panic!("{again:?}") };
        assert_eq!(
            (row.message.id.clone(), row.message.generation, row.message.attempts),
            (MessageId::own(1), 4, 2)
        );
        assert!(row.message.fence > 20 && row.revives);
    }
}
