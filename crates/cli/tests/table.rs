//! An application's own table beside the store: made, checked, looked after, and its rows carried by the real binary.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use process::{Place, until};
use redeliver_servers::postgres::PostgresServer;
use rusqlite::Connection;

/// A table in the file of the store, whose rows go to a script that takes everything.
const CONFIG: &str = r#"
[tables.email-log]
times = "ms"

[transports.script]
kind = "scripted"

[policies.email-log]
backoff = ["1m", "5m"]
max_attempts = 3

[routes.email-log]
table = "email-log"
transport = "script"
policy = "email-log"
dead_letter = "email-dead"

[routes.email-dead]
transport = "script"
policy = "email-log"
"#;

fn app(place: &Place) -> Connection {
    let db = Connection::open(place.path("store.db")).unwrap();
    db.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
    db
}

fn statuses(db: &Connection) -> Vec<String> {
    let mut look =
        db.prepare("SELECT \"EmailId\" || ' ' || \"Status\" FROM \"EmailLog\" ORDER BY 1").unwrap();
    look.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Rows of every kind: due, not yet due, used up, without a time, with its sender, and sent.
fn fill(db: &Connection) {
    let now = process::now().as_ms();
    db.execute_batch(&format!(
        "INSERT INTO \"EmailLog\" (\"EmailId\", \"MessageKey\", \"Status\", \"AttemptCount\", \"NextAttemptAt\", \
         \"LastError\") VALUES \
         (1, 'k1', 'Failed', 1, {now} - 1000, '451'), \
         (2, 'k2', 'Failed', 1, {now} + 3600000, '451'), \
         (3, 'k3', 'Failed', 3, {now} + 3600000, '550 nobody'), \
         (4, 'k4', 'Failed', 2, NULL, '451'), \
         (5, 'k5', 'Pending', 0, NULL, NULL), \
         (6, 'k6', 'Sent', 1, NULL, NULL)"
    ))
    .unwrap();
}

#[test]
fn a_table_is_printed_made_and_checked() {
    let place = Place::new(CONFIG);
    let printed = place.run("table init").out;
    assert!(printed.contains("CREATE TABLE IF NOT EXISTS \"EmailLog\""), "{printed}");
    assert!(printed.contains("(\"Status\", \"NextAttemptAt\")"), "{printed}");
    assert!(!place.path("store.db").exists(), "printing makes nothing");
    let said = place.run("check");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("table email-log was not looked at"), "{}", said.err);
    assert_eq!(place.run("table init --apply").code, Some(0));
    assert_eq!(place.run("table init --apply").code, Some(0), "twice is as good");
    let said = place.run("table check");
    assert_eq!((said.out.as_str(), said.code), ("ok: 1 table\n", Some(0)), "{}", said.err);
    let db = app(&place);
    db.execute_batch("DROP INDEX \"EmailLog_Status_NextAttemptAt\"").unwrap();
    for command in ["check", "table check", "table check email-log"] {
        let said = place.run(command);
        assert_eq!(said.code, Some(1), "{command}");
        assert!(said.err.contains("make one: CREATE INDEX"), "{command}: {}", said.err);
    }
    let said = place.run("table check email-lag");
    assert!(said.code == Some(2) && said.err.contains("did you mean"), "{}", said.err);
}

#[test]
fn a_table_that_cannot_be_looked_at_is_not_called_good() {
    let place = Place::new(CONFIG);
    let said = place.run("table check");
    assert_eq!((said.out.as_str(), said.code), ("", Some(1)));
    assert!(said.err.contains("table email-log was not looked at"), "{}", said.err);
}

#[test]
fn a_table_that_no_route_carries_is_made_and_checked_all_the_same() {
    let place = Place::new(&format!("{CONFIG}\n[tables.forgotten]\ntable = \"Forgotten\"\ntimes = \"ms\"\n"));
    assert!(place.run("table init").out.contains("CREATE TABLE IF NOT EXISTS \"Forgotten\""));
    assert_eq!(place.run("table init --apply").code, Some(0));
    assert_eq!(place.run("table check").out, "ok: 2 tables\n");
}

