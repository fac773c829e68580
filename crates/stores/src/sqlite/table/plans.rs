//! Every question to an application's table is answered through an index.

use rusqlite::Connection;

use super::shape::Shape;
use super::*;
use crate::mapping::TableName;

#[test]
fn no_question_to_the_table_reads_all_of_it() {
    let db = Connection::open_in_memory().unwrap();
    let mut mapping = Mapping::new("log", "mail", TableName::parse("EmailLog").unwrap());
    mapping.report_within = Some(std::time::Duration::from_secs(60));
    db.execute_batch(&SqliteTable::ddl(&mapping)).unwrap();
    let shape = Shape::look(&db, mapping).unwrap();
    let page = Page { words: vec!["Dead".to_owned()], after: Some("7".to_owned()), ..Page::default() };
    let words: Vec<String> = page.words.iter().map(|word| literal(word)).collect();
    let blanks = [("words", words.join(", ")), ("asked", asked(&shape, &page))];
    for (name, sql) in [
        ("due", include_str!("sql/due.sql")),
        ("claim", include_str!("sql/claim.sql")),
        ("next_due", include_str!("sql/next_due.sql")),
        ("by_id", include_str!("sql/by_id.sql")),
        ("rewrite", include_str!("sql/rewrite.sql")),
        ("lapsed", include_str!("sql/lapsed.sql")),
        ("overdue", include_str!("sql/overdue.sql")),
        ("spent", include_str!("sql/spent.sql")),
        ("timeless", include_str!("sql/timeless.sql")),
        ("page", include_str!("sql/page.sql")),
        ("tally", include_str!("sql/tally.sql")),
        ("dead", include_str!("sql/dead.sql")),
    ] {
        let sql = filled(&shape.fill(sql), &blanks);
        let mut explain = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let mut steps = explain.raw_query();
        while let Some(step) = steps.next().unwrap() {
            let step: String = step.get(3).unwrap();
            // Counting reads all of an index, and nothing of the table.
            let counts = name == "tally" && step.contains("COVERING INDEX");
            assert!(!step.starts_with("SCAN") || counts, "{name}: {step}");
            let sorts = step.contains("TEMP B-TREE");
            assert!(!sorts || ["page", "dead"].contains(&name), "{name}: {step}");
        }
    }
}
