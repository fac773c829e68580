//! `/admin/messages/{id}`: where one message stands, why, everything that was tried, and what will be. What it carries is
//! shown to operators, as text, and as HTML only in a frame that may do nothing.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use redeliver_core::attempt::{AttemptRecord, Verdict};
use redeliver_core::edit::EditRecord;
use redeliver_core::email::Email;
use redeliver_core::status::Status;
use redeliver_core::time::show_span;
use redeliver_core::{Message, MessageId, State as Standing, Timestamp};
use redeliver_engine::Engine;

use super::Console;
use super::edit::{Row, rows};
use super::emails::{Heading, said, visible, written};
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::link;
use super::moment::{Moment, Piece, pieces};
use super::page::{Answer, page};
use super::preview::Preview;
use super::queue::{status_class, status_words};
use crate::api::messages::find;
use crate::api::view::MessageView;
use crate::input::Id;
use crate::problem::Problem;

/// Tries that are drawn ahead, at most, and the last.
const AHEAD_MAX: usize = 8;

/// One line of what is known.
struct Fact {
    name: &'static str,
    text: String,
    at: Option<Moment>,
}

/// One thing that happened, or will.
struct Step {
    class: &'static str,
    what: String,
    detail: Option<String>,
    clock: Moment,
    distance: Moment,
}

/// What was corrected once, with what it said: for those who may read what a message carries.
struct Edit {
    actor: String,
    at: Moment,
    rows: Vec<Row>,
}

impl Edit {
    fn of(record: &EditRecord) -> Self {
        Self { actor: visible(&record.actor), at: Moment::clock(record.at), rows: rows(&record.differences) }
    }
}

#[derive(Template)]
#[template(path = "message.html")]
struct Page {
    frame: Frame,
    id: String,
    href: String,
    heading: Heading,
    status: &'static str,
    class: &'static str,
    sentence: Vec<Piece>,
    facts: Vec<Fact>,
    steps: Vec<Step>,
    can_retry: bool,
    can_edit: bool,
    edits: Vec<Edit>,
    can_cancel: bool,
    can_dismiss: bool,
    can_restore: bool,
    preview: Option<Preview>,
    csrf: String,
}

/// `GET /admin/messages/{id}`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    id: Result<Id, Problem>,
) -> Answer {
    let Id(id) = id?;
    let engine = &console.server.engine;
    let message = find(&console.server, &visitor.caller, &id).await?;
    let explanation = engine.explain(&id).await?;
    let content = engine.store().content(id.clone()).await?.unwrap_or_default();
    let email = Email::of_content(&content).and_then(Result::ok);
    let attempts = engine.store().attempts(id.clone()).await?;
    let edits = engine.store().edits(id.clone()).await?;
    let now = engine.clock().now();
    let status = Status::of(&message, now);
    let (is_dead, is_dismissed) = match message.state {
        Standing::Dead { dismissed_at, .. } => (true, dismissed_at.is_some()),
        _ => (false, false),
    };
    page(&Page {
        frame: Frame::around(&console, &visitor, Place::Elsewhere),
        id: id.to_string(),
        href: link::message(&id),
        heading: Heading::of(&message, email.as_ref()),
        status: status_words(status),
        class: status_class(status),
        sentence: pieces(&visible(&explanation.map(|explanation| explanation.sentence).unwrap_or_default())),
        facts: facts(&message, email.as_ref(), engine),
        steps: steps(&message, &attempts, &edits, engine, now),
        can_cancel: message.state.ended_at().is_none() && visitor.may_act(),
        preview: visitor.may_act().then(|| Preview::of(&content, email.as_ref())),
        can_retry: is_dead && visitor.may_act(),
        can_edit: is_editable(&message) && visitor.may_act(),
        edits: edits.iter().filter(|_| visitor.may_act()).map(Edit::of).collect(),
        can_dismiss: is_dead && !is_dismissed && visitor.may_act(),
        can_restore: is_dismissed && visitor.may_act(),
        csrf: visitor.csrf.clone(),
    })
}

/// Whether there is something to correct: what was given up, and what waits for a gate that nobody may ever open.
fn is_editable(message: &Message) -> bool {
    let waits = matches!(message.state, Standing::Waiting { parked_for: Some(_) });
    matches!(message.id, MessageId::Own(_)) && (waits || matches!(message.state, Standing::Dead { .. }))
}

fn facts(message: &Message, email: Option<&Email>, engine: &Engine) -> Vec<Fact> {
    let view = MessageView::of(message, engine);
    let text = |name, text: String| Fact { name, text: visible(&text), at: None };
    let some = |name, value: Option<String>| value.map(|value| text(name, value));
    let time = |name, at: Option<Timestamp>| {
        at.map(|at| Fact { name, text: String::new(), at: Some(Moment::clock(at)) })
    };
    let budget = view.max_attempts.map_or_else(String::new, |max| format!(" of {max}"));
    let dismissed_at = match message.state {
        Standing::Dead { dismissed_at, .. } => dismissed_at,
        _ => None,
    };
    let more_than_none = |count: u32| (count > 0).then(|| count.to_string());
    let mut facts = email.map(email_facts).unwrap_or_default();
    let standing = [
        Some(text("Tries", format!("{}{budget}", view.attempts))),
        some("Why it was given up", view.dead_reason.map(|reason| reason.replace('_', " "))),
        some("Last error", message.last_error.as_ref().map(said)),
        some("The other side said", view.receipt),
        some("Waits for", view.parked_for),
        some("Why it was cancelled", view.cancelled_for),
        time(if message.state.ended_at().is_some() { "Was due" } else { "Due" }, Some(message.due_at)),
        time("Expires", message.expires_at),
        time("Ended", message.state.ended_at()),
        time("Dismissed", dismissed_at),
        time("Accepted", Some(message.created_at)),
        Some(text("Route", format!("{}, {} priority", view.route, view.priority))),
        Some(text("Workspace", view.workspace)),
        some("Key", view.key),
        some("Started over", more_than_none(message.generation)),
        some("Leases lost", more_than_none(message.losses)),
        some("Possible duplicates", more_than_none(message.possible_duplicates)),
        Some(text("Id", view.id)),
    ];
    facts.extend(standing.into_iter().flatten());
    facts
}

