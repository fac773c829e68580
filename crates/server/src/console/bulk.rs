//! `/admin/bulk`: the same done to many messages. First what it would mean, then how far it has come.

use std::time::Duration;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use redeliver_core::bulk::{Bulk, Pace, STAGES, Standing};
use redeliver_core::operate::Action;
use redeliver_core::time::tell_span;
use redeliver_engine::bulk::Forecast;

use super::emails::visible;
use super::form::Form;
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::moment::{Moment, Piece, pieces};
use super::page::{Answer, page};
use super::progress::Progress;
use super::refusal::Refusal;
use super::{Console, link};
use crate::api::bulk::{Asked, RATE_PER_S, Wanted, find, page as listed, plan, rate, start, told};
use crate::api::messages::cursor;
use crate::input::{Pair, Params, Segment, query};
use crate::problem::{FieldProblem, Problem};

const ACTIONS: [Action; 3] = [Action::Retry, Action::Cancel, Action::Dismiss];

struct Row {
    href: String,
    what: String,
    which: Vec<Piece>,
    standing: &'static str,
    class: &'static str,
    done: u64,
    /// How many there were to do, once they have been counted.
    total: Option<String>,
    left: Option<u64>,
    progress: Option<Progress>,
    skipped: u64,
    actor: String,
    created: Moment,
}

#[derive(Template)]
#[template(path = "bulks.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
    is_first: bool,
    newest: &'static str,
    older: Option<String>,
}

#[derive(Template)]
#[template(path = "bulk_plan.html")]
struct Plan {
    frame: Frame,
    action: &'static str,
    which: Vec<Piece>,
    count: usize,
    is_least: bool,
    oldest: Option<Moment>,
    newest: Option<Moment>,
    tries: Option<u64>,
    takes: String,
    rate_per_s: u32,
    fields: Vec<(&'static str, String)>,
    back: &'static str,
    csrf: String,
}

#[derive(Template)]
#[template(path = "bulk.html")]
struct One {
    frame: Frame,
    row: Row,
    why: Option<String>,
    stage: Option<String>,
    rate_per_s: u32,
    pace: Option<String>,
    /// How long it goes on at this pace.
    takes: Option<String>,
    updated: Moment,
    is_running: bool,
    is_paused: bool,
    may_act: bool,
    csrf: String,
}

/// `GET /admin/bulk`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    mut params: Params,
) -> Answer {
    let after = params.get("after", cursor::read);
    params.finish()?;
    let is_first = after.is_none();
    let (bulks, next) = listed(&console.server, &visitor.caller, after).await?;
    page(&List {
        frame: Frame::around(&console, &visitor, Place::Bulk),
        rows: bulks.iter().map(Row::of).collect(),
        is_first,
        newest: link::BULK,
        older: next.map(|next| format!("{}?after={next}", link::BULK)),
    })
}

/// `GET /admin/bulk/{bulk}`
pub(super) async fn one(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Segment(id): Segment,
) -> Answer {
    let bulk = find(&console.server, &visitor.caller, &id).await?;
    page(&One {
        frame: Frame::around(&console, &visitor, Place::Bulk),
        row: Row::of(&bulk),
        why: bulk.why.as_deref().map(visible),
        stage: stage(&bulk),
        rate_per_s: bulk.rate_per_s,
        pace: bulk.pace_per_s().map(|pace| format!("{pace:.1}")),
        takes: takes(&bulk),
        updated: Moment::from_now(bulk.updated_at, console.server.engine.clock().now()),
        is_running: bulk.standing == Standing::Running,
        is_paused: bulk.standing == Standing::Paused,
        may_act: visitor.may_act(),
        csrf: visitor.csrf.clone(),
    })
}

/// `POST /admin/bulk`: without `sure`, what it would mean; with it, the beginning.
pub(super) async fn begin(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<Form>,
) -> Result<Response, Refusal> {
    let bulk = plan(&console.server, &visitor.caller, wanted(&form)?)?;
    if form.text("sure") == "yes" {
        let bulk = start(&console.server, bulk).await?;
        return Ok(Redirect::to(&href(&bulk)).into_response());
    }
    let forecast = console.server.engine.forecast(&bulk).await?;
    Ok(ask(&console, &visitor, &form, &bulk, &forecast)?.into_response())
}

