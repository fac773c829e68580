//! `redeliver destinations` and `redeliver senders`: what is stopped, and why. Stops them, as routes, and lets them go again.

use redeliver_core::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::times::Times;
use super::{print, show};
use crate::args::{DestinationsCommand, OutputArgs, ReachArgs, SendersCommand, StopArgs};
use crate::reach::{self, Missing, Reach, Request, segment};

/// What stands before a destination or a sender.
#[derive(Deserialize)]
struct Gate {
    standing: String,
    since: Timestamp,
    reason: String,
    again_at: Option<Timestamp>,
}

pub(super) fn destinations(command: &DestinationsCommand) -> anyhow::Result<()> {
    match command {
        DestinationsCommand::List { output, reach } => list("destination", *output, reach),
        DestinationsCommand::Pause(args) => pause("destinations", args),
        DestinationsCommand::Resume(args) => resume("destinations", args),
    }
}

pub(super) fn senders(command: &SendersCommand) -> anyhow::Result<()> {
    match command {
        SendersCommand::List { output, reach } => list("sender", *output, reach),
        SendersCommand::Pause(args) => pause("senders", args),
        SendersCommand::Resume(args) => resume("senders", args),
    }
}

/// Stops one of these.
pub(super) fn pause(kind: &str, args: &StopArgs) -> anyhow::Result<()> {
    tell(kind, args, "pause", "paused")
}

/// Lets one of these go.
pub(super) fn resume(kind: &str, args: &StopArgs) -> anyhow::Result<()> {
    tell(kind, args, "resume", "running")
}

fn tell(kind: &str, args: &StopArgs, verb: &str, done: &str) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let path = format!("/v1/{kind}/{}/{verb}", segment(&args.name));
        let stands = reach.json(Request::post(path)).await?;
        print(&if args.json { format!("{stands}\n") } else { format!("{}  {done}\n", args.name) })
    })
}

/// Lists whatever something stands before: destinations, or senders.
fn list(what: &str, output: OutputArgs, reach: &ReachArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(reach, Missing::Refuse).await?;
        let listed = reach.json(Request::get(format!("/v1/{what}s"))).await?;
        let items = listed["items"].as_array().into_iter().flatten();
        if output.json {
            return print(&items.map(|item| format!("{item}\n")).collect::<String>());
        }
        print(&table(what, items, Times::of(output.utc))?)
    })
}

fn table<'a>(what: &str, items: impl Iterator<Item = &'a Value>, times: Times) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    for item in items {
        let gates: Vec<Gate> = Deserialize::deserialize(&item["gates"])?;
        rows.extend(gates.into_iter().map(|gate| {
            vec![
                item[what].as_str().unwrap_or("?").to_owned(),
                gate.standing.replace('_', " "),
                times.show(gate.since),
                gate.again_at.map_or_else(|| "when a person resumes it".to_owned(), |at| times.show(at)),
                gate.reason,
            ]
        }));
    }
    Ok(show::table(&[what, "standing", "since", "tried again", "reason"], &[], rows))
}