/// Who gets it and what it is made of, by size and not by sight.
fn email_facts(email: &Email) -> Vec<Fact> {
    let all = |mailboxes: &[redeliver_core::email::Mailbox]| {
        let written: Vec<String> = mailboxes.iter().map(written).collect();
        (!written.is_empty()).then(|| written.join(", "))
    };
    let bytes = |name: &str, text: &Option<String>| {
        text.as_ref().map(|text| format!("{name} of {} bytes", text.len()))
    };
    let parts: Vec<String> = [
        bytes("text", &email.text),
        bytes("HTML", &email.html),
        email.ics.as_ref().map(|ics| format!("invitation ({})", ics.method)),
    ]
    .into_iter()
    .flatten()
    .chain(email.attachments.iter().map(|file| format!("file {}", file.name)))
    .collect();
    let carries = if parts.is_empty() { "nothing but its subject".to_owned() } else { parts.join(", ") };
    let fact = |name, text: Option<String>| text.map(|text| Fact { name, text: visible(&text), at: None });
    [
        fact("From", email.from.as_ref().map(written)),
        fact("To", all(&email.to)),
        fact("Cc", all(&email.cc)),
        fact("Bcc", all(&email.bcc)),
        fact("Carries", Some(carries)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Everything that happened in the order in which it did, and what comes next.
fn steps(
    message: &Message,
    attempts: &[AttemptRecord],
    edits: &[EditRecord],
    engine: &Engine,
    now: Timestamp,
) -> Vec<Step> {
    let step = |class, what: String, detail: Option<String>, at| Step {
        class,
        what,
        detail,
        clock: Moment::clock(at),
        distance: Moment::from_now(at, now),
    };
    let before = match message.attempts_before {
        0 => None,
        n => Some(format!("after {n} tries made elsewhere")),
    };
    let mut steps = vec![step("muted", "Accepted".to_owned(), before, message.created_at)];
    let mut happened: Vec<(Timestamp, Step)> = Vec::new();
    for record in edits {
        let fields: Vec<String> =
            record.differences.iter().map(|different| visible(&different.field)).collect();
        let what = format!("Corrected by {}, sent again", visible(&record.actor));
        happened.push((record.at, step("muted", what, Some(fields.join(", ")), record.at)));
    }
    for record in attempts {
        let again = match record.generation {
            0 => String::new(),
            n => format!(", started over {n} ×"),
        };
        let (class, word) = verdict_words(record.verdict);
        let what = format!("Try {}{again}: {word}", record.attempt);
        happened.push((record.at, step(class, what, record.failure.as_ref().map(said), record.at)));
    }
    happened.sort_by_key(|(at, _)| *at);
    steps.extend(happened.into_iter().map(|(_, step)| step));
    let last = match &message.state {
        Standing::Waiting { .. } => {
            let what = format!("Try {} is next", message.next_attempt());
            Some(step("next", what, None, message.due_at))
        }
        Standing::Delivered { at, receipt } => {
            Some(step("good", "Delivered".to_owned(), receipt.as_deref().map(visible), *at))
        }
        Standing::Dead { at, reason, .. } => {
            Some(step("alarm", "Given up".to_owned(), Some(reason.name().replace('_', " ")), *at))
        }
        Standing::Cancelled { at, reason } => {
            Some(step("muted", "Cancelled".to_owned(), Some(visible(reason)), *at))
        }
        Standing::Claimed(_) | Standing::HandedOff { .. } => None,
    };
    steps.extend(last);
    if matches!(message.state, Standing::Waiting { .. }) {
        steps.extend(ahead(message, engine, now));
    }
    steps
}

/// The tries behind the next one, each with the earliest and the latest time that its policy gives it.
fn ahead(message: &Message, engine: &Engine, now: Timestamp) -> Vec<Step> {
    let Some(route) = engine.route(&message.route) else { return Vec::new() };
    let (policy, tries_max) = (route.policy(message), route.max_attempts(message));
    let (mut from, mut to) = (message.due_at, message.due_at);
    let mut steps = Vec::new();
    for n in message.next_attempt()..tries_max {
        let wait = policy.wait(n);
        (from, to) = (from.plus(wait.min), to.plus(wait.max));
        if steps.len() < AHEAD_MAX || n + 1 == tries_max {
            let room = match to.since(from) {
                room if room.is_zero() => "if that fails".to_owned(),
                room => format!("if that fails, or up to {} later", show_span(room)),
            };
            steps.push(Step {
                class: "ahead",
                what: format!("Try {}{}", n + 1, if n + 1 == tries_max { ", the last" } else { "" }),
                detail: Some(room),
                clock: Moment::clock(from),
                distance: Moment::from_now(from, now),
            });
        }
    }
    steps
}

fn verdict_words(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Failed => ("warning", "failed"),
        Verdict::Refused => ("alarm", "refused"),
        Verdict::Partial => ("warning", "taken for some recipients"),
        Verdict::Lost => ("warning", "lost, nobody knows whether it went out"),
        Verdict::Late => ("muted", "came too late to count"),
    }
}
