//! An application's table in a SQLite file. Statements are in `sql/`, with blanks for its names.

#[cfg(test)]
mod plans;
mod shape;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::Timestamp;
use redeliver_engine::store::{Applied, StoreError};
use rusqlite::types::Value;
use rusqlite::{Connection, Error as SqlError, OpenFlags, params};

use super::calls::{in_transaction, stopped};
use super::errors::{Fault, OpenError, open_error, store_error};
use super::open;
use crate::adopted::{Due, Examined, Judge, Old, Page, Rewrite, Row, Rows, Tally, Which};
use crate::mails::Fields;
use crate::mapping::{Mapping, filled, literal, quoted};
use shape::Shape;

/// How long somebody else's transaction is waited for.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The rows of an application's table in SQLite.
pub struct SqliteTable(Arc<Inner>);

struct Inner {
    db: Mutex<Connection>,
    shape: Shape,
}

impl SqliteTable {
    /// Opens a table that is there, and has the columns and the index that are needed.
    pub fn open(path: impl AsRef<Path>, mapping: Mapping) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let open = || -> Result<Inner, Fault> {
            let db = connect(path)?;
            let shape = Shape::look(&db, mapping)?;
            Ok(Inner { db: Mutex::new(db), shape })
        };
        open::check_place(path)?;
        Ok(Self(Arc::new(open().map_err(|fault| open_error(path, fault))?)))
    }

    /// Makes the table and its index where they aren't there.
    pub fn init(path: impl AsRef<Path>, mapping: &Mapping) -> Result<(), OpenError> {
        let path = path.as_ref();
        open::check_place(path)?;
        let make = || -> Result<(), Fault> {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            let db = Connection::open_with_flags(path, flags)?;
            db.busy_timeout(BUSY_TIMEOUT)?;
            Ok(db.execute_batch(&Self::ddl(mapping))?)
        };
        make().map_err(|fault| open_error(path, fault))
    }

    /// The statements that `init` makes a table with.
    pub fn ddl(mapping: &Mapping) -> String {
        mapping.ddl(&shape::types(mapping.times))
    }

    /// Does something on the connection, away from whoever must not wait.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, &Shape) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.0);
        let asked = tokio::task::spawn_blocking(move || {
            // A transaction that a panic cut short was rolled back on its way out.
            let db = inner.db.lock().unwrap_or_else(PoisonError::into_inner);
            work(&db, &inner.shape).map_err(|fault| store_error(&db, fault))
        });
        asked.await.map_err(|_| stopped())?
    }
}

fn connect(path: &Path) -> Result<Connection, Fault> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.pragma_update(None, "synchronous", "full")?;
    Ok(db)
}

#[async_trait]
impl Rows for SqliteTable {
    async fn claim(&self, due: Due) -> Result<Vec<Row>, StoreError> {
        self.ask(move |db, shape| in_transaction(db, |db| claim(db, shape, due))).await
    }

    async fn next_due_at(&self, attempts_max: u32) -> Result<Option<Timestamp>, StoreError> {
        let next = move |db: &Connection, shape: &Shape| {
            let mut find = db.prepare_cached(&shape.fill(include_str!("sql/next_due.sql")))?;
            let mut found = find.query([attempts_max])?;
            let at = found.next()?.map(|row| shape.micros(row, 0)).transpose()?.flatten();
            Ok(at.map(|at| Timestamp::from_ms(at.div_euclid(1_000))))
        };
        self.ask(next).await
    }

    async fn rewrite(&self, ids: Vec<String>, judge: Judge) -> Result<Vec<Applied>, StoreError> {
        self.ask(move |db, shape| in_transaction(db, |db| rewrite(db, shape, &ids, &judge))).await
    }

    async fn find(&self, which: Which, limit: usize) -> Result<Vec<Row>, StoreError> {
        self.ask(move |db, shape| find(db, shape, &which, limit)).await
    }

    async fn tally(&self, now: Timestamp) -> Result<Vec<Tally>, StoreError> {
        self.ask(move |db, shape| tally(db, shape, now)).await
    }

    async fn examine(&self, now: Timestamp) -> Result<Examined, StoreError> {
        self.ask(move |db, shape| examine(db, shape, now)).await
    }

    async fn mail(&self, id: Option<String>) -> Result<Option<Fields>, StoreError> {
        self.ask(move |db, shape| mail(db, shape, id.as_deref())).await
    }

    fn is_id(&self, text: &str) -> bool {
        self.0.shape.is_id(text)
    }

    fn has_number_ids(&self) -> bool {
        self.0.shape.has_number_ids()
    }
}

