//! `/admin/messages/{id}`: where one message stands, why, everything that was tried, and what will be. What it carries is
//! shown to operators, as text, and as HTML only in a frame that may do nothing.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use redeliver_core::campaign::MailOf;
use redeliver_core::edit::EditRecord;
use redeliver_core::email::Email;
use redeliver_core::message::{Fate, RecipientVerdict};
use redeliver_core::status::Status;
use redeliver_core::{Content, Message, MessageId, State as Standing, Timestamp};
use redeliver_engine::Engine;

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
use super::timeline::{Instances, Step, steps};
use crate::api::messages::find;
use crate::api::view::MessageView;
use crate::input::Id;
use crate::problem::Problem;

/// One line of what is known.
#[derive(Default)]
struct Fact {
    name: &'static str,
    text: String,
    at: Option<Moment>,
    href: Option<String>,
}

/// What became of one recipient of a mail that has several.
struct Recipient {
    word: &'static str,
    /// Its address, for those who may read what a message carries; for others, which one it is.
    who: String,
    why: Option<String>,
}

impl Recipient {
    fn all_of(message: &Message, email: Option<&Email>) -> Vec<Self> {
        let one = |verdict: &RecipientVerdict| {
            let mailbox = email.and_then(|email| email.recipients().nth(verdict.index as usize));
            let (word, failure) = match &verdict.fate {
                Fate::Delivered => ("Delivered", None),
                Fate::Failed(failure) => ("Failed", Some(failure)),
                Fate::Refused(failure) => ("Refused", Some(failure)),
            };
            let who = mailbox.map_or_else(|| format!("Recipient {}", verdict.index + 1), written);
            Self { word, who, why: failure.map(said) }
        };
        message.recipients.iter().map(one).collect()
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
    recipients: Vec<Recipient>,
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
        recipients: Recipient::all_of(&message, carried.email().filter(|_| visitor.may_act())),
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
        Some(text("Attempts", format!("{}{budget}", view.attempts))),
        some("Reason", view.dead_reason.map(|reason| reason.replace('_', " "))),
        some("Last error", message.last_error.as_ref().map(said)),
        some("Receipt", view.receipt),
        some("Waiting for", view.parked_for),
        some("Cancelled for", view.cancelled_for),
        time(if message.state.ended_at().is_some() { "Was due" } else { "Due" }, Some(message.due_at)),
        time("Expires", message.expires_at),
        time("Ended", message.state.ended_at().and_then(Timestamp::known)),
        time("Dismissed", dismissed_at.and_then(Timestamp::known)),
        time("Accepted", message.created_at.known()),
        Some(text("Route", format!("{}, {} priority", view.route, view.priority))),
        Some(text("Workspace", view.workspace)),
        campaign,
        some("Key", view.key),
        some("Retried by operators", more_than_none(message.generation)),
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
    let carries = if parts.is_empty() { "only a subject".to_owned() } else { parts.join(", ") };
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
