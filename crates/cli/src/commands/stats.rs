//! `redeliver stats`: how many messages stand where.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{print, show};
use crate::args::StatsArgs;
use crate::reach::{self, Missing, Reach, Request};

#[derive(Deserialize)]
struct Stats {
    total: Standing,
    routes: BTreeMap<String, Standing>,
}

#[derive(Deserialize)]
struct Standing {
    waiting: u64,
    due: u64,
    held: u64,
    sending: u64,
    handed_off: u64,
    delivered: u64,
    dead: u64,
    cancelled: u64,
    dead_by_reason: BTreeMap<String, u64>,
}

pub(super) fn run(args: &StatsArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let request = Request::get("/v1/stats");
        if args.json {
            return print(&format!("{}\n", reach.json(request).await?));
        }
        print(&table(&reach.get::<Stats>(request).await?))
    })
}

fn table(stats: &Stats) -> String {
    let all = ("all".to_owned(), &stats.total);
    let routes = stats.routes.iter().map(|(name, standing)| (name.clone(), standing));
    let row = |(name, standing): (String, &Standing)| {
        let reasons = standing.dead_by_reason.iter().map(|(reason, count)| format!("{reason} {count}"));
        let counts = [
            standing.waiting,
            standing.due,
            standing.held,
            standing.sending,
            standing.handed_off,
            standing.delivered,
            standing.cancelled,
            standing.dead,
        ];
        let mut row = vec![name];
        row.extend(counts.map(|count| count.to_string()));
        row.push(reasons.collect::<Vec<_>>().join(", "));
        row
    };
    let header = [
        "route",
        "waiting",
        "(due)",
        "(held)",
        "sending",
        "handed off",
        "delivered",
        "cancelled",
        "dead",
        "of what",
    ];
    show::table(&header, &[1, 2, 3, 4, 5, 6, 7, 8], routes.chain([all]).map(row).collect())
}
