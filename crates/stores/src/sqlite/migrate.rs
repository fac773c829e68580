//! Brings a database to this version's tables, each step once and never another step than the one that was released.

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use sha2::{Digest, Sha256};

use super::errors::Fault;

/// One numbered step.
struct Migration {
    number: i64,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: [Migration; 17] = [
    Migration { number: 1, name: "messages", sql: include_str!("migrations/0001_messages.sql") },
    Migration { number: 2, name: "access", sql: include_str!("migrations/0002_access.sql") },
    Migration { number: 3, name: "notes", sql: include_str!("migrations/0003_notes.sql") },
    Migration { number: 4, name: "bulks", sql: include_str!("migrations/0004_bulks.sql") },
    Migration { number: 5, name: "campaigns", sql: include_str!("migrations/0005_campaigns.sql") },
    Migration { number: 6, name: "suppressions", sql: include_str!("migrations/0006_suppressions.sql") },
    Migration { number: 7, name: "edits", sql: include_str!("migrations/0007_edits.sql") },
    Migration { number: 8, name: "instances", sql: include_str!("migrations/0008_instances.sql") },
    Migration { number: 9, name: "running_bulks", sql: include_str!("migrations/0009_running_bulks.sql") },
    Migration { number: 10, name: "deeds", sql: include_str!("migrations/0010_deeds.sql") },
    Migration { number: 11, name: "times", sql: include_str!("migrations/0011_times.sql") },
    Migration { number: 12, name: "prospects", sql: include_str!("migrations/0012_prospects.sql") },
    Migration { number: 13, name: "numbers", sql: include_str!("migrations/0013_numbers.sql") },
    Migration { number: 14, name: "plannings", sql: include_str!("migrations/0014_plannings.sql") },
    Migration { number: 15, name: "limits", sql: include_str!("migrations/0015_limits.sql") },
    Migration { number: 16, name: "limit_wants", sql: include_str!("migrations/0016_limit_wants.sql") },
    Migration { number: 17, name: "first_sends", sql: include_str!("migrations/0017_first_sends.sql") },
];

/// Takes the steps that the database hasn't taken yet.
pub(super) fn migrate(db: &Connection) -> Result<(), Fault> {
    migrate_to(db, MIGRATIONS.len())
}

fn migrate_to(db: &Connection, last: usize) -> Result<(), Fault> {
    let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    transaction.execute_batch(include_str!("sql/create_migrations.sql"))?;
    let taken = taken(&transaction)?;
    check(&taken)?;
    for migration in MIGRATIONS.iter().take(last).skip(taken.len()) {
        transaction.execute_batch(migration.sql)?;
        transaction.execute(
            include_str!("sql/insert_migration.sql"),
            params![migration.number, migration.name, checksum(migration.sql)],
        )?;
    }
    transaction.commit()?;
    Ok(())
}

/// Looks whether the database has taken all steps, and takes none.
pub(super) fn check_current(db: &Connection) -> Result<(), Fault> {
    let taken = match db.table_exists(None, "redeliver_migrations")? {
        true => taken(db)?,
        false => Vec::new(),
    };
    check(&taken)?;
    match taken.len() {
        0 => Err(Fault::Unfit("there is no store in it yet; `redeliver serve` makes it".to_owned())),
        steps if steps < MIGRATIONS.len() => Err(Fault::Unfit(format!(
            "it was made by an older redeliver (migration {steps}, this one knows {}); `redeliver serve` updates it",
            MIGRATIONS.len()
        ))),
        _ => Ok(()),
    }
}

fn taken(db: &Connection) -> Result<Vec<(i64, String, String)>, Fault> {
    let mut get = db.prepare(include_str!("sql/migrations.sql"))?;
    let found = get.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn check(taken: &[(i64, String, String)]) -> Result<(), Fault> {
    if taken.len() > MIGRATIONS.len() {
        return Err(Fault::Unfit(format!(
            "it was made by a newer redeliver (migration {}, this one knows {}); use that version",
            taken.len(),
            MIGRATIONS.len()
        )));
    }
    for ((number, name, taken_checksum), migration) in taken.iter().zip(&MIGRATIONS) {
        if *number != migration.number || *taken_checksum != checksum(migration.sql) {
            return Err(Fault::Unfit(format!(
                "migration {number} ({name}) is not the one that this redeliver would have run; \
                 use the version that made the database"
            )));
        }
    }
    Ok(())
}

fn checksum(sql: &str) -> String {
    Sha256::digest(sql.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use redeliver_conformance::make::{id, keyed, request};
    use redeliver_core::Content;

    use super::super::errors::own;
    use super::super::{claim, integrity, read, rows};
    use super::*;

    /// The last step before messages had numbers.
    const UNNUMBERED: usize = 12;

    #[test]
    fn messages_from_before_they_had_numbers_are_found_with_what_they_carry() {
        let db = Connection::open_in_memory().unwrap();
        migrate_to(&db, UNNUMBERED).unwrap();
        let carried = |n: u32| Content::of_bytes(n.to_string().into_bytes());
        for n in [3, 1, 2] {
            let message = keyed(n, &format!("key {n}"));
            let id = own(&message.id).unwrap();
            let mut new = db.prepare(include_str!("sql/insert_new.sql")).unwrap();
            rows::bind_new(&mut new, id, &message, None).unwrap();
            new.raw_execute().unwrap();
            let content = "INSERT INTO redeliver_contents (id, bytes) VALUES (?1, ?2)";
            db.execute(content, params![id, &*carried(n).bytes]).unwrap();
        }
        migrate(&db).unwrap();
        assert!(integrity::examine(&db).unwrap().is_whole());
        for n in 1..=3 {
            assert_eq!(read::content(&db, &id(n)).unwrap(), Some(carried(n)));
            assert_eq!(read::get(&db, &id(n)).unwrap(), Some(keyed(n, &format!("key {n}"))));
        }
        let claims = claim::claim(&db, &request()).unwrap();
        let claimed: Vec<_> =
            claims.claimed.into_iter().map(|(message, content)| (message.id, content)).collect();
        assert_eq!(claimed, [1, 2, 3].map(|n| (id(n), carried(n))));
    }
}
