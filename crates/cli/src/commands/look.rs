//! `redeliver show` and `redeliver explain`: one message, what happened to it, and why it is where it is.

use std::fmt::Write;

use redeliver_core::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::list::cut;
use super::times::Times;
use super::{edit, print, show};
use crate::args::{ExplainArgs, ShowArgs};
use crate::reach::{self, Failure, Message, Missing, Reach, Request, find_id, path_of};

/// Characters of an error in a history, at most.
const ERROR_LEN_MAX: usize = 100;

pub(super) fn show_one(args: &ShowArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let id = find_id(&reach, &args.id).await?;
        let how_much = if args.content { "full" } else { "summary" };
        let mut message = reach.json(Request::get(path_of(&id, "")).with(&[("content", how_much)])).await?;
        let mut history = reach.json(Request::get(path_of(&id, "/attempts"))).await?;
        let mut edits = reach.json(Request::get(path_of(&id, "/edits"))).await?;
        if args.output.json {
            message["edits"] = edits["items"].take();
            message["history"] = history["items"].take();
            return print(&format!("{message}\n"));
        }
        let attempts: Vec<Attempt> = Deserialize::deserialize(history["items"].take())?;
        let times = Times::of(args.output.utc);
        print(&text(&Message::deserialize_from(&message)?, &message, &attempts, times)?)?;
        let edits: Vec<Edit> = Deserialize::deserialize(edits["items"].take())?;
        for edit in &edits {
            print(&format!("\ncorrected {} by {}\n", times.show(edit.at), cut(&edit.actor, ERROR_LEN_MAX)))?;
            print(&edit::table(&edit.differences))?;
        }
        if args.content {
            print(&format!("\n{}\n", serde_json::to_string_pretty(&message["content"])?))?;
        }
        Ok(())
    })
}

pub(super) fn explain(args: &ExplainArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let id = find_id(&reach, &args.id).await?;
        let why = reach.json(Request::get(path_of(&id, "/explain"))).await?;
        if args.output.json {
            return print(&format!("{why}\n"));
        }
        print(&explanation(&Deserialize::deserialize(why)?, Times::of(args.output.utc))?)
    })
}

/// A try that did not simply succeed.
#[derive(Deserialize)]
struct Attempt {
    attempt: u32,
    generation: u32,
    outcome: String,
    at: Timestamp,
    error: Option<Failure>,
}

/// What was corrected.
#[derive(Deserialize)]
struct Edit {
    actor: String,
    at: Timestamp,
    differences: Vec<edit::Difference>,
}

#[derive(Deserialize)]
struct Explanation {
    sentence: String,
    earliest_at: Option<Timestamp>,
    gates: Vec<Gate>,
}

#[derive(Deserialize)]
struct Gate {
    gate: String,
    open: bool,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    reason: Option<String>,
}

fn text(message: &Message, seen: &Value, attempts: &[Attempt], times: Times) -> anyhow::Result<String> {
    let at = |time: Option<Timestamp>| time.map(|time| times.show(time));
    let is_waiting = ["scheduled", "due", "retrying"].contains(&message.status.as_str());
    let content = &seen["content"];
    let words = |name: &str| content[name].as_str().map(str::to_owned);
    let to =
        content["to"].as_array().map(|to| to.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "));
    let unsure = Some(message.possible_duplicates).filter(|count| *count > 0);
    let lines = [
        ("id", Some(message.id.clone())),
        ("status", Some(message.status.clone())),
        ("route", Some(format!("{}, priority {}", message.route, message.priority))),
        ("workspace", Some(message.workspace.clone()).filter(|name| name != "default")),
        ("key", message.key.clone()),
        ("to", to),
        ("subject", words("subject")),
        ("target", words("target")),
        ("tries", Some(message.tries())),
        ("accepted", at(message.created_at)),
        (
            "first due",
            at(Some(message.scheduled_for)).filter(|_| Some(message.scheduled_for) != message.created_at),
        ),
        ("next try", at(Some(message.due_at)).filter(|_| is_waiting)),
        ("held by", message.parked_for.clone()),
        ("expires", at(message.expires_at)),
        ("ended", at(message.ended_at)),
        ("dismissed", at(message.dismissed_at)),
        ("receipt", message.receipt.clone()),
        ("given up", message.dead_reason.clone()),
        ("cancelled", message.cancelled_for.clone()),
        ("last error", message.last_error.as_ref().map(Failure::show)),
        ("losses", Some(message.losses).filter(|count| *count > 0).map(|count| count.to_string())),
        ("unsure", unsure.map(|count| format!("it may have arrived {count} more times than anybody knows"))),
    ];
    let mut text = String::new();
    for (name, value) in lines {
        if let Some(value) = value {
            writeln!(text, "{name:<10}  {}", cut(&value, usize::MAX))?;
        }
    }
    if !attempts.is_empty() {
        text.push_str(&format!("\n{}", history(attempts, times)));
    }
    Ok(text)
}

fn history(attempts: &[Attempt], times: Times) -> String {
    let started_over = attempts.iter().any(|attempt| attempt.generation > 0);
    let number = |attempt: &Attempt| match started_over {
        true => format!("{}.{}", attempt.generation, attempt.attempt),
        false => attempt.attempt.to_string(),
    };
    let row = |attempt: &Attempt| {
        let error = attempt.error.as_ref().map(Failure::show).unwrap_or_default();
        vec![number(attempt), attempt.outcome.clone(), times.show(attempt.at), cut(&error, ERROR_LEN_MAX)]
    };
    show::table(&["try", "outcome", "when", "error"], &[0], attempts.iter().map(row).collect())
}

fn explanation(why: &Explanation, times: Times) -> anyhow::Result<String> {
    let mut text = format!("{}\n", cut(&why.sentence, usize::MAX));
    if let Some(at) = why.earliest_at {
        writeln!(text, "earliest    {}", times.show(at))?;
    }
    if !why.gates.is_empty() {
        let at = |time: Option<Timestamp>| time.map_or_else(String::new, |time| times.show(time));
        let row = |gate: &Gate| {
            let reason = gate.reason.as_deref().unwrap_or_default();
            let word = if gate.open { "open" } else { "closed" };
            vec![
                gate.gate.clone(),
                word.to_owned(),
                at(gate.since),
                at(gate.until),
                cut(reason, ERROR_LEN_MAX),
            ]
        };
        let rows = why.gates.iter().map(row).collect();
        text.push_str(&format!("\n{}", show::table(&["gate", "", "since", "until", "reason"], &[], rows)));
    }
    Ok(text)
}
