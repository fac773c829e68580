//! `redeliver routes`: the ways that messages travel, and stopping them.

use redeliver_core::Timestamp;
use serde::Deserialize;

use super::times::Times;
use super::{print, show, stop};
use crate::args::RoutesCommand;
use crate::reach::{self, Missing, Reach, Request};

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
        RoutesCommand::Pause(args) => stop::pause("routes", args),
        RoutesCommand::Resume(args) => stop::resume("routes", args),
    }
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
