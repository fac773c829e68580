//! Brings a database to this version's tables, each step once and never another step than the one that was released.
//!
//! Any number of instances may start at once: one takes the steps, the others wait and find them taken.

use sha2::{Digest, Sha256};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::errors::Fault;
use super::rows::get;

/// One numbered step.
struct Migration {
    number: i64,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: [Migration; 16] = [
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
    Migration { number: 13, name: "plannings", sql: include_str!("migrations/0013_plannings.sql") },
    Migration { number: 14, name: "limits", sql: include_str!("migrations/0014_limits.sql") },
    Migration { number: 15, name: "limit_wants", sql: include_str!("migrations/0015_limit_wants.sql") },
    Migration { number: 16, name: "first_sends", sql: include_str!("migrations/0016_first_sends.sql") },
];

/// Takes the steps that the database hasn't taken yet. Says how many.
pub(super) async fn migrate(db: &mut Client) -> Result<usize, Fault> {
    // Whoever finds everything there needs no right to change it.
    if taken(db).await?.len() == MIGRATIONS.len() {
        return Ok(0);
    }
    let transaction = db.transaction().await?;
    transaction.batch_execute(include_str!("sql/lock_migrations.sql")).await?;
    transaction.batch_execute(include_str!("sql/create_schema.sql")).await?;
    transaction.batch_execute(include_str!("sql/create_migrations.sql")).await?;
    let taken = taken(transaction.client()).await?;
    for migration in &MIGRATIONS[taken.len()..] {
        transaction.batch_execute(migration.sql).await?;
        let params = [
            (&migration.number as _, Type::INT8),
            (&migration.name as _, Type::TEXT),
            (&checksum(migration.sql) as _, Type::TEXT),
        ];
        transaction.execute_typed(include_str!("sql/insert_migration.sql"), &params).await?;
    }
    transaction.commit().await?;
    Ok(MIGRATIONS.len() - taken.len())
}

/// Looks whether the database has taken all steps, and takes none.
pub(super) async fn check_current(db: &Client) -> Result<(), Fault> {
    match taken(db).await?.len() {
        0 => Err(Fault::Unfit(
            "there is no store in it yet; `redeliver serve` or `redeliver migrate` makes it".to_owned(),
        )),
        steps if steps < MIGRATIONS.len() => Err(Fault::Unfit(format!(
            "it was made by an older redeliver (migration {steps}, this one knows {}); \
             `redeliver serve` or `redeliver migrate` updates it",
            MIGRATIONS.len()
        ))),
        _ => Ok(()),
    }
}

/// The indexes that all steps together have made.
pub(super) fn indexes() -> Vec<&'static str> {
    let mut made = Vec::new();
    for line in MIGRATIONS.iter().flat_map(|migration| migration.sql.lines()) {
        let name = |rest: &'static str| rest.split_whitespace().next().unwrap_or(rest);
        if let Some(rest) = line.strip_prefix("CREATE INDEX ") {
            made.push(name(rest));
        } else if let Some(rest) = line.strip_prefix("DROP INDEX redeliver.") {
            made.retain(|made| *made != name(rest).trim_end_matches(';'));
        }
    }
    made
}

/// The steps that were taken, each the one that this version would have taken.
async fn taken(db: &Client) -> Result<Vec<i64>, Fault> {
    let there = db.query_typed_one(include_str!("sql/has_migrations.sql"), &[]).await?;
    if !get::<bool>(&there, 0)? {
        return Ok(Vec::new());
    }
    let found = db.query_typed(include_str!("sql/migrations.sql"), &[]).await?;
    if found.len() > MIGRATIONS.len() {
        return Err(Fault::Unfit(format!(
            "it was made by a newer redeliver (migration {}, this one knows {}); use that version",
            found.len(),
            MIGRATIONS.len()
        )));
    }
    let mut taken = Vec::new();
    for (row, migration) in found.iter().zip(&MIGRATIONS) {
        let (number, name, sum): (i64, &str, &str) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
        if number != migration.number || sum != checksum(migration.sql) {
            return Err(Fault::Unfit(format!(
                "migration {number} ({name}) is not the one that this redeliver would have run; \
                 use the version that made the database"
            )));
        }
        taken.push(number);
    }
    Ok(taken)
}

fn checksum(sql: &str) -> String {
    Sha256::digest(sql.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
