//! Every question is answered through an index, whatever the planner believes.
//!
//! Plans are looked at as they are made without knowing the values, and with statistics of a time when there was nothing.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use redeliver_servers::postgres::{Database, PostgresServer};

use super::{OpenOptions, Postgres};

/// Messages that are there, and that the statistics know nothing of.
const MESSAGES: u32 = 100_000;

/// Statements that are no questions to a large table: they make tables, or are asked of the server.
const OTHERS: [&str; 10] = [
    "create_migrations",
    "create_schema",
    "add_day",
    "attach_day",
    "detach_day",
    "drop_day",
    // A day that goes is read as a whole, once.
    "wanted_of_day",
    "keep_of_day",
    // Small by folding, and read as a whole by whoever folds.
    "fold_tallies",
    // The doctor looks at every row, when somebody asks it to.
    "health_orphans",
];

/// Statements that are only planned with their values, because each leaves out what wasn't asked for; and the indexes
/// that they walk.
const BY_VALUE: [(&str, &[&str]); 13] = [
    ("list", &["redeliver_messages_pkey"]),
    ("list_by_key", &["redeliver_keys_pkey", "redeliver_messages_pkey"]),
    ("list_by_name", &["redeliver_contents_", "redeliver_messages_pkey"]),
    ("list_cancelled", &["redeliver_cancelled"]),
    ("list_claimed", &["redeliver_claimed"]),
    ("list_dead", &["redeliver_dead"]),
    ("list_delivered", &["redeliver_delivered"]),
    ("list_dismissed", &["redeliver_dismissed"]),
    ("list_due", &["redeliver_ready", "redeliver_suspects"]),
    ("list_handed_off", &["redeliver_awaited"]),
    ("list_later", &["redeliver_ready", "redeliver_suspects"]),
    ("list_parked", &["redeliver_held"]),
    ("list_waiting", &["redeliver_untried", "redeliver_retried"]),
];

/// A database with rows, of which the statistics say that there are none.
fn database() -> &'static Database<'static> {
    static FILLED: OnceLock<Database<'static>> = OnceLock::new();
    FILLED.get_or_init(|| {
        let database = PostgresServer::shared().database();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        drop(runtime.block_on(Postgres::open(&database.url(), OpenOptions::default())).unwrap());
        for table in ["messages", "contents", "keys", "attempts"] {
            database.say(&format!(
                "ALTER TABLE redeliver.redeliver_{table} SET (autovacuum_enabled = false)"
            ).replace("ALTER TABLE redeliver.redeliver_attempts SET", "ALTER TABLE redeliver.redeliver_attempts_others SET"));
        }
        database.say("ANALYZE");
        database.say(&format!(
            "INSERT INTO redeliver.redeliver_messages (id, workspace, route, lane, state, due_at, ready_at, fence, \
             attempts, losses, cancel_requested, scheduled_for, created_at, generation, attempts_before, unconfirmed, \
             possible_duplicates, is_dead_letter) \
             SELECT gen_random_uuid(), 'default', 'mail', 2, 0, n, n, 0, 0, 0, false, n, n, 0, 0, 0, 0, false \
             FROM generate_series(1, {MESSAGES}) AS n"
        ));
        database.say(
            "INSERT INTO redeliver.redeliver_contents (id, bytes, workspace, route, lane) \
             SELECT id, 'body', workspace, route, lane FROM redeliver.redeliver_messages",
        );
        database.say(
            "INSERT INTO redeliver.redeliver_keys (key, workspace, message_id) \
             SELECT id::text, workspace, id FROM redeliver.redeliver_messages",
        );
        database.say(&format!(
            "INSERT INTO redeliver.redeliver_audit (actor, action, subject, at) \
             SELECT 'ada', 'retry', n::text, n FROM generate_series(1, {MESSAGES}) AS n"
        ));
        database
    })
}

