//! Every question is answered through an index, whatever the planner would like.

use std::fs;
use std::path::Path;

use rusqlite::Connection;

use super::open::{OpenOptions, set_up_writer};

/// Statements that may read all of a table: they are asked by `doctor`, or are meant to.
const WHOLE: [&str; 6] =
    ["clear", "orphan_contents", "orphan_attempts", "orphan_keys", "missing_contents", "create_migrations"];

/// Statements that read all of an index, which holds only what they want.
const WHOLE_INDEX: [&str; 6] =
    ["counts", "list_claimed", "list_handed_off", "list_dead", "list_parked", "list_waiting"];

fn plans(check: impl Fn(&str, &str)) {
    let db = Connection::open_in_memory().unwrap();
    set_up_writer(&db, &OpenOptions::default()).unwrap();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite/sql");
    for file in fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if WHOLE.contains(&name) {
            continue;
        }
        let sql = fs::read_to_string(&path).unwrap();
        let mut explain = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let mut steps = explain.raw_query();
        while let Some(step) = steps.next().unwrap() {
            check(name, &step.get::<_, String>(3).unwrap());
        }
    }
}

#[test]
fn no_statement_scans_a_large_table() {
    plans(|name, step| {
        let mut words = step.split(' ');
        let scans = words.next() == Some("SCAN");
        let table = words.next().unwrap_or_default();
        let large = ["redeliver_messages", "redeliver_contents", "redeliver_keys", "redeliver_attempts"];
        if scans && (large.contains(&table) || table.len() == 1) {
            assert!(WHOLE_INDEX.contains(&name) && step.contains("INDEX"), "{name}: {step}");
        }
    });
}

#[test]
fn claiming_sorts_nothing() {
    plans(|name, step| {
        if name.starts_with("due_") || name.starts_with("next_due_") {
            assert!(!step.contains("TEMP B-TREE"), "{name}: {step}");
        }
    });
}

#[test]
fn counting_reads_indexes_and_not_the_table() {
    plans(|name, step| {
        // The claimed are few, and their index is written too often to be any wider.
        if name == "counts" && step.contains("redeliver_messages") && !step.contains("redeliver_claimed") {
            assert!(step.contains("COVERING INDEX"), "{step}");
        }
    });
}

#[test]
fn a_write_finds_its_row_by_id_or_number() {
    let by_id = "SEARCH redeliver_messages USING INDEX sqlite_autoindex_redeliver_messages_1 (id=?)";
    let by_number = "SEARCH redeliver_messages USING INTEGER PRIMARY KEY (rowid=?)";
    plans(|name, step| match name {
        "apply" | "apply_delivered" | "start" | "renew" => assert_eq!(step, by_id, "{name}"),
        "claim_trusted" | "claim_suspect" => assert_eq!(step, by_number, "{name}"),
        _ => {}
    });
}

#[test]
fn deeds_are_found_by_their_index_and_sorted_by_it() {
    plans(|name, step| {
        let plan = match name {
            "deeds" => "SEARCH redeliver_audit USING INTEGER PRIMARY KEY (rowid<?)".to_owned(),
            "deeds_of_action" | "deeds_of_actor" | "deeds_of_subject" => {
                let column = name.trim_start_matches("deeds_of_");
                format!(
                    "SEARCH redeliver_audit USING INDEX redeliver_audit_{column} ({column}=? AND rowid<?)"
                )
            }
            _ => return,
        };
        assert_eq!(step, plan, "{name}");
    });
}

#[test]
fn each_connection_has_a_page_cache_of_its_own() {
    // `.cargo/config.toml` says why.
    let db = Connection::open_in_memory().unwrap();
    let mut options = db.prepare("PRAGMA compile_options").unwrap();
    let options = options.query_map([], |row| row.get::<_, String>(0)).unwrap();
    assert!(options.flatten().all(|option| option != "ENABLE_MEMORY_MANAGEMENT"));
}
