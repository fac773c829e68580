//! An application's table in a PostgreSQL database. Statements are in `sql/`, with blanks for its names.

#[cfg(test)]
mod plans;
mod shape;

use async_trait::async_trait;
use redeliver_core::Timestamp;
use redeliver_engine::clock::FollowedClock;
use redeliver_engine::store::{Applied, StoreError};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error as SqlError, Row as Found};

use super::connections::{Connections, ask, transact};
use super::errors::{Fault, OpenError, is_of_a_type, open_error};
use super::limit;
use super::line::Line;
use super::open::{Address, OpenOptions};
use super::rows::get;
use crate::adopted::{Due, Examined, Judge, Micros, Old, Page, Rewrite, Row, Rows, Tally, Which};
use crate::mails::Fields;
use crate::mapping::{Mapping, filled};
pub use shape::Clock;
use shape::{Shape, literal};

/// The rows of an application's table in PostgreSQL.
pub struct PostgresTable {
    connections: Connections,
    shape: Shape,
}

impl PostgresTable {
    /// Opens a table that is there, and has the columns and the index that are needed.
    pub async fn open(
        url: &str,
        options: OpenOptions,
        mapping: Mapping,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let address = Address::read(url, &options)?;
        let looked = async {
            let (db, driven) = address.connect().await?;
            let shape = Shape::look(&db, mapping, clock).await;
            driven.abort();
            shape
        };
        let shape = looked.await.map_err(|fault| open_error(&address.place, &fault))?;
        let address = address.limited(&options).await?;
        let connections = Connections::new(&address, &options, FollowedClock::new())
            .map_err(|fault| open_error(&address.place, &fault))?;
        Ok(Self { connections, shape })
    }

    /// Makes the table and its index where they aren't there.
    pub async fn init(url: &str, options: &OpenOptions, mapping: &Mapping) -> Result<(), OpenError> {
        let address = Address::read(url, options)?;
        let made = async {
            let (db, driven) = address.connect().await?;
            let made = db.batch_execute(&mapping.ddl(&shape::TYPES)).await;
            driven.abort();
            Ok(made?)
        };
        made.await.map_err(|fault| open_error(&address.place, &fault))
    }

    /// The statements that `init` makes a table with.
    pub fn ddl(mapping: &Mapping) -> String {
        mapping.ddl(&shape::TYPES)
    }

    /// How the database would find what a claim takes, as it says itself: for the benchmark.
    pub async fn plan_of_claim(&self, due: Due) -> Result<String, StoreError> {
        ask!(self, |db| plan_of_claim(db, &self.shape, due))
    }
}

#[async_trait]
impl Rows for PostgresTable {
    async fn claim(&self, due: Due) -> Result<Vec<Row>, StoreError> {
        ask!(self, |db| claim(db, &self.shape, due))
    }

    async fn next_due_at(&self, attempts_max: u32) -> Result<Option<Timestamp>, StoreError> {
        ask!(self, |db| next_due_at(db, &self.shape, attempts_max))
    }

    async fn rewrite(&self, ids: Vec<String>, judge: Judge) -> Result<Vec<Applied>, StoreError> {
        transact!(self, |db| rewrite(db, &self.shape, &ids, &judge))
    }

    async fn find(&self, which: Which, limit: usize) -> Result<Vec<Row>, StoreError> {
        ask!(self, |db| find(db, &self.shape, &which, limit))
    }

    async fn tally(&self, now: Timestamp) -> Result<Vec<Tally>, StoreError> {
        ask!(self, |db| tally(db, &self.shape, now))
    }

    async fn examine(&self, now: Timestamp) -> Result<Examined, StoreError> {
        ask!(self, |db| examine(db, &self.shape, now))
    }

    async fn mail(&self, id: Option<String>) -> Result<Option<Fields>, StoreError> {
        let asked = ask!(self, |db| mail(db, &self.shape, id.as_deref()));
        // The question may be at fault, too, but not for a row that can't be.
        let Some(id) = id.filter(|_| matches!(asked, Err(StoreError::Unfit(_)))) else { return asked };
        // In a call of its own: behind a pooler the first one was a transaction, which has failed.
        let is_there = ask!(self, |db| is_there(db, &self.shape, &id))?;
        if is_there { asked } else { Ok(None) }
    }

