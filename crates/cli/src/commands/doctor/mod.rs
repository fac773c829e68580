//! `redeliver doctor`: says whether a store and what is in it are well, and what to do if not. Changes nothing.

mod database;
mod judge;
mod look;
mod tables;

use serde::Serialize;

use self::judge::judge;
use self::look::look;
use super::{load_config, print, print_json};
use crate::args::DoctorArgs;
use crate::config::problem::counted;
use crate::exit::{FAILED, Told};
use crate::reach;

/// How well something is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    /// Nothing to do.
    Ok,
    /// Somebody should look at it.
    Warning,
    /// Somebody must do something.
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    level: Level,
    /// What was looked at, in a word.
    what: &'static str,
    /// How it is.
    text: String,
    /// What to do about it.
    advice: Option<String>,
}

/// Everything that was found, as programs read it.
#[derive(Serialize)]
struct Report {
    level: Level,
    store: String,
    findings: Vec<Finding>,
    counts: Vec<Counted>,
}

/// How many messages of a route stand in a state.
#[derive(Serialize)]
struct Counted {
    route: String,
    lane: &'static str,
    state: &'static str,
    reason: Option<&'static str>,
    count: u64,
    due: u64,
    parked: u64,
}

pub(super) fn run(args: &DoctorArgs) -> anyhow::Result<()> {
    let loaded = load_config(&args.config)?;
    let (facts, of_tables) =
        reach::run(async { Ok((look(&loaded.config.store).await, tables::findings(&loaded.config).await)) })?;
    let mut findings = judge(&loaded, &facts);
    findings.extend(of_tables);
    let level = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
    let store = loaded.config.store.url.show();
    if args.json {
        let counts = facts.counts().iter().map(Counted::of).collect();
        print_json(&Report { level, store, findings, counts })?;
    } else {
        print(&text(&store, &findings))?;
    }
    match level {
        Level::Ok | Level::Warning => Ok(()),
        Level::Problem => Err(Told(FAILED).into()),
    }
}

fn text(store: &str, findings: &[Finding]) -> String {
    let mut text = format!("{store}\n");
    for Finding { level, what, text: found, advice } in findings {
        text.push_str(&format!("  {:<7}  {what:<9}  {found}\n", level.name()));
        if let Some(advice) = advice {
            text.push_str(&format!("  {:<7}  {:<9}  -> {advice}\n", "", ""));
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (problems, warnings) = (count(Level::Problem), count(Level::Warning));
    match (problems, warnings) {
        (0, 0) => text.push_str("all is well\n"),
        _ => text.push_str(&format!("{}, {}\n", counted(problems, "problem"), counted(warnings, "warning"))),
    }
    text
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl Finding {
    fn ok(what: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Ok, what, text: text.into(), advice: None }
    }

    fn warning(what: &'static str, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Level::Warning, what, text: text.into(), advice: Some(advice.into()) }
    }

    fn problem(what: &'static str, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Level::Problem, what, text: text.into(), advice: Some(advice.into()) }
    }
}

impl Counted {
    fn of(count: &redeliver_engine::store::Count) -> Self {
        Self {
            route: count.route.to_string(),
            lane: count.lane.name(),
            state: count.state,
            reason: count.reason,
            count: count.count,
            due: count.due,
            parked: count.parked,
        }
    }
}
