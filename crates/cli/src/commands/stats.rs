//! `redeliver stats`: how many messages stand where, and what was done in the last minutes.

use std::collections::BTreeMap;
use std::time::Duration;

use redeliver_core::Timestamp;
use redeliver_core::time::show_span;
use serde::Deserialize;

use super::times::Times;
use super::{print, show};
use crate::args::CountArgs;
use crate::exit::print_aside;
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

/// What happened in one minute.
#[derive(Deserialize)]
struct Minute {
    at: Timestamp,
    delivered: u32,
    handed_off: u32,
    retried: u32,
    dead: u32,
    lateness_p50_ms: Option<u64>,
    lateness_p99_ms: Option<u64>,
}

impl Minute {
    fn counts(&self) -> [u32; 4] {
        [self.delivered, self.handed_off, self.retried, self.dead]
    }
}

pub(super) fn run(args: &CountArgs) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        if args.minutes {
            return minutes(&reach, args).await;
        }
        let request = Request::get("/v1/stats");
        if args.output.json {
            return print(&format!("{}\n", reach.json(request).await?));
        }
        print(&table(&reach.get::<Stats>(request).await?))
    })
}

/// The minutes in which something happened.
async fn minutes(reach: &Reach, args: &CountArgs) -> anyhow::Result<()> {
    let mut told = reach.json(Request::get("/v1/stats/minutes")).await?;
    if args.output.json {
        let items = told["items"].as_array();
        return print(&items.into_iter().flatten().map(|item| format!("{item}\n")).collect::<String>());
    }
    let mut minutes: Vec<Minute> = Deserialize::deserialize(told["items"].take())?;
    minutes.retain(|minute| minute.counts().iter().any(|count| *count > 0));
    if minutes.is_empty() {
        print_aside("nothing went out and nothing failed there in the last three hours");
        return Ok(());
    }
    let times = Times::of(args.output.utc);
    let span = |ms: Option<u64>| ms.map(|ms| show_span(Duration::from_millis(ms))).unwrap_or_default();
    let row = |minute: &Minute| {
        let mut row = vec![times.show(minute.at)];
        row.extend(minute.counts().map(|count| count.to_string()));
        row.extend([span(minute.lateness_p50_ms), span(minute.lateness_p99_ms)]);
        row
    };
    let header =
        ["minute", "delivered", "handed off", "tried again", "given up", "half late by", "99 of 100 by"];
    print(&show::table(&header, &[1, 2, 3, 4, 5, 6], minutes.iter().map(row).collect()))
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