fn claim(db: &Connection, shape: &Shape, due: Due) -> Result<Vec<Row>, Fault> {
    let by = shape.time(due.by.as_ms() * 1_000);
    let now = shape.time(due.now.as_ms() * 1_000);
    let until = shape.time(due.now.plus(due.lease).as_ms() * 1_000);
    let mut find = db.prepare_cached(&shape.fill(include_str!("sql/due.sql")))?;
    let limit = i64::try_from(due.limit).unwrap_or(i64::MAX);
    let mut found = find.query(params![by, due.attempts_max, now, limit])?;
    let mut ids: Vec<Value> = Vec::new();
    while let Some(row) = found.next()? {
        ids.push(row.get(0)?);
    }
    let mut take = db.prepare_cached(&shape.fill(include_str!("sql/claim.sql")))?;
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        let mut taken = take.query(params![id, until])?;
        while let Some(row) = taken.next()? {
            rows.push(shape.row(row)?);
        }
    }
    Ok(rows)
}

fn rewrite(db: &Connection, shape: &Shape, ids: &[String], judge: &Judge) -> Result<Vec<Applied>, Fault> {
    let rows = by_id(db, shape, ids)?;
    let judged = judge(&rows);
    let mut write = db.prepare_cached(&shape.fill(include_str!("sql/rewrite.sql")))?;
    for Rewrite { was, now } in &judged.rewrites {
        let mut values = vec![
            shape.id(&was.id),
            Value::Text(was.status.clone()),
            Value::Text(now.status.clone()),
            Value::Integer(now.attempts),
            shape.time_if_any(now.next_attempt_at),
            shape.time_if_any(now.locked_until),
        ];
        let c = &shape.mapping.columns;
        let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
        values.extend(c.last_error.as_ref().map(|_| text(&now.last_error)));
        values.extend(c.dead_reason.as_ref().map(|_| text(&now.dead_reason)));
        values.extend(c.last_queued_at.as_ref().map(|_| shape.time_if_any(now.last_queued_at)));
        if write.execute(rusqlite::params_from_iter(values))? != 1 {
            return Err(Fault::Unfit(format!("row {} changed under its lock", was.id)));
        }
    }
    Ok(judged.answers)
}

fn by_id(db: &Connection, shape: &Shape, ids: &[String]) -> Result<Vec<Row>, Fault> {
    let mut find = db.prepare_cached(&shape.fill(include_str!("sql/by_id.sql")))?;
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        let mut found = find.query([shape.id(id)])?;
        rows.extend(found.next()?.map(|row| shape.row(row)).transpose()?);
    }
    Ok(rows)
}

fn find(db: &Connection, shape: &Shape, which: &Which, limit: usize) -> Result<Vec<Row>, Fault> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let ask = |sql: &str, values: Vec<Value>| -> Result<Vec<Row>, Fault> {
        let mut find = db.prepare_cached(sql)?;
        let mut found = find.query(rusqlite::params_from_iter(values))?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            rows.push(shape.row(row)?);
        }
        Ok(rows)
    };
    let limit = Value::Integer(limit);
    match which {
        Which::Ids(ids) => by_id(db, shape, ids),
        Which::Lapsed(now) => {
            ask(&shape.fill(include_str!("sql/lapsed.sql")), vec![shape.time(now.as_ms() * 1_000), limit])
        }
        Which::Overdue(by, now) => {
            let values = vec![shape.time(by.as_ms() * 1_000), shape.time(now.as_ms() * 1_000), limit];
            ask(&shape.fill(include_str!("sql/overdue.sql")), values)
        }
        Which::Spent(most) => {
            ask(&shape.fill(include_str!("sql/spent.sql")), vec![Value::Integer(i64::from(*most)), limit])
        }
        Which::Timeless => ask(&shape.fill(include_str!("sql/timeless.sql")), vec![limit]),
        Which::Page(page) => {
            let words: Vec<String> = page.words.iter().map(|word| literal(word)).collect();
            let blanks = [("words", words.join(", ")), ("asked", asked(shape, page))];
            ask(&shape.fill_with(include_str!("sql/page.sql"), &blanks), vec![limit])
        }
    }
}

/// What a page is asked for besides its words.
fn asked(shape: &Shape, page: &Page) -> String {
    let columns = &shape.mapping.columns;
    let mut asked = String::new();
    if let Some(key) = &page.key {
        let is = columns
            .key
            .as_deref()
            .map(|name| format!("{} = {}", quoted(name), literal(&key.replace('\0', ""))));
        asked.push_str(&format!(" AND {}", is.unwrap_or_else(|| "false".to_owned())));
    }
    if let Some(id) = &page.after {
        asked.push_str(&format!(" AND {} < {}", quoted(&columns.id), shape.id_literal(id)));
    }
    if let Some((at, is_due)) = page.due {
        let compared = if is_due { "<=" } else { ">" };
        let at = shape.time_literal(at.as_ms() * 1_000);
        asked.push_str(&format!(" AND {} {compared} {at}", quoted(&columns.next_attempt_at)));
    }
    if let Some(tried) = page.tried {
        let compared = if tried { ">" } else { "<=" };
        asked.push_str(&shape.fill(&format!(" AND {{attempts}} {compared} 0")));
    }
    asked
}