    fn is_id(&self, text: &str) -> bool {
        self.shape.is_id(text)
    }

    fn has_number_ids(&self) -> bool {
        self.shape.has_number_ids()
    }
}

/// Milliseconds as the statements take times.
fn micros(at: Timestamp) -> Micros {
    at.as_ms().saturating_mul(1_000)
}

async fn claim(db: &Client, shape: &Shape, due: Due) -> Result<Vec<Row>, Fault> {
    read(ask_for_due(db, &shape.fill(include_str!("sql/claim.sql")), due).await?)
}

async fn plan_of_claim(db: &Client, shape: &Shape, due: Due) -> Result<String, Fault> {
    let sql = format!("EXPLAIN {}", shape.fill(include_str!("sql/claim.sql")));
    let lines: Vec<String> =
        ask_for_due(db, &sql, due).await?.iter().map(|line| get(line, 0)).collect::<Result<_, _>>()?;
    Ok(lines.join("\n"))
}

async fn ask_for_due(db: &Client, sql: &str, due: Due) -> Result<Vec<Found>, SqlError> {
    let lease_us = i64::try_from(due.lease.as_micros()).unwrap_or(i64::MAX);
    let params = [
        (&micros(due.by) as _, Type::INT8),
        (&micros(due.now) as _, Type::INT8),
        (&i64::from(due.attempts_max) as _, Type::INT8),
        (&limit(due.limit) as _, Type::INT8),
        (&lease_us as _, Type::INT8),
    ];
    db.query_typed(sql, &params).await
}

async fn next_due_at(db: &Client, shape: &Shape, attempts_max: u32) -> Result<Option<Timestamp>, Fault> {
    let params = [(&i64::from(attempts_max) as _, Type::INT8)];
    let found = db.query_typed_opt(&shape.fill(include_str!("sql/next_due.sql")), &params).await?;
    found.map(|row| Ok(Timestamp::from_ms(get::<Micros>(&row, 0)?.div_euclid(1_000)))).transpose()
}

async fn rewrite(
    db: &mut Line<'_>,
    shape: &Shape,
    ids: &[String],
    judge: &Judge,
) -> Result<Vec<Applied>, Fault> {
    let transaction = db.begin().await?;
    let params = [(&ids as _, Type::TEXT_ARRAY)];
    let locked = transaction.query_typed(&shape.fill(include_str!("sql/lock.sql")), &params).await;
    let rows = read(found(shape, ids, locked)?)?;
    let judged = judge(&rows);
    if !judged.rewrites.is_empty() {
        let written = write(transaction.client(), shape, &judged.rewrites).await?;
        if written != judged.rewrites.len() as u64 {
            return Err(Fault::Odd("a row changed under its lock".to_owned()));
        }
    }
    transaction.commit().await?;
    Ok(judged.answers)
}

async fn write(db: &Client, shape: &Shape, rewrites: &[Rewrite]) -> Result<u64, Fault> {
    macro_rules! column {
        ($side:ident, $field:ident) => {
            rewrites.iter().map(|rewrite| rewrite.$side.$field.clone()).collect::<Vec<_>>()
        };
    }
    let without_nul = |texts: Vec<Option<String>>| -> Vec<Option<String>> {
        texts.into_iter().map(|text| text.map(|text| text.replace('\0', ""))).collect()
    };
    let params = [
        (&column!(was, id) as _, Type::TEXT_ARRAY),
        (&column!(was, status) as _, Type::TEXT_ARRAY),
        (&column!(was, locked_until) as _, Type::INT8_ARRAY),
        (&column!(now, status) as _, Type::TEXT_ARRAY),
        (&column!(now, attempts) as _, Type::INT8_ARRAY),
        (&column!(now, next_attempt_at) as _, Type::INT8_ARRAY),
        (&column!(now, locked_until) as _, Type::INT8_ARRAY),
        (&without_nul(column!(now, last_error)) as _, Type::TEXT_ARRAY),
        (&without_nul(column!(now, dead_reason)) as _, Type::TEXT_ARRAY),
        (&column!(now, last_queued_at) as _, Type::INT8_ARRAY),
    ];
    Ok(db.execute_typed(&shape.fill(include_str!("sql/rewrite.sql")), &params).await?)
}

