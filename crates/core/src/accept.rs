//! What becomes of something new: a message, a duplicate, a conflict, or one that came back.

use std::sync::{Arc, LazyLock};

use crate::change::{Change, NewRow};
use crate::content::{Content, ContentHash, ContentSource};
use crate::event::{Event, Kind};
use crate::message::{DeadReason, InstanceId, Lane, Lease, Message, MessageId, Name, State};
use crate::outcome::Failure;
use crate::planted::{self, Bug};
use crate::route::Route;
use crate::settle::dead_letter;
use crate::time::Timestamp;

/// Whose a message is that doesn't say.
static DEFAULT_WORKSPACE: LazyLock<Name> = LazyLock::new(|| "default".into());

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
            workspace: Arc::clone(&DEFAULT_WORKSPACE),
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
        first_sent_at: None,
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
    } else {
        leave_to_workers(&mut message, route);
    }
    let spawn = dead_letter(&message, route, now);
    NewRow { message, content: ContentSource::Given(Arc::new(new.content)), hash, spawn, revives: false }
}

/// Nobody has tried it before a caller's eyes: workers have as many tries as they would have after that.
fn leave_to_workers(message: &mut Message, route: &Route) {
    if route.inline_first && message.attempts == 0 && message.max_attempts.is_none() {
        message.max_attempts = Some(route.policy(message).max_attempts.saturating_sub(1).max(1));
    }
}

/// Takes back the try before the caller's eyes, which was counted when the message was accepted, because nothing was
/// sent. Of any other claim there is nothing to take back.
pub(crate) fn take_back_inline_try(message: &mut Message, route: &Route) {
    let is_first_claim = matches!(&message.state, State::Claimed(lease) if lease.claim == 1);
    if is_first_claim && message.generation == 0 && message.attempts_before > message.attempts {
        message.attempts_before = message.attempts;
        leave_to_workers(message, route);
    }
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
    /// The digest of what was first said under the key, if one was kept. Neither a correction nor coming back renews it: a
    /// caller is held to what was said first.
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
    /// The same key for another content, or on another route.
    Conflict,
    /// Input that nobody takes as the message that it says: it is kept whatever its key is, without one.
    Apart(Box<NewRow>),
    /// That depends on the content that the known message has now: ask again with it.
    DependsOnContent,
    /// The same message, next try.
    Reenters(Box<Change>),
    /// The same message, next try, though its row is gone.
    Revives(Box<NewRow>),
}

/// Works out what it means that `row` has a key that is known already. `current` is the content that the known message has
/// now; most answers don't need it.
pub fn repeat(
    known: &Known,
    current: Option<&Content>,
    row: NewRow,
    source: Source,
    route: &Route,
    now: Timestamp,
) -> Repeat {
    match source {
        Source::Caller => {
            let same = row.hash.is_none() || known.hash.is_none() || row.hash == known.hash;
            if same || planted::is(Bug::ConflictTakenForDuplicate) {
                Repeat::Duplicate
            } else {
                conflict(row)
            }
        }
        Source::Broker { redelivered } => come_back(known, current, row, redelivered, route, now),
    }
}

/// Another message has the key. Input that was refused already has no other place, and is kept without a key.
fn conflict(row: NewRow) -> Repeat {
    match row.message.state {
        State::Dead { reason: DeadReason::Refused, .. } => {
            let message = Message { key: None, ..row.message };
            Repeat::Apart(Box::new(NewRow { message, hash: None, ..row }))
        }
        _ => Repeat::Conflict,
    }
}

fn come_back(
    known: &Known,
    current: Option<&Content>,
    row: NewRow,
    redelivered: bool,
    route: &Route,
    now: Timestamp,
) -> Repeat {
    if planted::is(Bug::ReentryDropped) {
        return Repeat::Duplicate;
    }
    // A source can't know what others call theirs: what goes another way is another message.
    if known.message.as_ref().is_some_and(|message| message.route != row.message.route) {
        return conflict(row);
    }
    let Some((attempts_before, attempts, under_way, delivered)) = standing(known) else {
        // The key is there and nothing else is: whatever this is, it must not be lost.
        return conflict(row);
    };
    let said = row.message.attempts;
    let is_said_before = said <= attempts_before;
    if under_way || redelivered && is_said_before {
        match is_this_one(known, current, &row) {
            None => return Repeat::DependsOnContent,
            Some(true) if is_said_before => return Repeat::Duplicate,
            Some(false) if is_said_before && planted::is(Bug::OtherContentTakenForDuplicate) => {
                return Repeat::Duplicate;
            }
            // Another message has the same key. It must neither replace this one nor be taken for it.
            Some(false) if under_way && !planted::is(Bug::OtherContentReplacesMessage) => {
                return conflict(row);
            }
            Some(_) => {}
        }
    }
    // What was delivered to the source's queue is the try that has now failed there: it is counted already.
    let counted = if delivered { attempts } else { attempts.saturating_add(1) };
    let attempts = counted.max(said);
    match &known.message {
        Some(message) => Repeat::Reenters(Box::new(reenter(message, row, attempts, route, now))),
        None => Repeat::Revives(Box::new(revive(known, row, attempts, route, now))),
    }
}

/// Whether a row says what the known message says; `None` if only the message's content tells.
fn is_this_one(known: &Known, current: Option<&Content>, row: &NewRow) -> Option<bool> {
    let has_first_content = row.hash == known.hash;
    match (&known.message, current, &row.content) {
        // Nothing else tells of a message that is gone. If in doubt it is not lost: one that had come back with another
        // content, or was corrected, goes out once more if its source brings it again after that.
        (None, ..) => Some(has_first_content),
        // Only a new generation brings another content.
        (Some(message), ..) if has_first_content && message.generation == 0 => Some(true),
        (Some(_), Some(current), ContentSource::Given(content)) => Some(content.has_payload_of(current)),
        (Some(_), Some(_), ContentSource::CopyOf { .. }) => Some(has_first_content),
        (Some(_), None, _) => None,
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
    let mut change = Change::new(message, next, event);
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
        first_sent_at: old.first_sent_at,
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
mod tests;
