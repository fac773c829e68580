//! How long it takes to find and lease what is due in an application's table of millions of rows, in a PostgreSQL of
//! its own, and by which plan: it fails if that reads all of the table.
//!
//! `make bench-table`, or `cargo run --release -p redeliver-stores --example due_of_table -- [ROWS]`
#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::time::{Duration, Instant};

use redeliver_core::Timestamp;
use redeliver_servers::postgres::PostgresServer;
use redeliver_stores::adopted::{Due, Rows, Which};
use redeliver_stores::mapping::{Mapping, TableName};
use redeliver_stores::postgres::OpenOptions;
use redeliver_stores::postgres::table::{Clock, PostgresTable};

/// One row in so many is failed; half of those are due.
const FAILED_ONE_IN: usize = 50;

/// How often so many are claimed.
const ROUNDS_MAX: usize = 20;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows: usize = std::env::args().nth(1).map_or(Ok(5_000_000), |text| text.parse())?;
    let server = PostgresServer::start();
    let database = server.database();
    let mapping = Mapping::new("email-log", "email-log", TableName::parse("EmailLog")?);
    let options = OpenOptions { statement_timeout: Duration::from_secs(600), ..OpenOptions::default() };
    let options = OpenOptions { call_timeout: Duration::from_secs(600), ..options };
    PostgresTable::init(&database.url(), &options, &mapping).await?;
    let filled = Instant::now();
    database.say(&format!(
        "INSERT INTO \"EmailLog\" (\"MessageKey\", \"Status\", \"AttemptCount\", \"NextAttemptAt\", \"LastError\") \
         SELECT 'key-' || n, CASE WHEN n % {FAILED_ONE_IN} = 0 THEN 'Failed' ELSE 'Sent' END, 1 + n % 7, \
         now() + (CASE WHEN n % {} = 0 THEN 1 ELSE -1 END) * (60 + n % 86400) * interval '1 s', '451 try later' \
         FROM generate_series(1, {rows}) AS n",
        2 * FAILED_ONE_IN
    ));
    database.say("VACUUM ANALYZE \"EmailLog\"");
    println!("{rows} rows, filled in {:.0?}", filled.elapsed());
    let table = PostgresTable::open(&database.url(), options, mapping, Clock::Database).await?;
    for limit in [1, 100, 1_000] {
        let due = Due {
            by: Timestamp::MAX,
            now: Timestamp::default(),
            lease: Duration::from_secs(120),
            attempts_max: 8,
            limit,
        };
        let plan = table.plan_of_claim(due).await?;
        println!("the plan of claim {limit}:\n{plan}");
        if plan.contains("Seq Scan on \"EmailLog\"") {
            return Err(format!("claim {limit} reads all of the table").into());
        }
        // Half of what is due is left for those who claim more at once.
        let rounds = (rows / (2 * FAILED_ONE_IN) / 2 / limit).clamp(1, ROUNDS_MAX);
        let mut spent = Vec::new();
        for _ in 0..rounds {
            let begun = Instant::now();
            let claimed = table.claim(due).await?.len();
            spent.push(begun.elapsed());
            assert_eq!(claimed, limit, "there is enough due");
        }
        say(&format!("claim {limit}"), &mut spent);
    }
    for (name, which) in [("used up", Which::Spent(8)), ("without a time", Which::Timeless)] {
        let mut spent = Vec::new();
        for _ in 0..5 {
            let begun = Instant::now();
            table.find(which.clone(), 500).await?;
            spent.push(begun.elapsed());
        }
        say(name, &mut spent);
    }
    let begun = Instant::now();
    table.tally(Timestamp::MAX).await?;
    println!("count all rows by their words: {:.1?}", begun.elapsed());
    Ok(())
}

fn say(what: &str, spent: &mut [Duration]) {
    spent.sort();
    println!("{what}: median {:.1?}, longest {:.1?}", spent[spent.len() / 2], spent[spent.len() - 1]);
}
