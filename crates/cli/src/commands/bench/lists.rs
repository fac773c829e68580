//! How long a page of a list and the stats take, with millions of messages of which most are something else.

use std::time::Instant;

use redeliver_core::status::Status;
use redeliver_core::{Lane, MessageId};
use redeliver_engine::store::{Filter, StatusAt};

use super::report::{Report, Row};
use super::rig::{Opened, Place};

/// Messages on a page.
const PAGE: usize = 50;
/// Pages that are asked for with each filter: fewer where there are few messages.
const PAGES_MIN: usize = 3;
const PAGES_MAX: usize = 100;

/// Every list with every filter, and the stats, first among many that wait for their time and then among many that have
/// been delivered.
pub(super) async fn lists(n: usize, place: &Place, report: &mut Report) -> anyhow::Result<()> {
    let count = (n / 1_000).clamp(PAGES_MIN, PAGES_MAX);
    for (most_are_delivered, among) in [(false, "future"), (true, "delivered")] {
        let opened = place.fresh().await?;
        let Some(database) = place.database().await? else { return Ok(()) };
        let bar = report.bar("lists: filling", n);
        database.fill(n, opened.clock.now(), most_are_delivered).await?;
        database.vacuum().await?;
        bar.finish_and_clear();
        for (list, filters) in lists_with_filters(&opened) {
            let mut slowest: Option<(Row, String)> = None;
            for (name, filter) in filters {
                let row = Row::times("", &pages(&opened, filter, count).await?);
                if slowest.as_ref().is_none_or(|(slowest, _)| slowest.p99_ms < row.p99_ms) {
                    slowest = Some((row, name));
                }
            }
            if let Some((row, name)) = slowest {
                report.add(Row { job: format!("list {list}{name} among {among}"), n, ..row })?;
            }
        }
        report
            .add(Row { n, ..Row::times(&format!("stats among {among}"), &stats(&opened, count).await?) })?;
    }
    Ok(())
}

type Named = (String, Filter);

/// Each list that there is, with the filters that it is asked with.
fn lists_with_filters(opened: &Opened) -> Vec<(&'static str, Vec<Named>)> {
    let now = opened.clock.now();
    let all = || Filter { limit: PAGE, ..Filter::default() };
    let mut lists = vec![("all", by_names(&all()))];
    for status in Status::ALL {
        let filter = Filter { status: Some(StatusAt { status, now }), ..all() };
        lists.push((status.name(), by_names(&filter)));
        if status == Status::Dead {
            lists.push(("dead, dismissed too", by_names(&Filter { with_dismissed: true, ..filter })));
        }
    }
    let keys = ["key-1000", "key-nobody-has"].map(|key| {
        let filter = Filter { key: Some(key.into()), ..all() };
        (format!(" {key}"), filter)
    });
    lists.push(("by key", keys.into()));
    lists
}

/// A filter by itself, and with a name that most messages have, a few, or none.
fn by_names(filter: &Filter) -> Vec<Named> {
    let mut named = vec![(String::new(), filter.clone())];
    for name in ["default", "rare", "nobody"] {
        let filter = Filter { workspace: Some(name.into()), ..filter.clone() };
        named.push((format!(" of workspace {name}"), filter));
    }
    for name in ["bench", "rare", "nothing"] {
        let filter = Filter { route: Some(name.into()), ..filter.clone() };
        named.push((format!(" of route {name}"), filter));
    }
    for lane in [Lane::Medium, Lane::Critical, Lane::Low] {
        let filter = Filter { lane: Some(lane), ..filter.clone() };
        named.push((format!(" of lane {}", lane.name()), filter));
    }
    named
}

/// How long pages took, one after the other and from the first again, sorted, in milliseconds.
async fn pages(opened: &Opened, filter: Filter, count: usize) -> anyhow::Result<Vec<f64>> {
    let mut times_ms = Vec::with_capacity(count);
    let mut after: Option<MessageId> = None;
    // The first one meets what is not in memory yet.
    opened.store.list(filter.clone()).await?;
    for _ in 0..count {
        let filter = Filter { after, ..filter.clone() };
        let asked = Instant::now();
        let page = opened.store.list(filter).await?;
        times_ms.push(asked.elapsed().as_secs_f64() * 1_000.0);
        after = page.get(PAGE - 1).map(|last| last.id.clone());
    }
    times_ms.sort_by(f64::total_cmp);
    Ok(times_ms)
}

async fn stats(opened: &Opened, count: usize) -> anyhow::Result<Vec<f64>> {
    let mut times_ms = Vec::with_capacity(count);
    for _ in 0..count {
        let asked = Instant::now();
        opened.store.counts(opened.clock.now()).await?;
        times_ms.push(asked.elapsed().as_secs_f64() * 1_000.0);
    }
    times_ms.sort_by(f64::total_cmp);
    Ok(times_ms)
}