/// Each statement with its plan. It is prepared with no types, and explained for values that are all unknown.
fn plans(check: impl Fn(&str, &str)) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/postgres/sql");
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for path in files {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if OTHERS.contains(&name.as_str()) || BY_VALUE.iter().any(|(list, _)| *list == name) {
            continue;
        }
        check(&name, &plan(&fs::read_to_string(&path).unwrap()));
    }
}

fn plan(sql: &str) -> String {
    let count = (1..100).rev().find(|n| sql.contains(&format!("${n}"))).unwrap_or(0);
    let types = types_of(sql, count);
    let (types, values) = match count {
        0 => (String::new(), String::new()),
        _ => (format!("({})", types.join(", ")), format!("({})", vec!["NULL"; count].join(", "))),
    };
    let sql = sql.trim_end().trim_end_matches(';');
    database().say(&format!(
        "SET plan_cache_mode = force_generic_plan; PREPARE asked {types} AS {sql}; EXPLAIN EXECUTE asked {values}"
    ))
}

/// What PostgreSQL finds out by itself where it can; arrays are told, because nothing else says what is in them.
fn types_of(sql: &str, count: usize) -> Vec<&'static str> {
    const MESSAGE: &str = "uuid text text int2 int2 int8 int8 int8 int8 int4 int4 text int8 int8 int8 int8 bool int8 \
                           int8 int8 int8 text int2 int8 text text int8 int8 int8 int4 int4 int4 int4 int4 int8 text \
                           text bool int8";
    let message = || MESSAGE.split_whitespace();
    if sql.contains("given (id, prospect, place)") {
        return vec!["text", "int8", "text[]", "text[]"];
    }
    if sql.contains("said (key, place)") {
        return vec!["text", "text[]"];
    }
    if sql.contains("said (address, reason)") {
        return vec!["text", "text[]", "text[]", "int8"];
    }
    let arrays: Vec<&'static str> = if sql.contains("revives") {
        message().chain("text text bytea text bytea bytea bool".split(' ')).collect()
    } else if sql.contains("bytes, hash, place") {
        "uuid text text int2 int8 text int8 int8 int8 int4 text text bytea text bytea bytea"
            .split(' ')
            .collect()
    } else if sql.contains("moved AS (\n    SELECT held") {
        message().chain(["int8"]).collect()
    } else if sql.contains("id, expected_fence, attempts, ended_at") {
        "uuid int8 int4 int8 text".split(' ').collect()
    } else if sql.contains("id, fence, cancel_requested") {
        "uuid int8 bool int8".split(' ').collect()
    } else if sql.contains("held (id, claim)") {
        "uuid int8".split(' ').collect()
    } else if sql.contains("said (campaign, workspace, dead") {
        "text text int8 int8 int8".split(' ').collect()
    } else if sql.contains("said (key, workspace)") {
        "text text".split(' ').collect()
    } else if sql.contains("redeliver_attempts (") && sql.contains("unnest") {
        "uuid int4 int4 int2 int8 int8 text int8 int8 int8".split(' ').collect()
    } else if sql.contains("redeliver_edits (") {
        "uuid text int8 int4 text".split(' ').collect()
    } else if sql.contains("redeliver_audit (") {
        "text text text int8 text".split(' ').collect()
    } else if sql.contains("excluded.target") {
        "uuid text text bytea text bytea text text int2".split(' ').collect()
    } else {
        Vec::new()
    };
    let array = |name: &str| match name {
        "uuid" => "uuid[]",
        "text" => "text[]",
        "int2" => "int2[]",
        "int4" => "int4[]",
        "int8" => "int8[]",
        "bool" => "bool[]",
        _ => "bytea[]",
    };
    let mut types: Vec<&'static str> = arrays.into_iter().map(array).collect();
    types.resize(count, "unknown");
    types
}

#[test]
fn no_statement_scans_a_large_table() {
    plans(|name, plan| {
        for table in ["redeliver_messages", "redeliver_contents", "redeliver_keys", "redeliver_attempts"] {
            assert!(!plan.contains(&format!("Seq Scan on {table} ")), "{name}:\n{plan}");
        }
    });
}

