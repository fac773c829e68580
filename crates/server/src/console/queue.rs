//! `/admin/email-queue`: the e-mails that are not delivered yet, newest first, and what can be done about them.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use redeliver_core::State as Standing;
use redeliver_core::status::Status;
use redeliver_core::{Message, MessageId, Timestamp};
use redeliver_engine::Engine;
use redeliver_engine::store::{Filter, StoreError};

use super::emails::{Heading, heading, said, visible};
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::moment::Moment;
use super::page::{Answer, page};
use super::tally::PENDING;
use super::{Console, link};
use crate::api::messages::cursor;
use crate::auth::Caller;
use crate::input::{Params, query};

/// E-mails of one page.
const PAGE_LEN: usize = 50;

/// Which e-mails to show.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Show {
    /// All that need time or a person.
    #[default]
    Open,
    Pending,
    Failed,
    Delivered,
}

impl Show {
    const ALL: [Self; 4] = [Self::Open, Self::Pending, Self::Failed, Self::Delivered];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Open => "all",
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::Delivered => "delivered",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|show| show.word() == word)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Open => "All open",
            Self::Pending => "Pending",
            Self::Failed => "Failed",
            Self::Delivered => "Delivered",
        }
    }

    /// Where the queue shows these.
    pub(super) fn href(self) -> String {
        format!("{}?show={}", link::QUEUE, self.word())
    }

    fn states(self) -> Vec<&'static str> {
        let pending = PENDING.to_vec();
        match self {
            Self::Open => [pending, vec!["dead"]].concat(),
            Self::Pending => pending,
            Self::Failed => vec!["dead"],
            Self::Delivered => vec!["delivered"],
        }
    }
}

struct Tab {
    href: String,
    name: &'static str,
    is_here: bool,
}

/// What a list shows of a message.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) href: String,
    pub(super) heading: Heading,
    pub(super) status: &'static str,
    pub(super) class: &'static str,
    pub(super) route: String,
    pub(super) priority: &'static str,
    pub(super) attempts: u32,
    pub(super) attempts_max: Option<u32>,
    pub(super) next: Option<(Moment, Moment)>,
    pub(super) error: Option<String>,
    pub(super) created: Option<Moment>,
    pub(super) is_failed: bool,
}

#[derive(Template)]
#[template(path = "queue.html")]
struct Page {
    frame: Frame,
    tabs: Vec<Tab>,
    show: Show,
    rows: Vec<Row>,
    is_first: bool,
    newest: String,
    older: Option<String>,
    may_act: bool,
    csrf: String,
    /// A route to try, for whoever has nothing here yet.
    route: String,
}

/// `GET /admin/email-queue`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    mut params: Params,
) -> Answer {
    let words = Show::ALL.map(Show::word);
    let show = params.get("show", |word| query::word(word, Show::from_word, &words)).unwrap_or_default();
    let after = params.get("after", cursor::read);
    params.finish()?;
    let engine = &console.server.engine;
    let is_first = after.is_none();
    let mut messages = list(engine, &visitor.caller, show, after).await?;
    let has_more = messages.len() > PAGE_LEN;
    messages.truncate(PAGE_LEN);
    let last = messages.last().filter(|_| has_more);
    let older = last.map(|last| format!("{}&after={}", show.href(), cursor::behind(&last.id)));
    let mut rows = Vec::with_capacity(messages.len());
    for message in &messages {
        let heading = heading(engine, message).await?;
        let row = Row::of(message, heading, engine, engine.clock().now());
        // Those who had an outbox of their own call a dead mail a failed one.
        rows.push(if row.is_failed { Row { status: "failed", ..row } } else { row });
    }
    let tab = |tab: Show| Tab { href: tab.href(), name: tab.name(), is_here: tab == show };
    page(&Page {
        frame: Frame::around(&console, &visitor, Place::Queue),
        tabs: Show::ALL.map(tab).into(),
        show,
        rows,
        is_first,
        newest: show.href(),
        older,
        may_act: visitor.may_act(),
        csrf: visitor.csrf.clone(),
        route: route_to_try(engine),
    })
}

/// The newest e-mails older than `after`: one more than a page, where there are so many.
async fn list(
    engine: &Engine,
    caller: &Caller,
    show: Show,
    after: Option<MessageId>,
) -> Result<Vec<Message>, StoreError> {
    let store = engine.store().as_ref();
    let mut found = Vec::new();
    for route in engine.routes().filter(|route| engine.carries_emails(&route.name)) {
        for state in show.states() {
            let filter = Filter {
                workspace: caller.workspace.clone(),
                route: Some(route.name.clone()),
                state: Some(state),
                after: after.clone(),
                limit: PAGE_LEN + 1,
                ..Filter::default()
            };
            found.extend(store.list(filter).await?);
        }
    }
    found.retain(|message| !message.is_dead_letter);
    found.sort_by(|one, other| other.id.cmp(&one.id));
    // One that moved between two looks is there twice.
    found.dedup_by(|one, other| one.id == other.id);
    found.truncate(PAGE_LEN + 1);
    Ok(found)
}

/// A route to try, for whoever has nothing yet.
pub(super) fn route_to_try(engine: &Engine) -> String {
    let named = engine.route("email").or_else(|| engine.routes().next());
    named.map_or_else(|| "email".to_owned(), |route| route.name.to_string())
}

impl Row {
    /// A message under this heading.
    pub(super) fn of(message: &Message, heading: Heading, engine: &Engine, now: Timestamp) -> Self {
        let status = Status::of(message, now);
        let route = engine.route(&message.route);
        let waits = matches!(message.state, Standing::Waiting { .. });
        Self {
            id: message.id.to_string(),
            href: link::message(&message.id),
            heading,
            status: status_words(status),
            class: status_class(status),
            route: visible(&message.route),
            priority: message.lane.name(),
            attempts: message.attempts,
            attempts_max: route.map(|route| route.max_attempts(message)).or(message.max_attempts),
            next: waits.then(|| (Moment::from_now(message.due_at, now), Moment::clock(message.due_at))),
            error: message.last_error.as_ref().map(said),
            created: message.created_at.known().map(Moment::clock),
            is_failed: matches!(message.state, Standing::Dead { .. }),
        }
    }
}

/// A status as pages say it.
pub(super) fn status_words(status: Status) -> &'static str {
    match status {
        Status::HandedOff => "handed off",
        other => other.name(),
    }
}

/// How a status is drawn.
pub(super) fn status_class(status: Status) -> &'static str {
    match status {
        Status::Dead => "alarm",
        Status::Retrying | Status::Held => "warning",
        Status::Due | Status::Sending | Status::HandedOff => "active",
        Status::Delivered => "good",
        Status::Scheduled | Status::Cancelled => "muted",
    }
}
