//! `redeliver show` and `redeliver explain`: one message, what happened to it, and why it is where it is.

use std::fmt::Write;

use redeliver_core::Timestamp;
use redeliver_core::time::show_span;
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
    due_at: Option<Timestamp>,
    claimed_at: Option<Timestamp>,
    sent_at: Option<Timestamp>,
    error: Option<Failure>,
}

impl Attempt {
    fn course(&self) -> [Option<Timestamp>; 3] {
        [self.due_at, self.claimed_at, self.sent_at]
    }
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
    // Tries of long ago have none of these times.
    let has_course = attempts.iter().any(|attempt| attempt.course() != [None; 3]);
    let row = |attempt: &Attempt| {
        let error = attempt.error.as_ref().map(Failure::show).unwrap_or_default();
        let mut row = vec![number(attempt), attempt.outcome.clone()];
        row.extend(has_course.then(|| course(attempt, times)).into_iter().flatten());
        row.extend([times.show(attempt.at), cut(&error, ERROR_LEN_MAX)]);
        row
    };
    let mut header = vec!["try", "outcome"];
    header.extend(has_course.then_some(["due", "claimed", "sent"]).into_iter().flatten());
    header.extend(["when", "error"]);
    show::table(&header, &[0], attempts.iter().map(row).collect())
}

/// When a try was due, and how long after that it was claimed, and sent.
fn course(attempt: &Attempt, times: Times) -> [String; 3] {
    let mut before = None;
    attempt.course().map(|at| {
        let Some(at) = at else { return String::new() };
        match (before.replace(at), times) {
            (Some(before), Times::From(_)) if before <= at => format!("+{}", show_span(at.since(before))),
            _ => times.show(at),
        }
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    const DUE_MS: i64 = 1_796_115_600_000;

    fn told(times: Times, tries: Value) -> Vec<Vec<String>> {
        let tries: Vec<Attempt> = Deserialize::deserialize(tries).unwrap();
        let lines = history(&tries, times);
        let words = |line: &str| {
            line.split("  ").map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
        };
        lines.lines().map(words).collect()
    }

    #[test]
    fn a_try_is_shown_with_when_it_was_due_and_how_long_after_that_it_was_claimed_and_sent() {
        let tries = || {
            serde_json::json!([{
                "attempt": 1, "generation": 0, "outcome": "failed", "error": { "text": "later" },
                "due_at": "2026-12-01T09:00:00.000Z", "claimed_at": "2026-12-01T09:00:00.040Z",
                "sent_at": "2026-12-01T09:00:00.043Z", "at": "2026-12-01T09:00:01.200Z",
            }])
        };
        let near = told(Times::From(Timestamp::from_ms(DUE_MS + 60_000)), tries());
        assert_eq!(near[0], ["try", "outcome", "due", "claimed", "sent", "when", "error"]);
        assert_eq!(near[1], ["1", "failed", "1m ago", "+40ms", "+3ms", "58s ago", "later"]);
        let exact = told(Times::Exact, tries());
        assert_eq!(
            exact[1][3..6],
            ["2026-12-01T09:00:00.040Z", "2026-12-01T09:00:00.043Z", "2026-12-01T09:00:01.200Z"]
        );
    }

    #[test]
    fn a_try_of_which_only_the_end_is_known_is_shown_by_that() {
        let tries = serde_json::json!([{ "attempt": 2, "generation": 1, "outcome": "lost", "at": "2026-12-01T09:00:00Z" }]);
        let lines = told(Times::From(Timestamp::from_ms(DUE_MS)), tries);
        assert_eq!(lines, [vec!["try", "outcome", "when", "error"], vec!["1.2", "lost", "now"]]);
    }
}
