//! `/admin/messages`: every message, by whatever is known of it.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use redeliver_core::Lane;
use redeliver_core::status::Status;
use redeliver_engine::search::{Found, LOOKED_THROUGH_MAX, OPENED_MAX};

use super::emails::{heading, visible};
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::page::{Answer, page};
use super::queue::{Row, route_to_try, status_words};
use super::{Console, link};
use crate::api::messages::cursor;
use crate::input::Params;
use crate::search;

/// Messages of one page.
const PAGE_LEN: usize = 50;

/// What can be asked for, as it stands in the address.
pub(super) const ASKED: [&str; 10] = [
    "status",
    "route",
    "priority",
    "workspace",
    "key",
    "recipient",
    "error",
    "fingerprint",
    "since",
    "before",
];

/// How long ago, to choose from.
const SPANS: [(&str, &str); 4] =
    [("1h", "an hour ago"), ("24h", "24 hours ago"), ("7d", "7 days ago"), ("30d", "30 days ago")];

struct Choice {
    value: String,
    name: String,
    is_chosen: bool,
}

/// What somebody asked for, as they wrote it.
#[derive(Default)]
struct Asked(Vec<(&'static str, String)>);

impl Asked {
    fn of(params: &mut Params) -> Self {
        Self(ASKED.into_iter().filter_map(|name| Some((name, params.text(name)?))).collect())
    }

    fn text(&self, wanted: &str) -> &str {
        self.0.iter().find(|(name, _)| *name == wanted).map_or("", |(_, text)| text)
    }

    fn href(&self, after: &str) -> String {
        let mut params: Vec<(&str, &str)> =
            self.0.iter().map(|(name, text)| (*name, text.as_str())).collect();
        params.push(("after", after));
        link::with(link::MESSAGES, &params)
    }

    /// An error of the kind that was asked for, by its fingerprint, and where those of any kind are.
    fn like(&self, rows: &[Row]) -> Option<(String, String)> {
        let fingerprint = Some(self.text("fingerprint")).filter(|text| !text.is_empty())?;
        let error = rows.first().and_then(|row| row.error.clone()).unwrap_or_else(|| visible(fingerprint));
        let others = self.0.iter().filter(|(name, _)| *name != "fingerprint");
        Some((error, Self(others.cloned().collect()).href("")))
    }

    fn choices<'a>(&self, name: &str, all: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Choice> {
        let chosen = self.text(name);
        let choice = |(value, name): (&str, &str)| Choice {
            value: value.to_owned(),
            name: name.to_owned(),
            is_chosen: value == chosen,
        };
        all.map(choice).collect()
    }
}

#[derive(Template)]
#[template(path = "messages.html")]
struct Page {
    frame: Frame,
    asked: Asked,
    statuses: Vec<Choice>,
    routes: Vec<Choice>,
    priorities: Vec<Choice>,
    spans: [(&'static str, &'static str); 4],
    /// An error like which all are, and where all errors are.
    like: Option<(String, String)>,
    has_workspaces: bool,
    rows: Vec<Row>,
    is_first: bool,
    is_filtered: bool,
    looked_through: Option<usize>,
    newest: String,
    older: Option<String>,
    route: String,
    may_act: bool,
    csrf: String,
}

/// `GET /admin/messages`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    params: Params,
) -> Answer {
    let mut params = params.filled();
    let engine = &console.server.engine;
    let asked = Asked::of(&mut params);
    let after = params.get("after", cursor::read);
    let search = search::read(&mut params, &visitor.caller, engine.clock().now());
    params.finish()?;
    let is_first = after.is_none();
    let found = match &search {
        Some(search) => search.find(engine, after, PAGE_LEN).await?,
        None => Found::default(),
    };
    let mut rows = Vec::with_capacity(found.messages.len());
    for message in &found.messages {
        let heading = heading(engine, message).await?;
        rows.push(Row::of(message, heading, engine, engine.clock().now()));
    }
    let error = format!("{}{}", asked.text("error"), asked.text("fingerprint"));
    let looked_through = match (asked.text("recipient"), error.as_str()) {
        ("", "") => None,
        ("", _) => Some(LOOKED_THROUGH_MAX),
        (_, _) => Some(OPENED_MAX),
    };
    page(&Page {
        frame: Frame::around(&console, &visitor, Place::Messages),
        statuses: asked
            .choices("status", Status::ALL.into_iter().map(|status| (status.name(), status_words(status)))),
        routes: asked.choices("route", engine.routes().map(|route| (&*route.name, &*route.name))),
        priorities: asked.choices("priority", Lane::ALL.into_iter().map(|lane| (lane.name(), lane.name()))),
        spans: SPANS,
        has_workspaces: visitor.caller.workspace.is_none(),
        like: asked.like(&rows),
        rows,
        is_first,
        is_filtered: !asked.0.is_empty(),
        looked_through: looked_through.filter(|_| found.next.is_some()),
        newest: asked.href(""),
        older: found.next.as_ref().map(|next| asked.href(&cursor::behind(next))),
        route: route_to_try(engine),
        may_act: visitor.may_act(),
        csrf: visitor.csrf.clone(),
        asked,
    })
}
