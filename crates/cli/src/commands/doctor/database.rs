//! Judges a PostgreSQL database, whatever is in it.

use std::time::Duration;

use redeliver_core::time::show_span;
use redeliver_engine::store::StoreError;
use redeliver_stores::postgres::{Health, Holder, ORPHANS_COUNTED_MAX, OpenError, Orphans, TableHealth};

use super::Finding;
use super::judge::{count, size, unread};
use super::look::Database;
use crate::config::problem::counted;

/// Tables smaller than this are read as a whole for good reason, and their dead rows weigh nothing.
const ROWS_MIN: u64 = 10_000;
/// So many reads by an index for each that reads a whole table, at least.
const INDEX_READS_PER_WHOLE_READ: u64 = 20;
/// How long somebody may look at the past before dead rows pile up behind it.
const HELD_MAX: Duration = Duration::from_secs(60);
/// How far back somebody may look of whom that is all that is known.
const TRANSACTIONS_MAX: u64 = 1_000_000;
/// How far this machine's clock may be from the database's.
const SKEW_MS_MAX: i64 = 1_000;

pub(super) fn unreached(error: &OpenError) -> Finding {
    let advice = match error {
        OpenError::BadAddress { .. } => "correct store.url or store.direct_url",
        OpenError::Unreachable { .. } => "start the database, or correct its address, user or password",
        OpenError::Full { .. } => "make room; nothing that was accepted is lost",
        OpenError::Damaged { .. } => "stop redeliver, then restore a backup",
        OpenError::Unfit { .. } => "set right what it says, or use the redeliver that fits it",
    };
    Finding::problem("store", error.to_string(), advice)
}

pub(super) fn judge(seen: &Database) -> Vec<Finding> {
    let mut findings = match &seen.health {
        Ok(health) => healthy(health),
        Err(error) => vec![unread("store", error)],
    };
    findings.push(whole(&seen.orphans));
    findings
}

fn healthy(health: &Health) -> Vec<Finding> {
    let bytes = health.tables.iter().map(|table| table.bytes).sum();
    let text = format!("PostgreSQL {}, {} with all indexes", health.version, size(bytes));
    let mut findings = vec![Finding::ok("store", text)];
    findings.push(clock(health.ahead_ms));
    findings.push(indexes(health));
    findings.push(dead_rows(&health.tables));
    findings.extend(vacuum(&health.holders));
    findings
}

fn clock(ahead_ms: i64) -> Finding {
    let apart = show_span(Duration::from_millis(ahead_ms.unsigned_abs()));
    if ahead_ms.abs() <= SKEW_MS_MAX {
        return Finding::ok("clock", format!("this machine's differs from the database's by {apart}"));
    }
    let side = if ahead_ms > 0 { "ahead of" } else { "behind" };
    Finding::warning(
        "clock",
        format!("this machine's is {apart} {side} the database's, which is the one that counts"),
        "set this machine's clock right",
    )
}

