//! Puts what happened to a message into words. Decides nothing, and never shows what a message carries.

use std::time::Duration;

use redeliver_core::attempt::{AttemptId, AttemptRecord};
use redeliver_core::event::Kind;
use redeliver_core::time::show_span;
use redeliver_core::{DeadReason, Event, Failure, Message, State};

/// How a line feels, which is its colour.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Wait,
    Bad,
}

/// What happened, why, and what comes next.
pub(super) fn tell(event: &Event, message: &Message, history: &[AttemptRecord]) -> (Tone, String) {
    let due_in = in_tenths(event.due_at.since(event.at));
    let tried = history.iter().rev().find(|record| record.at == event.at);
    let failure = said(tried.and_then(|record| record.failure.as_ref()));
    let number = event.attempts;
    match &event.kind {
        Kind::Accepted if message.is_dead_letter => {
            (Tone::Plain, format!("its dead letter is on its way, by route {}", message.route))
        }
        Kind::Accepted => {
            let due = if event.due_at > event.at { format!("due in {due_in}") } else { "due now".to_owned() };
            let expiry =
                message.expires_at.map(|at| format!(", worthless after {}", in_tenths(at.since(event.at))));
            (Tone::Plain, format!("accepted, {due}{}", expiry.unwrap_or_default()))
        }
        Kind::Delivered { .. } if message.is_dead_letter => {
            (Tone::Good, "its dead letter is delivered".to_owned())
        }
        Kind::Delivered { .. } if message.unconfirmed > 0 => {
            let id = short(&AttemptId { attempt: number, ..AttemptId::of(message) });
            (Tone::Good, format!("delivered, again as {id}: whoever got it the first time can tell"))
        }
        Kind::Delivered { .. } => (Tone::Good, format!("delivered on try {number}")),
        Kind::AttemptFailed { .. } => {
            (Tone::Wait, format!("try {number} failed: {failure}; try {} in {due_in}", number + 1))
        }
        Kind::AttemptUnconfirmed => {
            let id = short(&AttemptId::of(message));
            (Tone::Wait, format!("lost: nobody confirmed {id}; the same again in {due_in}, no try used up"))
        }
        Kind::Deferred { reason } => {
            (Tone::Wait, format!("not sent: {reason}; again in {due_in}, no try used up"))
        }
        Kind::Dead { reason } => {
            let why = match reason {
                DeadReason::AttemptsExhausted => format!("try {number} failed: {failure}; that was the last"),
                DeadReason::Refused => format!("refused for good: {failure}"),
                DeadReason::Expired if tried.is_none() => "it expired before it could go out".to_owned(),
                DeadReason::Expired => {
                    format!("try {number} failed: {failure}; the next would come after its expiry")
                }
                DeadReason::Uncertain => {
                    "nobody knows whether it arrived, and this route never sends twice".to_owned()
                }
                DeadReason::Poison => "it took its worker down too often".to_owned(),
            };
            (Tone::Bad, format!("dead: {why}"))
        }
        other => (Tone::Plain, other.name().to_owned()),
    }
}

/// How a message ended: its status, and why.
pub(super) fn ending(message: &Message) -> (&'static str, String) {
    let after = || match (&message.last_error, message.unconfirmed) {
        (Some(error), _) => format!("the last failure was: {}", said(Some(error))),
        (None, 0) => "at once".to_owned(),
        (None, _) => "one carrying was never confirmed".to_owned(),
    };
    match &message.state {
        State::Delivered { at, .. } if message.attempts == 1 && message.unconfirmed == 0 => {
            let late = at.since(message.scheduled_for).as_secs();
            let asked = message.scheduled_for > message.created_at;
            let why = match (asked, late) {
                (true, _) => "at the time that was asked for".to_owned(),
                (false, 0) => "at once".to_owned(),
                (false, _) => "put off first, which cost no try".to_owned(),
            };
            ("delivered", why)
        }
        State::Delivered { .. } => ("delivered", after()),
        State::Dead { reason, .. } => {
            let error = message.last_error.as_ref().map(|error| format!(", {}", said(Some(error))));
            ("dead", format!("{}{}", reason.name(), error.unwrap_or_default()))
        }
        other => (other.name(), String::new()),
    }
}

/// A span to the nearest tenth of a second: nobody sees more.
fn in_tenths(span: Duration) -> String {
    let tenths = (span.as_millis() as u64 + 50) / 100;
    show_span(Duration::from_millis(tenths * 100))
}

/// An error as the other side said it.
fn said(failure: Option<&Failure>) -> String {
    let Some(failure) = failure else { return "no answer".to_owned() };
    match &failure.code {
        Some(code) => format!("{code} {}", failure.text),
        None => failure.text.to_string(),
    }
}

/// The end of an attempt's name: enough to recognise it.
fn short(id: &AttemptId) -> String {
    let whole = id.to_string();
    let tail = whole.char_indices().rev().nth(8).map_or(0, |(at, _)| at);
    format!("attempt …{}", &whole[tail..])
}
