//! `/admin/messages/{id}`: where one message stands, why, everything that was tried, and what will be. What it carries is
//! shown to operators, as text, and as HTML only in a frame that may do nothing.

use std::collections::BTreeMap;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use redeliver_core::attempt::{AttemptRecord, Verdict};
use redeliver_core::campaign::MailOf;
use redeliver_core::edit::EditRecord;
use redeliver_core::email::Email;
use redeliver_core::status::Status;
use redeliver_core::time::tell_span;
use redeliver_core::{Content, InstanceId, Message, MessageId, State as Standing, Timestamp};
use redeliver_engine::Engine;
use redeliver_engine::store::StoreError;

use super::Console;
use super::edit::{Row, rows};
use super::emails::{Carried, Heading, said, visible, written};
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
#[derive(Default)]
struct Fact {
    name: &'static str,
    text: String,
    at: Option<Moment>,
    href: Option<String>,
}

/// One thing that happened, or will.
struct Step {
    class: &'static str,
    what: String,
    detail: Option<String>,
    /// Which instance did it, where that is known.
    by: Option<String>,
    /// What the time is the time of, where it isn't that of the thing itself.
    when: &'static str,
    /// How long ago or ahead that is, and when, if anybody knows.
    at: Option<(Moment, Moment)>,
}

/// What instances are called, as far as whoever looks may know.
struct Instances(BTreeMap<InstanceId, String>);

impl Instances {
    /// A name says where an instance runs, which is for those who see all workspaces; the others are told its id.
    async fn living(engine: &Engine, visitor: &Visitor, now: Timestamp) -> Result<Self, StoreError> {
        if visitor.caller.workspace.is_some() {
            return Ok(Self(BTreeMap::new()));
        }
        let living = engine.store().living(now).await?;
        let named = living.into_iter().filter_map(|one| Some((one.id, one.about?.name.to_string())));
        Ok(Self(named.collect()))
    }

    fn called(&self, id: InstanceId) -> String {
        match self.0.get(&id) {
            Some(name) => format!("by {} ({id})", visible(name)),
            None => format!("by instance {id}"),
        }
    }
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
    let carried = Carried::of(engine, &message, &content).await?;
    let attempts = engine.store().attempts(id.clone()).await?;
    let edits = engine.store().edits(id.clone()).await?;
    let now = engine.clock().now();
    let instances = Instances::living(engine, &visitor, now).await?;
    let status = Status::of(&message, now);
    let (is_dead, is_dismissed) = match message.state {
        Standing::Dead { dismissed_at, .. } => (true, dismissed_at.is_some()),
        _ => (false, false),
    };
    page(&Page {
        frame: Frame::around(&console, &visitor, Place::Elsewhere),
        id: id.to_string(),
        href: link::message(&id),
        heading: Heading::of(&message, &content, &carried),
        status: status_words(status),
        class: status_class(status),
        sentence: pieces(&visible(&explanation.map(|explanation| explanation.sentence).unwrap_or_default())),
        facts: facts(&message, &content, carried.email(), engine),
        steps: steps(&message, &attempts, &edits, engine, &instances),
        can_cancel: message.state.ended_at().is_none() && visitor.may_act(),
        preview: visitor.may_act().then(|| Preview::of(&message, &content, &carried)),
        can_retry: is_dead && visitor.may_act(),
        can_edit: is_editable(&message) && !MailOf::is_unwritten(&content) && visitor.may_act(),
        edits: edits.iter().filter(|_| visitor.may_act()).map(Edit::of).collect(),
        can_dismiss: is_dead && !is_dismissed && visitor.may_act(),
        can_restore: is_dismissed && visitor.may_act(),
        csrf: visitor.csrf.clone(),
    })
}

/// Whether there is something to correct: what was given up, and what waits for a gate that nobody may ever open. A mail that
/// is not written yet has nothing to correct.
fn is_editable(message: &Message) -> bool {
    let waits = matches!(message.state, Standing::Waiting { parked_for: Some(_) });
    matches!(message.id, MessageId::Own(_)) && (waits || matches!(message.state, Standing::Dead { .. }))
}

