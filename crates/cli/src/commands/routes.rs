//! `redeliver routes`: the ways that messages travel, and stopping them.

use redeliver_core::Timestamp;
use serde::Deserialize;

use super::times::Times;
use super::{print, show};
use crate::args::{RouteArgs, RoutesCommand};
use crate::reach::{self, Missing, Reach, Request, segment};

#[derive(Deserialize)]
struct Route {
    name: String,
    paused: bool,
    paused_since: Option<Timestamp>,
    paused_reason: Option<String>,
    dead_letter: Option<String>,
    lanes: Vec<Lane>,
}

#[derive(Deserialize)]
struct Lane {
    transport: String,
    target: Option<String>,
    max_attempts: u32,
}

pub(super) fn run(command: &RoutesCommand) -> anyhow::Result<()> {
    match command {
        RoutesCommand::List { output, reach } => reach::run(async {
            let reach = Reach::open(reach, Missing::Refuse).await?;
            let mut listed = reach.json(Request::get("/v1/routes")).await?;
            if output.json {
                let items = listed["items"].as_array();
                return print(
                    &items.into_iter().flatten().map(|item| format!("{item}\n")).collect::<String>(),
                );
            }
            let routes: Vec<Route> = Deserialize::deserialize(listed["items"].take())?;
            print(&table(&routes, Times::of(output.utc)))
        }),
        RoutesCommand::Pause(args) => change(args, "pause", "paused"),
        RoutesCommand::Resume(args) => change(args, "resume", "running"),
    }
}

fn change(args: &RouteArgs, verb: &str, done: &str) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let path = format!("/v1/routes/{}/{verb}", segment(&args.name));
        let route = reach.json(Request::post(path)).await?;
        print(&if args.json { format!("{route}\n") } else { format!("{}  {done}\n", args.name) })
    })
}

fn table(routes: &[Route], times: Times) -> String {
    let row = |route: &Route| {
        let standing = match route.paused {
            true => {
                let since = route.paused_since.map(|at| format!(" {}", times.show(at))).unwrap_or_default();
                format!("{}{since}", route.paused_reason.as_deref().unwrap_or("paused"))
            }
            false => "running".to_owned(),
        };
        let each = |word: fn(&Lane) -> String| {
            let mut words: Vec<String> =
                route.lanes.iter().map(word).filter(|word| !word.is_empty()).collect();
            words.dedup();
            words.join(", ")
        };
        vec![
            route.name.clone(),
            standing,
            each(|lane| lane.transport.clone()),
            each(|lane| lane.target.clone().unwrap_or_default()),
            each(|lane| lane.max_attempts.to_string()),
            route.dead_letter.clone().unwrap_or_default(),
        ]
    };
    let header = ["route", "standing", "transport", "target", "tries", "dead letters to"];
    show::table(&header, &[], routes.iter().map(row).collect())
}
