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

const MIGRATIONS: [Migration; 12] = [
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
];

/// Takes the steps that the database hasn't taken yet.
pub(super) fn migrate(db: &Connection) -> Result<(), Fault> {
    let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    transaction.execute_batch(include_str!("sql/create_migrations.sql"))?;
    let taken = taken(&transaction)?;
    check(&taken)?;
    for migration in &MIGRATIONS[taken.len()..] {
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
