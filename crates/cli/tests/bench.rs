//! `redeliver bench` on a few messages: what it says, not how fast it is.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use process::Place;
use redeliver_servers::postgres::PostgresServer;
use serde_json::Value;

const JOBS: [&str; 9] = [
    "accept_batch",
    "accept_single",
    "accept_http",
    "drain",
    "backlog",
    "retry_cycle",
    "lateness",
    "lanes_idle",
    "lanes",
];
const FIELDS: [&str; 10] =
    ["job", "n", "rate", "ceiling", "ratio", "p50_ms", "p99_ms", "max_ms", "rss_mib", "wal_bytes"];

#[test]
fn each_job_says_one_line_of_json_beside_the_bare_store() {
    let place = Place::new("");
    let said = place.run("bench --store sqlite:bench.db --messages 4000 --backlog 3000 --json");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let rows: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.iter().map(|row| row["job"].as_str().unwrap()).collect::<Vec<_>>(), JOBS);
    for row in &rows {
        assert!(FIELDS.iter().all(|field| row.get(field).is_some()), "{row}");
        assert!(row["rss_mib"].as_f64().unwrap() > 0.0, "{row}");
    }
    for job in ["accept_batch", "accept_single", "accept_http", "drain", "backlog"] {
        let row = rows.iter().find(|row| row["job"] == job).unwrap();
        let (rate, ceiling) = (row["rate"].as_f64().unwrap(), row["ceiling"].as_f64().unwrap());
        assert!((row["ratio"].as_f64().unwrap() - rate / ceiling).abs() < 0.01, "{row}");
    }
    let lateness = rows.iter().find(|row| row["job"] == "lateness").unwrap();
    assert!(lateness["p50_ms"].as_f64().unwrap() >= 0.0, "nothing goes out before it is due: {lateness}");
    assert!(
        !place.path("bench.db").exists() && !place.path("bench.bare").exists(),
        "it leaves nothing behind"
    );
}

#[test]
fn people_get_a_table_and_only_the_jobs_they_ask_for() {
    let said = Place::new("").run("bench --store memory: --messages 2000 --only drain,retry_cycle");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("drain") && said.out.contains("retry_cycle"), "{}", said.out);
    assert!(!said.out.contains("lateness"), "{}", said.out);
}

#[test]
fn a_file_that_is_there_is_left_alone() {
    let place = Place::new("");
    std::fs::write(place.path("mine.db"), "precious").unwrap();
    let said = place.run("bench --store sqlite:mine.db");
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("mine.db is there already"), "{}", said.err);
    assert_eq!(std::fs::read_to_string(place.path("mine.db")).unwrap(), "precious");
}

#[test]
fn a_database_is_measured_beside_bare_statements_and_left_as_it_was() {
    let database = PostgresServer::shared().database();
    let jobs = "accept_batch,accept_single,drain,backlog,instances,lists,pages";
    let asked =
        format!("bench --store {} --messages 2000 --backlog 2000 --json --only {jobs}", database.url());
    let said = Place::new("").run(&asked);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let rows: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for job in ["accept_batch", "accept_single", "drain", "backlog", "instances"] {
        let row = rows.iter().find(|row| row["job"] == job).unwrap();
        assert!(row["rate"].as_f64().unwrap() > 0.0 && row["ratio"].as_f64().unwrap() > 0.0, "{row}");
    }
    for job in ["accept_batch", "drain"] {
        let row = rows.iter().find(|row| row["job"] == job).unwrap();
        assert!(row["wal_bytes"].as_f64().unwrap() > 100.0, "{row}");
    }
    for status in ["all", "due", "scheduled", "retrying", "sending", "delivered", "dead", "held", "by key"] {
        let is_of = |row: &&Value| row["job"].as_str().unwrap().starts_with(&format!("list {status}"));
        assert!(rows.iter().filter(is_of).count() >= 2, "{status}: {}", said.out);
    }
    assert!(rows.iter().any(|row| row["job"] == "stats among future"), "{}", said.out);
    for page in ["/admin", "/admin/messages/{id}", "/admin/dead-letters"] {
        assert!(rows.iter().any(|row| row["job"] == format!("page {page}")), "{page}: {}", said.out);
    }
    assert_eq!(database.say("SELECT to_regnamespace('redeliver') IS NULL"), "t", "it leaves nothing behind");
}

#[test]
fn a_database_with_a_store_is_left_alone() {
    let database = PostgresServer::shared().database();
    database.say("CREATE SCHEMA redeliver");
    let said = Place::new("").run(&format!("bench --store {}", database.url()));
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("has a store already"), "{}", said.err);
    assert_eq!(database.say("SELECT to_regnamespace('redeliver') IS NULL"), "f");
}
