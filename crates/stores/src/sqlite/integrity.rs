//! Looks whether a database is whole, for `redeliver doctor`.

use rusqlite::Connection;

use super::errors::Fault;

/// What an examination found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Integrity {
    /// What SQLite says is wrong with the file; empty if nothing is.
    pub damages: Vec<String>,
    /// Contents whose message is gone: wasted room.
    pub orphan_contents: u64,
    /// Histories whose message is gone: wasted room.
    pub orphan_attempts: u64,
    /// Keys of messages that are gone though nobody pruned them: those messages were lost.
    pub orphan_keys: u64,
    /// Messages without a content: they would go out empty.
    pub missing_contents: u64,
}

impl Integrity {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        *self == Self::default()
    }
}

pub(super) fn examine(db: &Connection) -> Result<Integrity, Fault> {
    let mut quick_check = db.prepare("PRAGMA quick_check")?;
    let words = quick_check.query_map([], |row| row.get::<_, String>(0))?;
    let mut damages = words.collect::<rusqlite::Result<Vec<_>>>()?;
    damages.retain(|word| word != "ok");
    let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs);
    Ok(Integrity {
        damages,
        orphan_contents: count(include_str!("sql/orphan_contents.sql"))?,
        orphan_attempts: count(include_str!("sql/orphan_attempts.sql"))?,
        orphan_keys: count(include_str!("sql/orphan_keys.sql"))?,
        missing_contents: count(include_str!("sql/missing_contents.sql"))?,
    })
}
