//! `/admin/dead-letters`: what was given up, by the error that did it, and what to do about each kind.

use std::collections::BTreeSet;

use askama::Template;
use askama::filters::HtmlSafe;
use axum::Extension;
use axum::extract::State;
use redeliver_core::Name;

use super::Console;
use super::emails::visible;
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::link;
use super::moment::Moment;
use super::page::{Answer, page};
use crate::api::dead_letters::{Group, LOOKED_AT_MAX, groups};
use crate::input::Params;

struct Row {
    fingerprint: String,
    error: String,
    count: usize,
    first: Option<Moment>,
    last: Option<Moment>,
    routes: String,
    destinations: String,
    spark: Spark,
    messages: String,
}

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct Page {
    frame: Frame,
    rows: Vec<Row>,
    is_full: bool,
    looked_at: usize,
    may_act: bool,
    csrf: String,
}

/// How many in each hour, as small bars.
#[derive(Template)]
#[template(
    ext = "html",
    source = r#"<svg class="spark" viewBox="0 0 96 24" role="img" aria-label="{{ label }}">
{%- for (x, y, high) in bars %}<rect x="{{ x }}" y="{{ y }}" width="3" height="{{ high }}"></rect>{% endfor %}</svg>"#
)]
struct Spark {
    label: String,
    bars: Vec<(usize, u32, u32)>,
}

// It is rendered by a template that escapes what is inside.
impl HtmlSafe for Spark {}

impl Spark {
    fn of(hours: &[u32]) -> Self {
        let most = hours.iter().copied().max().unwrap_or(0).max(1);
        let bar = |(place, count): (usize, &u32)| {
            let high = if *count == 0 { 1 } else { (count * 22).div_ceil(most).max(3) };
            (place * 4, 24 - high, high)
        };
        let sum: u32 = hours.iter().sum();
        Self {
            label: format!("{sum} in the last 24 hours"),
            bars: hours.iter().enumerate().map(bar).collect(),
        }
    }
}

fn joined(names: &BTreeSet<Name>) -> String {
    visible(&names.iter().map(|name| &**name).collect::<Vec<_>>().join(", "))
}

/// `GET /admin/dead-letters`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    params: Params,
) -> Answer {
    params.finish()?;
    let (groups, looked_at) = groups(&console.server, &visitor.caller, None).await?;
    let now = console.server.engine.clock().now();
    let row = |group: &Group| Row {
        fingerprint: group.fingerprint.clone(),
        error: visible(&group.error),
        count: group.count,
        first: group.first_at.map(|at| Moment::from_now(at, now)),
        last: group.last_at.map(|at| Moment::from_now(at, now)),
        routes: joined(&group.routes),
        destinations: joined(&group.destinations),
        spark: Spark::of(&group.hours),
        messages: link::with(link::MESSAGES, &[("status", "dead"), ("fingerprint", &group.fingerprint)]),
    };
    page(&Page {
        frame: Frame::around(&console, &visitor, Place::Dead),
        rows: groups.iter().map(row).collect(),
        is_full: looked_at >= LOOKED_AT_MAX,
        looked_at,
        may_act: visitor.may_act(),
        csrf: visitor.csrf.clone(),
    })
}