fn indexes(health: &Health) -> Finding {
    if !health.missing_indexes.is_empty() {
        return Finding::problem(
            "indexes",
            format!("missing or unfinished: {}", health.missing_indexes.join(", ")),
            "make them again as the migration does, or REINDEX them",
        );
    }
    let is_read_whole = |table: &&TableHealth| {
        table.live >= ROWS_MIN && table.whole_reads > table.index_reads / INDEX_READS_PER_WHOLE_READ
    };
    match health.tables.iter().find(is_read_whole) {
        Some(table) => Finding::warning(
            "indexes",
            format!(
                "{} was read as a whole {} and by an index {}",
                table.name,
                times(table.whole_reads),
                times(table.index_reads)
            ),
            format!("ANALYZE redeliver.{}; see who else reads it", table.name),
        ),
        None => Finding::ok("indexes", "all are there, and used"),
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn dead_rows(tables: &[TableHealth]) -> Finding {
    let (live, dead) =
        tables.iter().fold((0, 0), |(live, dead), table| (live + table.live, dead + table.dead));
    let worst = tables.iter().filter(|table| table.dead >= ROWS_MIN && table.dead > table.live);
    match worst.max_by_key(|table| table.dead) {
        Some(table) => Finding::warning(
            "dead rows",
            format!("{} has {} dead rows beside {} live ones", table.name, table.dead, table.live),
            format!("VACUUM redeliver.{}; see that autovacuum runs and nobody holds it back", table.name),
        ),
        None => Finding::ok("dead rows", format!("{dead} beside {live} live ones")),
    }
}

/// Everybody who has held it back for long; if nobody has, whoever looks furthest back.
fn vacuum(holders: &[Holder]) -> Vec<Finding> {
    let is_long = |holder: &&Holder| match holder.since {
        Some(since) => since > HELD_MAX,
        None => holder.transactions > TRANSACTIONS_MAX,
    };
    let advice = "end it: dead rows pile up, and claims get slower";
    let long: Vec<Finding> = holders
        .iter()
        .filter(is_long)
        .map(|holder| Finding::warning("vacuum", held_back(holder), advice))
        .collect();
    match (long.is_empty(), holders.first()) {
        (false, _) => long,
        (true, Some(holder)) => vec![Finding::ok("vacuum", held_back(holder))],
        (true, None) => vec![Finding::ok("vacuum", "nobody holds it back")],
    }
}

fn held_back(Holder { who, since, transactions }: &Holder) -> String {
    let begun = counted(count(*transactions), "transaction") + " begun since";
    match since {
        Some(since) => format!("{who} holds it back for {}, {begun}", show_span(*since)),
        None => format!("{who} holds it back, {begun}"),
    }
}

fn whole(orphans: &Result<Orphans, StoreError>) -> Finding {
    let orphans = match orphans {
        Ok(orphans) => orphans,
        Err(error) => return unread("integrity", error),
    };
    let many = |number: u64, noun: &str| match number {
        ORPHANS_COUNTED_MAX.. => format!("{ORPHANS_COUNTED_MAX} or more {noun}s"),
        _ => counted(count(number), noun),
    };
    if orphans.messages + orphans.keys > 0 {
        let text = format!(
            "{} without content, {} of messages that are gone",
            many(orphans.messages, "message"),
            many(orphans.keys, "key"),
        );
        return Finding::problem("integrity", text, "somebody else has written to it: compare with a backup");
    }
    match orphans.contents {
        0 => Finding::ok("integrity", "every message has its content, and every key its message"),
        _ => Finding::warning(
            "integrity",
            format!("{} of messages that are gone", many(orphans.contents, "content")),
            "somebody else has deleted messages; they are harmless, and take room",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::Level;

    fn warned(findings: &[Finding]) -> Vec<&str> {
        findings
            .iter()
            .filter(|finding| finding.level == Level::Warning)
            .map(|finding| &*finding.text)
            .collect()
    }

    fn table(live: u64, dead: u64) -> TableHealth {
        TableHealth { name: "redeliver_messages".to_owned(), live, dead, ..TableHealth::default() }
    }

    #[test]
    fn a_clock_that_is_a_second_off_is_worth_a_word() {
        assert!(warned(&[clock(1_000), clock(-1_000)]).is_empty());
        let ahead = "this machine's is 1s500ms ahead of the database's, which is the one that counts";
        assert_eq!(warned(&[clock(1_500), clock(-1_500)]), [ahead, &ahead.replace("ahead of", "behind")]);
    }

    #[test]
    fn dead_rows_count_once_they_are_many_and_more_than_the_live_ones() {
        for (live, dead) in [(0, 9_999), (10_000, 10_000), (1_000_000, 900_000)] {
            assert!(warned(&[dead_rows(&[table(live, dead)])]).is_empty(), "{live} {dead}");
        }
        let found = dead_rows(&[table(1, 2), table(10_000, 10_001)]);
        assert_eq!(warned(&[found]), ["redeliver_messages has 10001 dead rows beside 10000 live ones"]);
    }

    #[test]
    fn everybody_who_has_held_back_vacuum_for_long_is_named() {
        let holder = |who: &str, since_s: Option<u64>, transactions| Holder {
            who: who.to_owned(),
            since: since_s.map(Duration::from_secs),
            transactions,
        };
        let short = [holder("slot", None, 1_000_000), holder("report", Some(60), 10)];
        let found = vacuum(&short);
        assert!(warned(&found).is_empty());
        assert_eq!(found[0].text, "slot holds it back, 1000000 transactions begun since");
        let long =
            [holder("slot", None, 1_000_001), holder("copy", Some(5), 20), holder("report", Some(61), 10)];
        let found = vacuum(&long);
        assert_eq!(
            warned(&found),
            [
                "slot holds it back, 1000001 transactions begun since",
                "report holds it back for 1m1s, 10 transactions begun since",
            ]
        );
    }
}
