//! Looks at applications' tables: whether they can be used, and what an application got wrong in them.

use redeliver_core::Timestamp;
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_stores::adopted::Examined;
use redeliver_stores::mapping::Mapping;

use super::Finding;
use crate::config::Config;
use crate::config::problem::counted;
use crate::wire::open_table;

pub(super) async fn findings(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for route in config.routes.values().map(|config| &config.route) {
        let Some((name, table)) = route.table.as_ref().and_then(|name| config.tables.get_key_value(name))
        else {
            continue;
        };
        let mapping = table.mapping(name, route);
        let opened = open_table(config, table, mapping.clone()).await.map_err(|trouble| trouble.to_string());
        let now = WallClock::new(Timestamp::default()).now();
        let examined = match opened {
            Ok(rows) => rows.examine(now).await.map_err(|error| error.to_string()),
            Err(why) => Err(why),
        };
        match examined {
            Ok(examined) => findings.extend(judge(&mapping, &examined)),
            Err(why) => findings.push(Finding::problem(
                "table",
                format!("{name}: {why}"),
                "`redeliver table check` says the same; `redeliver table init` makes one",
            )),
        }
    }
    findings
}

fn judge(mapping: &Mapping, examined: &Examined) -> Vec<Finding> {
    let name = &mapping.name;
    let rows = |count: u64| counted(usize::try_from(count).unwrap_or(usize::MAX), "row");
    let all: u64 = examined.tallies.iter().map(|tally| tally.count).sum();
    let mut findings = vec![Finding::ok("table", format!("{name}: {}, found by their index", rows(all)))];
    let known = mapping.words.all();
    for tally in examined.tallies.iter().filter(|tally| !known.contains(&tally.status.as_str())) {
        findings.push(Finding::warning(
            "table",
            format!(
                "{name}: {} with the word {:?}, which means nothing here",
                rows(tally.count),
                tally.status
            ),
            format!("correct the rows, or tables.{name}.words"),
        ));
    }
    let old = examined.old();
    let [hour, day, week] = old.than;
    if hour > 0 {
        findings.push(Finding::warning(
            "table",
            format!(
                "{name}: {} with their sender for over an hour, {day} of them for over a day, {week} for over a week",
                rows(hour)
            ),
            match mapping.report_within {
                None => format!(
                    "see whether the sender runs; {:?} rows are published again only if report_within is set on route {}",
                    mapping.words.pending, mapping.route
                ),
                Some(_) => "see whether the sender runs; they are published again after report_within".to_owned(),
            },
        ));
    }
    if let (Some(_), Some(column), 1..) =
        (mapping.report_within, &mapping.columns.last_queued_at, old.since_unknown)
    {
        findings.push(Finding::warning(
            "table",
            format!(
                "{name}: {} {:?} without a {column}, which report_within counts from",
                rows(old.since_unknown),
                mapping.words.pending
            ),
            format!(
                "they are never published again; have the application write {column} when it publishes a row"
            ),
        ));
    }
    if examined.timeless > 0 {
        findings.push(Finding::warning(
            "table",
            format!("{name}: {} failed without a time for the next try", rows(examined.timeless)),
            "each is given one by its backoff while `redeliver serve` runs; have the sender write it",
        ));
    }
    if examined.untimely > 0 {
        findings.push(Finding::warning(
            "table",
            format!("{name}: {} failed with a next try at no time of a calendar", rows(examined.untimely)),
            "they wait for ever, or not at all; have the sender write times as the others are",
        ));
    }
    if examined.negative > 0 {
        findings.push(Finding::warning(
            "table",
            format!("{name}: {} with a negative count of tries", rows(examined.negative)),
            "they count as never tried; correct them",
        ));
    }
    if examined.lockless > 0 {
        findings.push(Finding::warning(
            "table",
            format!(
                "{name}: {} claimed without a lock, which nobody will take back",
                rows(examined.lockless)
            ),
            format!("set them to {:?} if nobody is publishing them", mapping.words.failed),
        ));
    }
    findings
}