#[test]
fn deeds_are_found_by_their_index() {
    plans(|name, plan| {
        let index = match name {
            "deeds" => "redeliver_audit_pkey",
            "deeds_of_action" => "redeliver_audit_action",
            "deeds_of_actor" => "redeliver_audit_actor",
            "deeds_of_subject" => "redeliver_audit_subject",
            _ => return,
        };
        // Of somebody who did little, the few deeds are sorted: that costs less than one place after the other.
        let walks = plan.contains(&format!("using {index} on")) && !plan.contains("Sort");
        let sorts_few = name != "deeds" && plan.contains(&format!("Bitmap Index Scan on {index} "));
        assert!(walks || sorts_few, "{name}:\n{plan}");
    });
}

#[test]
fn claiming_walks_its_index_and_sorts_nothing() {
    plans(|name, plan| {
        let index = match name {
            "claim_trusted" => "redeliver_ready",
            "claim_suspect" => "redeliver_suspects",
            _ => return,
        };
        assert!(plan.contains(&format!("using {index} on")), "{name}:\n{plan}");
        assert!(!plan.contains("Sort"), "{name}:\n{plan}");
        for key in ["redeliver_messages_pkey", "redeliver_contents_pkey"] {
            assert!(plan.contains(key), "{name}:\n{plan}");
        }
    });
}

#[test]
fn a_write_by_id_finds_its_row_by_id() {
    plans(|name, plan| {
        if ["apply", "apply_claimed", "apply_delivered", "start", "renew"].contains(&name) {
            let indexes =
                ["ready", "suspects", "parked", "claimed", "handed_off", "dead", "put_away", "expiring"];
            for index in indexes.map(|index| format!("redeliver_{index} ")) {
                assert!(!plan.contains(&index), "{name}:\n{plan}");
            }
            assert!(plan.contains("redeliver_messages_pkey"), "{name}:\n{plan}");
        }
    });
}

/// The plan of a list for these values; the last ones are what each list takes besides.
fn plan_of_list(name: &str, [after, workspace, route, lane]: [&str; 4]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/postgres/sql").join(format!("{name}.sql"));
    let mut sql = fs::read_to_string(path).unwrap();
    let values = match name {
        "list_by_key" => [after, "0::int2", "false", "50", lane, workspace, route, "'k'"].to_vec(),
        _ => {
            let bools = ["false", "NULL::bool", "NULL::bool", "NULL::bool"];
            let bools = if name == "list_later" { ["false", "false", "true", "false"] } else { bools };
            [&[after, workspace, route, "50", lane, "5000", "5000::int8", "0::int2"][..], &bools[..]].concat()
        }
    };
    for (n, value) in values.iter().enumerate().rev() {
        sql = sql.replace(&format!("${}", n + 1), value);
    }
    database().say(&format!("EXPLAIN {sql}"))
}

#[test]
fn a_list_walks_its_index_whatever_is_asked_for() {
    let nothing = ["NULL::uuid", "NULL::text", "NULL::text", "NULL::int2"];
    let mut asked = vec![nothing];
    for (place, value) in
        ["'01990000-0000-7000-8000-000000000000'::uuid", "'default'", "'mail'", "2::int2"].iter().enumerate()
    {
        let mut one = nothing;
        one[place] = value;
        asked.push(one);
    }
    asked.push(["NULL::uuid", "'nobody'", "'nothing'", "0::int2"]);
    for (name, indexes) in BY_VALUE {
        for values in &asked {
            let has_a_name = values[1..] != nothing[1..];
            if name == "list_by_name" && !has_a_name {
                continue;
            }
            let plan = plan_of_list(name, *values);
            for index in indexes {
                assert!(plan.contains(index), "{name} {values:?}:\n{plan}");
            }
            for table in ["redeliver_messages", "redeliver_contents", "redeliver_keys"] {
                assert!(!plan.contains(&format!("Seq Scan on {table} ")), "{name} {values:?}:\n{plan}");
            }
        }
    }
}