async fn find(db: &Client, shape: &Shape, which: &Which, most: usize) -> Result<Vec<Row>, Fault> {
    let most = limit(most);
    let rows = match which {
        Which::Ids(ids) => {
            let params = [(ids as _, Type::TEXT_ARRAY), (&most as _, Type::INT8)];
            let asked = db.query_typed(&shape.fill(include_str!("sql/by_id.sql")), &params).await;
            found(shape, ids, asked)?
        }
        Which::Lapsed(now) => {
            let params = [(&micros(*now) as _, Type::INT8), (&most as _, Type::INT8)];
            db.query_typed(&shape.fill(include_str!("sql/lapsed.sql")), &params).await?
        }
        Which::Overdue(by, now) => {
            let params =
                [(&micros(*by) as _, Type::INT8), (&micros(*now) as _, Type::INT8), (&most as _, Type::INT8)];
            db.query_typed(&shape.fill(include_str!("sql/overdue.sql")), &params).await?
        }
        Which::Spent(attempts_max) => {
            let params = [(&i64::from(*attempts_max) as _, Type::INT8), (&most as _, Type::INT8)];
            db.query_typed(&shape.fill(include_str!("sql/spent.sql")), &params).await?
        }
        Which::Timeless => {
            let params = [(&most as _, Type::INT8)];
            db.query_typed(&shape.fill(include_str!("sql/timeless.sql")), &params).await?
        }
        Which::Page(page) => {
            let params = [(&page.words as _, Type::TEXT_ARRAY), (&most as _, Type::INT8)];
            let sql = shape.fill_with(include_str!("sql/page.sql"), &[("asked", asked(shape, page))]);
            db.query_typed(&sql, &params).await?
        }
    };
    read(rows)
}

/// The rows of these ids. Where one alone was asked for that its column may not have, there is none.
fn found(shape: &Shape, ids: &[String], asked: Result<Vec<Found>, SqlError>) -> Result<Vec<Found>, Fault> {
    match asked {
        // Where the id is known to be one, something else is wrong with the row.
        Err(error) if !shape.knows_ids() && is_of_a_type(&error) && ids.len() == 1 => Ok(Vec::new()),
        asked => Ok(asked?),
    }
}

async fn is_there(db: &Client, shape: &Shape, id: &str) -> Result<bool, Fault> {
    Ok(!find(db, shape, &Which::Ids(vec![id.to_owned()]), 1).await?.is_empty())
}

/// What a page is asked for besides its words.
fn asked(shape: &Shape, page: &Page) -> String {
    let columns = &shape.mapping.columns;
    let mut asked = String::new();
    if let Some(key) = &page.key {
        let is = columns.key.as_deref().map(|name| {
            format!("{}::text = {}", crate::mapping::quoted(name), literal(&key.replace('\0', "")))
        });
        asked.push_str(&format!(" AND {}", is.unwrap_or_else(|| "false".to_owned())));
    }
    if let Some(id) = &page.after {
        let values = [("after", literal(id))];
        asked.push_str(&shape.fill_with(" AND {id} < {after}::{id_type}", &values));
    }
    if let Some((at, is_due)) = page.due {
        let compared = if is_due { "<=" } else { ">" };
        let at = shape.time(&columns.next_attempt_at, &micros(at).to_string());
        asked.push_str(&shape.fill(&format!(" AND {{next_attempt_at}} {compared} {at}")));
    }
    if let Some(tried) = page.tried {
        let compared = if tried { ">" } else { "<=" };
        asked.push_str(&shape.fill(&format!(" AND {{attempts}} {compared} 0")));
    }
    asked
}

