//! `redeliver retry`, `cancel`, `dismiss` and `restore`: what a person does to messages, one after another; and
//! `redeliver report`: what became of one that was handed off.

use std::io::BufRead;

use anyhow::Context;
use serde_json::{Value, json};

use super::print;
use crate::args::{ActArgs, ReportArgs};
use crate::exit::{FAILED, Told, print_aside};
use crate::reach::{self, Missing, Problem, Reach, Request, find_id, id_of, path_of};

/// The ids are read from standard input.
const STDIN: &str = "-";

/// Does it to each; one that can't be done stops none of the others.
pub(super) fn run(verb: &str, args: &ActArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let mut failed = false;
        for id in ids(&args.ids)? {
            match act(&reach, verb, &id).await {
                Ok(after) if args.json => print(&format!("{after}\n"))?,
                Ok(after) => print(&line(verb, &after))?,
                // Nobody answers: nobody would answer for the next one.
                Err(error) if !is_about_one(&error) => return Err(error),
                Err(error) => {
                    failed = true;
                    if args.json {
                        print(&format!("{}\n", json!({ "id": id, "problem": error.to_string() })))?;
                    }
                    print_aside(format_args!("redeliver: cannot {verb} {id}: {error}"));
                }
            }
        }
        if failed { Err(Told(FAILED).into()) } else { Ok(()) }
    })
}

/// Says what became of a message that was handed off.
pub(super) fn report(args: &ReportArgs) -> anyhow::Result<()> {
    let mut said = json!({ "outcome": args.outcome });
    let words = [
        ("attempt_id", &args.attempt_id),
        ("error", &args.error),
        ("error_code", &args.error_code),
        ("retry_after", &args.retry_after),
    ];
    for (name, word) in words {
        if let Some(word) = word {
            said[name] = word.as_str().into();
        }
    }
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let id = find_id(&reach, &args.id).await?;
        let told = reach.json(Request::post(path_of(&id, "/report")).json(&said)).await?;
        if args.json {
            return print(&format!("{told}\n"));
        }
        let status = told["message"]["status"].as_str().unwrap_or("?");
        let note = match told["applied"].as_bool() {
            Some(true) => "",
            _ => "  (nobody waits for this report: it is in the history, and changes nothing)",
        };
        print(&format!("{id}  {status}{note}\n"))
    })
}

async fn act(reach: &Reach, verb: &str, id: &str) -> anyhow::Result<Value> {
    let id = find_id(reach, id).await?;
    reach.json(Request::post(path_of(&id, &format!("/{verb}")))).await
}

fn line(verb: &str, after: &Value) -> String {
    let status = after["status"].as_str().unwrap_or("?");
    let (status, note) = match (verb, status) {
        ("cancel", "sending") => (status, " (it was claimed already and may go out)"),
        ("dismiss", _) => ("dismissed", ""),
        _ => (status, ""),
    };
    format!("{}  {status}{note}\n", id_of(after))
}

/// Whether an error is about one message only.
fn is_about_one(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<Problem>() {
        Some(problem) => matches!(problem.status, 400 | 404 | 409 | 422),
        // An id that is no id, or no single one, is found before anybody is asked.
        None => error.downcast_ref::<reach::NoSuchId>().is_some(),
    }
}

fn ids(said: &[String]) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    for id in said {
        if id != STDIN {
            ids.push(id.clone());
            continue;
        }
        for line in std::io::stdin().lock().lines() {
            let line = line.context("cannot read ids from standard input")?;
            ids.extend(line.split_whitespace().next().map(str::to_owned));
        }
    }
    Ok(ids)
}
