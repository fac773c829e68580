//! What is due is found through the index, whatever the planner knows of the values.

use redeliver_servers::postgres::PostgresServer;

use super::shape::Shape;
use super::*;
use crate::mapping::TableName;

/// Rows of a table that is mostly sent; so many that a scan could never be cheaper.
const ROWS: u32 = 200_000;

#[test]
fn no_question_to_the_table_reads_all_of_it() {
    let database = PostgresServer::shared().database();
    let mut mapping = Mapping::new("log", "mail", TableName::parse("EmailLog").unwrap());
    mapping.report_within = Some(std::time::Duration::from_secs(60));
    database.say(&PostgresTable::ddl(&mapping));
    database.say(&format!(
        "INSERT INTO \"EmailLog\" (\"Status\", \"AttemptCount\", \"NextAttemptAt\") \
         SELECT CASE WHEN n % 50 = 0 THEN 'Failed' ELSE 'Sent' END, n % 8, now() - n * interval '1 s' \
         FROM generate_series(1, {ROWS}) AS n"
    ));
    database.say("UPDATE \"EmailLog\" SET \"Status\" = 'Dead' WHERE \"EmailId\" % 1000 = 7");
    database.say("VACUUM ANALYZE \"EmailLog\"");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shapes: Vec<Shape> = runtime.block_on(async {
        let address = Address::read(&database.url(), &OpenOptions::default()).unwrap();
        let (db, driven) = address.connect().await.unwrap();
        let shapes = [
            Shape::look(&db, mapping.clone(), Clock::Database).await.unwrap(),
            Shape::look(&db, mapping, Clock::Caller).await.unwrap(),
        ];
        driven.abort();
        shapes.into()
    });
    for shape in &shapes {
        for (name, sql, types) in [
            ("claim", include_str!("sql/claim.sql"), "bigint, bigint, bigint, bigint, bigint"),
            ("next_due", include_str!("sql/next_due.sql"), "bigint"),
            ("lapsed", include_str!("sql/lapsed.sql"), "bigint, bigint"),
            ("overdue", include_str!("sql/overdue.sql"), "bigint, bigint, bigint"),
            ("spent", include_str!("sql/spent.sql"), "bigint, bigint"),
            ("timeless", include_str!("sql/timeless.sql"), "bigint"),
            ("by_id", include_str!("sql/by_id.sql"), "text[], bigint"),
            ("lock", include_str!("sql/lock.sql"), "text[]"),
            (
                "rewrite",
                include_str!("sql/rewrite.sql"),
                "text[], text[], bigint[], text[], bigint[], bigint[], bigint[], text[], text[], bigint[]",
            ),
        ] {
            let values = vec!["NULL"; types.split(',').count()].join(", ");
            for mode in ["force_generic_plan", "force_custom_plan"] {
                let plan = database.say(&format!(
                    "SET plan_cache_mode = {mode}; PREPARE asked ({types}) AS {}; EXPLAIN EXECUTE asked ({values})",
                    shape.fill(sql).trim_end()
                ));
                assert!(!plan.contains("Seq Scan on \"EmailLog\""), "{name}, {mode}:\n{plan}");
                if name == "claim" && mode == "force_generic_plan" {
                    assert!(plan.contains("EmailLog_Status_NextAttemptAt"), "{plan}");
                }
            }
        }
        // What people ask: by their values, as they are asked. Counting rows by their words reads all of an index, or of the
        // table where that is no larger.
        let page =
            Page { words: vec!["Dead".to_owned()], after: Some("150000".to_owned()), ..Page::default() };
        let page = shape.fill_with(include_str!("sql/page.sql"), &[("asked", asked(shape, &page))]);
        for (name, sql, types, values) in [
            ("page", page.as_str(), "(text[], bigint)", "('{Dead}', 50)"),
            ("dead", include_str!("sql/dead.sql"), "", ""),
        ] {
            let plan = database.say(&format!(
                "PREPARE asked {types} AS {}; EXPLAIN EXECUTE asked {values}",
                shape.fill(sql).trim_end()
            ));
            assert!(!plan.contains("Seq Scan on \"EmailLog\""), "{name}:\n{plan}");
        }
    }
}