async fn tally(db: &Client, shape: &Shape, now: Timestamp) -> Result<Vec<Tally>, Fault> {
    let params = [(&micros(now) as _, Type::INT8)];
    let mut tallies = Vec::new();
    for row in db.query_typed(&shape.fill(include_str!("sql/tally.sql")), &params).await? {
        let (status, count, due): (String, i64, i64) = (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?);
        if status == shape.mapping.words.dead && shape.mapping.columns.dead_reason.is_some() {
            for row in db.query_typed(&shape.fill(include_str!("sql/dead.sql")), &[]).await? {
                let dead_reason = get::<Option<String>>(&row, 0)?;
                let count = get::<i64>(&row, 1)? as u64;
                tallies.push(Tally { status: status.clone(), dead_reason, count, ..Tally::default() });
            }
            continue;
        }
        let is_pending = status == shape.mapping.words.pending;
        let old = if is_pending { old(db, shape, now).await? } else { Old::default() };
        tallies.push(Tally { status, dead_reason: None, count: count as u64, due: due as u64, old });
    }
    Ok(tallies)
}

async fn old(db: &Client, shape: &Shape, now: Timestamp) -> Result<Old, Fault> {
    const HOUR_US: i64 = 3_600 * 1_000_000;
    let queued_at = shape.mapping.columns.last_queued_at.as_ref();
    let queued_at = queued_at.unwrap_or(&shape.mapping.columns.next_attempt_at);
    let ago = |hours: i64| shape.time(queued_at, &(micros(now) - hours * HOUR_US).to_string());
    let sql = shape.fill_with(
        include_str!("sql/old.sql"),
        &[
            ("queued_at", crate::mapping::quoted(queued_at)),
            ("hour_ago", ago(1)),
            ("day_ago", ago(24)),
            ("week_ago", ago(7 * 24)),
        ],
    );
    let row = db.query_typed_one(&sql, &[]).await?;
    let count = |column| Ok::<u64, Fault>(get::<i64>(&row, column)? as u64);
    Ok(Old { than: [count(0)?, count(1)?, count(2)?], since_unknown: count(3)? })
}

async fn examine(db: &Client, shape: &Shape, now: Timestamp) -> Result<Examined, Fault> {
    let sql = shape.fill(include_str!("sql/examine.sql"));
    let row = db.query_typed_one(&sql, &[]).await?;
    let count = |column| Ok::<u64, Fault>(get::<i64>(&row, column)? as u64);
    Ok(Examined {
        tallies: tally(db, shape, now).await?,
        timeless: count(0)?,
        negative: count(1)?,
        lockless: count(2)?,
        untimely: count(3)?,
    })
}

fn read(rows: Vec<Found>) -> Result<Vec<Row>, Fault> {
    let row = |row: &Found| {
        Ok(Row {
            id: get(row, 0)?,
            key: get(row, 1)?,
            status: get(row, 2)?,
            attempts: get(row, 3)?,
            next_attempt_at: get(row, 4)?,
            locked_until: get(row, 5)?,
            last_error: get(row, 6)?,
            dead_reason: get(row, 7)?,
            last_queued_at: get(row, 8)?,
            created_at: get(row, 9)?,
        })
    };
    rows.iter().map(row).collect()
}

async fn mail(db: &Client, shape: &Shape, id: Option<&str>) -> Result<Option<Fields>, Fault> {
    let question = shape.mapping.mail_question(&shape.fill("$1::text::{id_type}")).map_err(Fault::Unfit)?;
    let sql = filled(include_str!("sql/mail.sql"), &[("mail", question)]);
    let asked = db.query_typed_opt(&sql, &[(&id as _, Type::TEXT)]).await?;
    let Some(row) = asked else { return Ok(None) };
    let found: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&get::<String>(&row, 0)?).map_err(|wrong| Fault::Odd(wrong.to_string()))?;
    let text = |value: serde_json::Value| match value {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text),
        other => Some(other.to_string()),
    };
    Ok(Some(found.into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect()))
}