fn facts(message: &Message, content: &Content, email: Option<&Email>, engine: &Engine) -> Vec<Fact> {
    let view = MessageView::of(message, engine);
    let text = |name, text: String| Fact { name, text: visible(&text), ..Fact::default() };
    let some = |name, value: Option<String>| value.map(|value| text(name, value));
    let time = |name, at: Option<Timestamp>| {
        at.map(|at| Fact { name, at: Some(Moment::clock(at)), ..Fact::default() })
    };
    let campaign = MailOf::of_content(content).map(|of| Fact {
        href: Some(link::campaign(&of.campaign)),
        ..text("Campaign", format!("step {} for {}", of.step, of.prospect))
    });
    let budget = view.max_attempts.map_or_else(String::new, |max| format!(" of {max}"));
    let dismissed_at = match message.state {
        Standing::Dead { dismissed_at, .. } => dismissed_at,
        _ => None,
    };
    let more_than_none = |count: u32| (count > 0).then(|| count.to_string());
    let mut facts = email.map(email_facts).unwrap_or_default();
    let standing = [
        Some(text("Tries", format!("{}{budget}", view.attempts))),
        some("Why it is dead", view.dead_reason.map(|reason| reason.replace('_', " "))),
        some("Last error", message.last_error.as_ref().map(said)),
        some("The other side said", view.receipt),
        some("Waits for", view.parked_for),
        some("Why it was cancelled", view.cancelled_for),
        time(if message.state.ended_at().is_some() { "Was due" } else { "Due" }, Some(message.due_at)),
        time("Expires", message.expires_at),
        time("Ended", message.state.ended_at().and_then(Timestamp::known)),
        time("Dismissed", dismissed_at.and_then(Timestamp::known)),
        time("Accepted", message.created_at.known()),
        Some(text("Route", format!("{}, {} priority", view.route, view.priority))),
        Some(text("Workspace", view.workspace)),
        campaign,
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
    let fact =
        |name, text: Option<String>| text.map(|text| Fact { name, text: visible(&text), ..Fact::default() });
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
    instances: &Instances,
) -> Vec<Step> {
    let now = engine.clock().now();
    let step = |class, what: String, detail: Option<String>, at| Step::at(class, what, detail, at, now);
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
        let by = record.instance.map(|instance| instances.called(instance));
        let step = step(class, what, record.failure.as_ref().map(said), record.at);
        happened.push((record.at, Step { by, ..step }));
    }
    happened.sort_by_key(|(at, _)| *at);
    steps.extend(happened.into_iter().map(|(_, step)| step));
    steps.extend(present(message, instances, now));
    if matches!(message.state, Standing::Waiting { .. }) {
        steps.extend(ahead(message, engine, now));
    }
    steps
}

/// Where it stands now, and what is expected of that.
fn present(message: &Message, instances: &Instances, now: Timestamp) -> Vec<Step> {
    let step = |class, what: String, detail: Option<String>, at| Step::at(class, what, detail, at, now);
    match &message.state {
        Standing::Waiting { parked_for: None } => {
            let what = format!("Try {} is next", message.next_attempt());
            vec![Step { when: "due ", ..step("next", what, None, message.due_at) }]
        }
        Standing::Waiting { parked_for: Some(_) } => {
            let what = format!("Try {} waits for a gate to open", message.next_attempt());
            vec![Step { when: "due ", ..step("next", what, None, message.due_at) }]
        }
        Standing::Claimed(lease) => {
            let what = format!("Try {} is under way", message.next_attempt());
            let (when, at) = match lease.started_at {
                Some(at) => ("since ", at),
                None => ("claimed until ", lease.until_at),
            };
            let by = Some(instances.called(lease.instance));
            vec![Step { by, when, ..step("next", what, None, at) }]
        }
        Standing::HandedOff { since, report_by } => {
            let handed = step("muted", "Handed off to an outside worker".to_owned(), None, *since);
            let report = report_by.map(|at| {
                let what = "Its report is to come".to_owned();
                Step { when: "by ", ..step("next", what, None, at) }
            });
            [handed].into_iter().chain(report).collect()
        }
        Standing::Delivered { at, receipt } => {
            vec![step("good", "Delivered".to_owned(), receipt.as_deref().map(visible), *at)]
        }
        Standing::Dead { at, reason, .. } => {
            vec![step("alarm", "Given up: dead".to_owned(), Some(reason.name().replace('_', " ")), *at)]
        }
        Standing::Cancelled { at, reason } => {
            vec![step("muted", "Cancelled".to_owned(), Some(visible(reason)), *at)]
        }
    }
}

impl Step {
    fn at(class: &'static str, what: String, detail: Option<String>, at: Timestamp, now: Timestamp) -> Self {
        let at = at.known().map(|at| (Moment::from_now(at, now), Moment::clock(at)));
        Self { class, what, detail, by: None, when: "", at }
    }
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
                room => format!("if that fails, or up to {} later", tell_span(room)),
            };
            let what = format!("Try {}{}", n + 1, if n + 1 == tries_max { ", the last" } else { "" });
            steps.push(Step::at("ahead", what, Some(room), from, now));
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