fn tally(db: &Connection, shape: &Shape, now: Timestamp) -> Result<Vec<Tally>, Fault> {
    let mut count = db.prepare_cached(&shape.fill(include_str!("sql/tally.sql")))?;
    let mut found = count.query([shape.time(now.as_ms() * 1_000)])?;
    let mut tallies = Vec::new();
    while let Some(row) = found.next()? {
        let status = shape::text(row, 0)?.unwrap_or_default();
        if status == shape.mapping.words.dead && shape.mapping.columns.dead_reason.is_some() {
            let mut reasons = db.prepare_cached(&shape.fill(include_str!("sql/dead.sql")))?;
            let mut found = reasons.query([])?;
            while let Some(row) = found.next()? {
                let (dead_reason, count) = (shape::text(row, 0)?, count_of(row, 1)?);
                tallies.push(Tally { status: status.clone(), dead_reason, count, ..Tally::default() });
            }
            continue;
        }
        let is_pending = status == shape.mapping.words.pending;
        let old = if is_pending { old(db, shape, now)? } else { Old::default() };
        let (count, due) = (count_of(row, 1)?, count_of(row, 2)?);
        tallies.push(Tally { status, dead_reason: None, count, due, old });
    }
    Ok(tallies)
}

fn old(db: &Connection, shape: &Shape, now: Timestamp) -> Result<Old, Fault> {
    const HOUR_US: i64 = 3_600 * 1_000_000;
    let columns = &shape.mapping.columns;
    let queued_at = quoted(columns.last_queued_at.as_ref().unwrap_or(&columns.next_attempt_at));
    let sql = shape.fill_with(include_str!("sql/old.sql"), &[("queued_at", queued_at)]);
    let ago = |hours: i64| shape.time(now.as_ms() * 1_000 - hours * HOUR_US);
    let mut look = db.prepare_cached(&sql)?;
    let mut found = look.query(params![ago(1), ago(24), ago(7 * 24)])?;
    let Some(row) = found.next()? else { return Ok(Old::default()) };
    Ok(Old {
        than: [count_of(row, 0)?, count_of(row, 1)?, count_of(row, 2)?],
        since_unknown: count_of(row, 3)?,
    })
}

fn examine(db: &Connection, shape: &Shape, now: Timestamp) -> Result<Examined, Fault> {
    let mut look = db.prepare_cached(&shape.fill(include_str!("sql/examine.sql")))?;
    let mut found = look.query([])?;
    let tallies = tally(db, shape, now)?;
    let Some(row) = found.next()? else { return Ok(Examined { tallies, ..Examined::default() }) };
    Ok(Examined {
        tallies,
        timeless: count_of(row, 0)?,
        negative: count_of(row, 1)?,
        lockless: count_of(row, 2)?,
        untimely: count_of(row, 3)?,
    })
}

fn count_of(row: &rusqlite::Row<'_>, column: usize) -> Result<u64, Fault> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

fn mail(db: &Connection, shape: &Shape, id: Option<&str>) -> Result<Option<Fields>, Fault> {
    let question = shape.mapping.mail_question("?1").map_err(Fault::Unfit)?;
    let mut find = db.prepare_cached(&filled(include_str!("sql/mail.sql"), &[("mail", question)]))?;
    let names: Vec<String> = find.column_names().into_iter().map(str::to_owned).collect();
    let mut found = find.query([id.map_or(Value::Null, |id| shape.id(id))])?;
    let Some(row) = found.next().map_err(of_the_question)? else { return Ok(None) };
    let mut fields = Fields::new();
    for (column, name) in names.into_iter().enumerate() {
        fields.extend(shape::text(row, column)?.map(|text| (name, text)));
    }
    Ok(Some(fields))
}

/// What a question fails with that can be asked but not answered, such as for a text that it takes for JSON.
fn of_the_question(error: SqlError) -> Fault {
    match error {
        SqlError::SqliteFailure(failure, why) if failure.extended_code == rusqlite::ffi::SQLITE_ERROR => {
            Fault::Unfit(why.unwrap_or_else(|| failure.to_string()))
        }
        error => error.into(),
    }
}