/// `POST /admin/bulk/{bulk}/{word}`
pub(super) async fn tell(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Pair(id, word): Pair,
) -> Result<Response, Refusal> {
    let word = ["pause", "resume", "stop"].into_iter().find(|known| *known == word);
    let word = word.ok_or_else(|| Problem::not_found("no page at this address"))?;
    let bulk = told(&console.server, &visitor.caller, &id, word).await?;
    Ok(Redirect::to(&href(&bulk)).into_response())
}

fn ask(console: &Console, visitor: &Visitor, form: &Form, bulk: &Bulk, forecast: &Forecast) -> Answer {
    let seconds = (forecast.count as u64).div_ceil(u64::from(bulk.rate_per_s.max(1)));
    let mut fields: Vec<(&'static str, String)> =
        super::messages::ASKED.into_iter().map(|name| (name, form.text(name).to_owned())).collect();
    fields.extend(form.all("id").map(|id| ("id", id.to_owned())));
    fields.push(("all", form.text("all").to_owned()));
    fields.retain(|(_, text)| !text.is_empty());
    page(&Plan {
        frame: Frame::around(console, visitor, Place::Bulk),
        action: bulk.action.name(),
        which: pieces(&words(bulk)),
        count: forecast.count,
        is_least: forecast.is_least,
        oldest: forecast.oldest_at.map(Moment::clock),
        newest: forecast.newest_at.map(Moment::clock),
        tries: (bulk.action == Action::Retry).then_some(forecast.attempts_max),
        takes: tell_span(Duration::from_secs(seconds)),
        rate_per_s: bulk.rate_per_s,
        fields,
        back: link::MESSAGES,
        csrf: visitor.csrf.clone(),
    })
}

fn wanted(form: &Form) -> Result<Wanted, Problem> {
    let wrong = |field, problem: String| Problem::invalid(vec![FieldProblem::new(field, problem)]);
    let find = |word: &str| ACTIONS.into_iter().find(|action| action.name() == word);
    let action = query::word(form.text("action"), find, &ACTIONS.map(Action::name));
    let said = |name: &str| Some(form.text(name).trim().to_owned()).filter(|text| !text.is_empty());
    let rate_per_s = match said("rate_per_s") {
        None => RATE_PER_S,
        Some(text) => {
            let number = text.parse().map_err(|_| wrong("rate_per_s", "is a number".to_owned()))?;
            rate(number).map_err(|problem| wrong("rate_per_s", problem))?
        }
    };
    let asked = Asked {
        status: said("status"),
        route: said("route"),
        workspace: said("workspace"),
        priority: said("priority"),
        key: said("key"),
        recipient: said("recipient"),
        error: said("error"),
        fingerprint: said("fingerprint"),
        since: said("since"),
        before: said("before"),
    };
    let ids: Vec<String> = match form.text("all") {
        "yes" => Vec::new(),
        _ => form.all("id").map(str::to_owned).collect(),
    };
    if ids.is_empty() && form.text("all") != "yes" {
        return Err(wrong("id", "is missing: select messages, or choose all matching messages".to_owned()));
    }
    Ok(Wanted {
        action: action.map_err(|problem| wrong("action", problem))?,
        asked,
        ids,
        pace: Pace { rate_per_s, is_careful: form.text("canary") == "yes" },
    })
}

impl Row {
    fn of(bulk: &Bulk) -> Self {
        let class = match (bulk.standing, &bulk.why) {
            (Standing::Running, _) => "active",
            (Standing::Paused, _) => "warning",
            (Standing::Stopped, Some(_)) => "alarm",
            (Standing::Stopped, None) => "muted",
            (Standing::Done, _) => "good",
        };
        Self {
            href: href(bulk),
            what: bulk.action.name().to_owned(),
            which: pieces(&words(bulk)),
            standing: bulk.standing.name(),
            class,
            done: bulk.done,
            total: bulk.total.map(|total| match total.is_least {
                true => format!("at least {}", total.count),
                false => total.count.to_string(),
            }),
            left: bulk.left(),
            progress: bulk.total.map(|total| Progress::of(bulk.done, total.count)),
            skipped: bulk.skipped,
            actor: visible(&bulk.actor),
            created: Moment::clock(bulk.created_at),
        }
    }
}

fn href(bulk: &Bulk) -> String {
    format!("{}/{}", link::BULK, link::segment(&bulk.id))
}

/// How long one that runs still takes at the pace that it has.
fn takes(bulk: &Bulk) -> Option<String> {
    let pace = bulk.pace_per_s().filter(|pace| *pace > 0.0 && bulk.standing == Standing::Running)?;
    Some(tell_span(Duration::from_secs((bulk.left()? as f64 / pace).ceil() as u64)))
}

/// Which messages, in words.
fn words(bulk: &Bulk) -> String {
    let which = &bulk.which;
    if !which.ids.is_empty() {
        return match which.ids.len() {
            1 => "one message".to_owned(),
            len => format!("{len} selected messages"),
        };
    }
    let said = [
        ("status", which.status.as_deref()),
        ("route", which.route.as_deref()),
        ("workspace", which.workspace.as_deref()),
        ("priority", which.priority.as_deref()),
        ("key", which.key.as_deref()),
        ("recipient", which.recipient.as_deref()),
        ("error", which.error.as_deref()),
        ("error like", which.fingerprint.as_deref()),
    ];
    let said: Vec<String> =
        said.into_iter().filter_map(|(name, text)| Some(format!("{name} {}", visible(text?)))).collect();
    let with = if said.is_empty() { String::new() } else { format!(" with {}", said.join(", ")) };
    // What comes after it has begun is never meant.
    let before = which.before.filter(|before| *before <= bulk.created_at);
    let when = match (which.since, before) {
        (None, None) => String::new(),
        (Some(since), None) => format!(", accepted since {since}"),
        (None, Some(before)) => format!(", accepted before {before}"),
        (Some(since), Some(before)) => format!(", accepted from {since} to {before}"),
    };
    format!("all messages{with}{when}")
}

/// Which stage a careful one is in, in words.
fn stage(bulk: &Bulk) -> Option<String> {
    let words = match STAGES.get(bulk.stage) {
        _ if !bulk.is_careful => return None,
        Some(_) if bulk.standing.has_ended() => format!("ended in stage {}", bulk.stage + 1),
        Some(len) if bulk.room() == 0 => format!("watching the {len} messages of stage {}", bulk.stage + 1),
        Some(len) => format!("stage {}: {} of {len}", bulk.stage + 1, bulk.trial.len()),
        None => "all others; the first three stages succeeded".to_owned(),
    };
    Some(words)
}

#[cfg(test)]
mod tests {
    use redeliver_core::Timestamp;
    use redeliver_core::bulk::{Total, Which};

    use super::*;

    fn bulk(which: Which) -> Bulk {
        let (pace, at) = (Pace { rate_per_s: 50, is_careful: false }, Timestamp::from_ms(9_000));
        Bulk {
            done: 40,
            total: Some(Total { count: 100, is_least: false }),
            worked_ms: 2_000,
            ..Bulk::new("b", "ada", Action::Retry, which, pace, at)
        }
    }

    #[test]
    fn which_messages_are_meant_is_said_with_their_times() {
        let check = |which: Which, said: &str| assert_eq!(words(&bulk(which)), said);
        let at = |s: i64| Some(Timestamp::from_ms(s * 1_000));
        check(Which { before: Some(Timestamp::from_ms(9_001)), ..Which::default() }, "all messages");
        check(
            Which { since: at(5), ..Which::default() },
            "all messages, accepted since 1970-01-01T00:00:05.000Z",
        );
        check(
            Which { status: Some("dead".into()), since: at(5), before: at(8), ..Which::default() },
            "all messages with status dead, accepted from 1970-01-01T00:00:05.000Z to 1970-01-01T00:00:08.000Z",
        );
        check(Which { ids: vec!["a".into(), "b".into()], ..Which::default() }, "2 selected messages");
    }

    #[test]
    fn how_long_it_takes_is_told_by_how_fast_it_goes_and_only_while_it_does() {
        let running = bulk(Which::default());
        assert_eq!((running.pace_per_s(), takes(&running)), (Some(20.0), Some("3 s".to_owned())));
        let paused = Bulk { standing: Standing::Paused, ..running.clone() };
        assert_eq!(takes(&paused), None);
        assert_eq!(takes(&Bulk { worked_ms: 999, ..running }), None);
    }
}