#[test]
fn rows_are_published_and_used_up_ones_die_with_a_letter() {
    let place = Place::new(CONFIG);
    place.run("table init --apply");
    let db = app(&place);
    fill(&db);
    let process = place.serve();
    until("the first tick is done", || {
        statuses(&db)[..4] == ["1 Pending", "2 Failed", "3 Dead", "4 Failed"]
            && db.query_row("SELECT \"NextAttemptAt\" FROM \"EmailLog\" WHERE \"EmailId\" = 4", [], |row| {
                row.get::<_, Option<i64>>(0)
            }) != Ok(None)
    });
    assert_eq!(statuses(&db)[4..], ["5 Pending", "6 Sent"]);
    let dead: (String, String) = db
        .query_row(
            "SELECT \"DeadReason\", \"LastError\" FROM \"EmailLog\" WHERE \"EmailId\" = 3",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(dead, ("MaxAttemptsExceeded".to_owned(), "550 nobody".to_owned()));
    until("the letter is delivered", || place.count("delivered") == 1);
    // Every scheduling is logged with its row, its tries and its time.
    process.logs("row published, its sender has it");
    for id in ["email-log:1", "email-log:3", "email-log:4"] {
        let log = process.log();
        let line = log.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("{id} in {log}"));
        assert!(line.contains("attempts") && line.contains("due_at"), "{line}");
    }
}

#[test]
fn people_see_and_operate_on_rows_like_on_messages() {
    let place = Place::new(CONFIG);
    place.run("table init --apply");
    assert_eq!(place.run("migrate").code, Some(0));
    let db = app(&place);
    fill(&db);
    db.execute_batch(
        "UPDATE \"EmailLog\" SET \"Status\" = 'Dead', \"DeadReason\" = 'Bounced' WHERE \"EmailId\" = 3",
    )
    .unwrap();
    let listed = place.run("list --status dead").out;
    assert!(listed.contains("email-log:3") && !listed.contains("email-log:1"), "{listed}");
    let shown = place.run("show email-log:3").out;
    assert!(shown.contains("550 nobody") && shown.contains("k3"), "{shown}");
    let said = place.run("dismiss email-log:3");
    assert!(said.err.contains("tables.email-log.words.dismissed"), "{} {}", said.out, said.err);
    let said = place.run("retry email-log:3");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let row: (String, i64, Option<String>) = db
        .query_row(
            "SELECT \"Status\", \"AttemptCount\", \"DeadReason\" FROM \"EmailLog\" WHERE \"EmailId\" = 3",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    assert_eq!(row, ("Failed".to_owned(), 0, None));
    assert!(place.run("explain email-log:3").out.contains("due"), "it can be explained");
}

#[test]
fn doctor_tells_what_an_application_got_wrong() {
    let database = PostgresServer::shared().database();
    let url: &'static str = Box::leak(database.url().into_boxed_str());
    let place = Place::new(CONFIG).with_variable("DATABASE_URL", url);
    let said = place.run("table init --apply");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(place.run("migrate").code, Some(0));
    database.say(
        "INSERT INTO \"EmailLog\" (\"Status\", \"AttemptCount\", \"NextAttemptAt\", \"LastQueuedAt\") VALUES \
         ('Failed', 1, NULL, NULL), ('Failed', -2, now() + interval '1 h', NULL), ('Bouncing', 0, NULL, NULL), \
         ('RetryQueued', 0, NULL, NULL), ('Pending', 1, NULL, now() - interval '2 h'), \
         ('Pending', 1, NULL, now() - interval '2 d'), ('Pending', 1, NULL, now())",
    );
    let said = place.run("doctor");
    for words in [
        "1 row failed without a time",
        "1 row with a negative count",
        "1 row with the word \"Bouncing\"",
        "1 row claimed without a lock",
        "2 rows with their sender for over an hour, 1 of them for over a day, 0 for over a week",
    ] {
        assert!(said.out.contains(words), "{words} in {}", said.out);
    }
    database.say("DROP INDEX \"EmailLog_Status_NextAttemptAt\"");
    for command in ["doctor", "check"] {
        let said = place.run(command);
        assert_eq!(said.code, Some(1), "{command}");
        let all = format!("{}{}", said.out, said.err);
        assert!(all.contains("CREATE INDEX CONCURRENTLY"), "{command}: {all}");
    }
}
