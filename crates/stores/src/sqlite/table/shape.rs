//! What a table in SQLite looks like: what its columns are, and how its statements and values are written.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row as Found};

use super::super::errors::Fault;
use crate::adopted::{COLUMNS, Micros, Row};
use crate::mapping::{Mapping, Times, Types, filled, literal, quoted};

/// What `init` makes columns of.
pub(super) fn types(times: Times) -> Types {
    let time = match times {
        Times::Text | Times::Iso => "TEXT",
        Times::Ms => "INTEGER",
    };
    Types { id: "INTEGER PRIMARY KEY", text: "TEXT", time, has_schemas: false }
}

/// A table that was looked at, and the blanks of its statements.
pub(super) struct Shape {
    pub(super) mapping: Mapping,
    /// Whether ids are numbers.
    has_numbers: bool,
    /// Whether ids are texts, whatever they look like.
    has_texts: bool,
    zone: jiff::tz::TimeZone,
    blanks: Vec<(&'static str, String)>,
}

impl Shape {
    /// Looks at a table, and says what is missing if it can't be used.
    pub(super) fn look(db: &Connection, mapping: Mapping) -> Result<Self, Fault> {
        let table = mapping.table.quoted();
        let unfit = |why: String| Fault::Unfit(format!("table {table} cannot be used: {why}"));
        let schema = mapping.table.schema.as_deref().unwrap_or("main");
        let mut columns: Vec<(String, String, bool)> = Vec::new();
        let mut look = db.prepare(include_str!("sql/columns.sql"))?;
        let mut found = look.query([mapping.table.table.as_str(), schema])?;
        while let Some(row) = found.next()? {
            columns.push((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? > 0));
        }
        if columns.is_empty() {
            let advice = "`redeliver table init` makes it";
            return Err(Fault::Unfit(format!("there is no table {table}: {advice}")));
        }
        let c = &mapping.columns;
        let all = [
            Some(&c.id),
            c.key.as_ref(),
            Some(&c.status),
            Some(&c.attempts),
            Some(&c.next_attempt_at),
            Some(&c.locked_until),
            c.last_error.as_ref(),
            c.dead_reason.as_ref(),
            c.last_queued_at.as_ref(),
            c.created_at.as_ref(),
        ];
        let missing = |name: &&String| !columns.iter().any(|(known, ..)| known == *name);
        let missing: Vec<String> =
            all.into_iter().flatten().filter(missing).map(|name| quoted(name)).collect();
        if !missing.is_empty() {
            return Err(unfit(format!("it has no column {}", missing.join(", "))));
        }
        let indexes = indexes(db, &mapping)?;
        let is_due = |index: &(Vec<String>, bool)| {
            index.0.first() == Some(&c.status) && index.0.get(1) == Some(&c.next_attempt_at)
        };
        if !indexes.iter().any(is_due) {
            return Err(unfit(format!(
                "no index finds what is due without reading all of it; make one: {}",
                mapping.index_ddl()
            )));
        }
        let is_queued = |index: &(Vec<String>, bool)| {
            index.0.first() == Some(&c.status) && index.0.get(1) == c.last_queued_at.as_ref()
        };
        if let Some(ddl) = mapping.overdue_index_ddl()
            && !indexes.iter().any(is_queued)
        {
            return Err(unfit(format!(
                "report_within is set, and no index finds overdue rows without reading all of it; make one: {ddl}"
            )));
        }
        let keys = columns.iter().filter(|(.., is_key)| *is_key).count();
        let is_key = columns.iter().any(|(name, _, is_key)| name == &c.id && *is_key && keys == 1);
        if !is_key
            && !indexes.iter().any(|(columns, unique)| *unique && columns == std::slice::from_ref(&c.id))
        {
            return Err(unfit(format!("{} is neither its primary key nor unique", quoted(&c.id))));
        }
        let id_type = columns.iter().find(|(name, ..)| name == &c.id).map(|(_, kind, _)| kind);
        let id_type = id_type.map(|kind| kind.to_ascii_uppercase()).unwrap_or_default();
        let has_numbers = id_type.contains("INT");
        // As SQLite itself tells which columns hold texts.
        let has_texts = !has_numbers && ["CHAR", "CLOB", "TEXT"].iter().any(|word| id_type.contains(word));
        let zone = jiff::tz::TimeZone::get(&mapping.zone)
            .map_err(|_| unfit(format!("there is no zone {:?}", mapping.zone)))?;
        let blanks = blanks(&mapping);
        Ok(Self { has_numbers, has_texts, zone, blanks, mapping })
    }

    /// A statement with this table's names in its blanks.
    pub(super) fn fill(&self, template: &str) -> String {
        filled(template, &self.blanks)
    }

    /// The same with more blanks. All are filled at once: what is filled in is never looked at again.
    pub(super) fn fill_with(&self, template: &str, more: &[(&'static str, String)]) -> String {
        filled(template, &[&self.blanks, more].concat())
    }

    /// Whether this text can be the id of a row.
    pub(super) fn is_id(&self, text: &str) -> bool {
        !self.has_numbers || text.parse::<i64>().is_ok_and(|id| id.to_string() == text)
    }

    /// Whether what looks like a number among the ids is one.
    pub(super) fn has_number_ids(&self) -> bool {
        !self.has_texts
    }

    /// An id as a value.
    pub(super) fn id(&self, id: &str) -> Value {
        match id.parse() {
            Ok(number) if self.has_numbers => Value::Integer(number),
            _ => Value::Text(id.to_owned()),
        }
    }

    /// An id as a statement has it.
    pub(super) fn id_literal(&self, id: &str) -> String {
        match self.id(id) {
            Value::Integer(number) => number.to_string(),
            _ => literal(id),
        }
    }

    /// A time as a value.
    pub(super) fn time(&self, at: Micros) -> Value {
        let moment = jiff::Timestamp::from_microsecond(at).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        match self.mapping.times {
            Times::Ms => Value::Integer(at.div_euclid(1_000)),
            Times::Iso => Value::Text(moment.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()),
            Times::Text => {
                let civil = moment.to_zoned(self.zone.clone()).datetime();
                Value::Text(civil.strftime("%Y-%m-%d %H:%M:%S.%6f").to_string())
            }
        }
    }

    /// A time as a value, or nothing.
    pub(super) fn time_if_any(&self, at: Option<Micros>) -> Value {
        at.map_or(Value::Null, |at| self.time(at))
    }

    /// A time as a statement has it.
    pub(super) fn time_literal(&self, at: Micros) -> String {
        match self.time(at) {
            Value::Text(text) => literal(&text),
            Value::Integer(ms) => ms.to_string(),
            _ => "NULL".to_owned(),
        }
    }

    /// A column's time; what can't be read as one is none.
    pub(super) fn micros(&self, row: &Found<'_>, column: usize) -> Result<Option<Micros>, Fault> {
        Ok(match row.get_ref(column)? {
            ValueRef::Integer(ms) => Some(ms.saturating_mul(1_000)),
            ValueRef::Text(text) => {
                let text = String::from_utf8_lossy(text);
                let at = text.parse::<jiff::Timestamp>().ok().or_else(|| {
                    let civil: jiff::civil::DateTime = text.parse().ok()?;
                    civil.to_zoned(self.zone.clone()).ok().map(|zoned| zoned.timestamp())
                });
                at.map(jiff::Timestamp::as_microsecond)
            }
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => None,
        })
    }

    /// A row of the columns that every statement has.
    pub(super) fn row(&self, row: &Found<'_>) -> Result<Row, Fault> {
        Ok(Row {
            id: text(row, 0)?.unwrap_or_default(),
            key: text(row, 1)?,
            status: text(row, 2)?.unwrap_or_default(),
            attempts: row.get::<_, Option<i64>>(3)?.unwrap_or(0),
            next_attempt_at: self.micros(row, 4)?,
            locked_until: self.micros(row, 5)?,
            last_error: text(row, 6)?,
            dead_reason: text(row, 7)?,
            last_queued_at: self.micros(row, 8)?,
            created_at: self.micros(row, COLUMNS - 1)?,
        })
    }
}

/// A column's value as text, whatever it is.
pub(super) fn text(row: &Found<'_>, column: usize) -> Result<Option<String>, Fault> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(text) | ValueRef::Blob(text) => Some(String::from_utf8_lossy(text).into_owned()),
    })
}

/// The columns of each index that answers for every row, and whether it is unique.
fn indexes(db: &Connection, mapping: &Mapping) -> Result<Vec<(Vec<String>, bool)>, Fault> {
    let schema = mapping.table.schema.as_deref().unwrap_or("main");
    let mut list = db.prepare(include_str!("sql/indexes.sql"))?;
    let mut columns = db.prepare(include_str!("sql/index_columns.sql"))?;
    let mut found = list.query([mapping.table.table.as_str(), schema])?;
    let mut indexes = Vec::new();
    while let Some(row) = found.next()? {
        let (name, unique): (String, bool) = (row.get(0)?, row.get(1)?);
        let names =
            columns.query_map([name.as_str(), schema], |row| row.get(0))?.collect::<Result<_, _>>()?;
        indexes.push((names, unique));
    }
    Ok(indexes)
}

fn blanks(mapping: &Mapping) -> Vec<(&'static str, String)> {
    let (c, words) = (&mapping.columns, &mapping.words);
    let or_null = |name: &Option<String>| name.as_deref().map_or_else(|| "NULL".to_owned(), quoted);
    // A column holds whatever an application puts there: what is no number is none, and nobody counts further than this.
    let attempts = format!("min(CAST({} AS INTEGER), {})", quoted(&c.attempts), i32::MAX);
    let row = [
        quoted(&c.id),
        or_null(&c.key),
        quoted(&c.status),
        attempts.clone(),
        quoted(&c.next_attempt_at),
        quoted(&c.locked_until),
        or_null(&c.last_error),
        or_null(&c.dead_reason),
        or_null(&c.last_queued_at),
        or_null(&c.created_at),
    ];
    let set = [Some(&c.status), Some(&c.attempts), Some(&c.next_attempt_at), Some(&c.locked_until)];
    let optional = [c.last_error.as_ref(), c.dead_reason.as_ref(), c.last_queued_at.as_ref()];
    // The first two values of a rewriting find the row.
    let sets = set.into_iter().chain(optional).flatten().enumerate();
    let sets: Vec<String> = sets.map(|(n, name)| format!("{} = ?{}", quoted(name), n + 3)).collect();
    vec![
        ("table", mapping.table.quoted()),
        ("id", quoted(&c.id)),
        ("status", quoted(&c.status)),
        ("attempts", attempts),
        ("next_attempt_at", quoted(&c.next_attempt_at)),
        ("is_time", is_time(mapping.times, &quoted(&c.next_attempt_at))),
        ("locked_until", quoted(&c.locked_until)),
        ("last_queued_at", or_null(&c.last_queued_at)),
        ("dead_reason", or_null(&c.dead_reason)),
        ("pending", literal(&words.pending)),
        ("failed", literal(&words.failed)),
        ("retry_queued", literal(&words.retry_queued)),
        ("dead", literal(&words.dead)),
        ("row", row.join(", ")),
        ("sets", sets.join(", ")),
    ]
}

/// Whether a column that is not null holds a time as this table's are, so that the two can be compared.
fn is_time(times: Times, column: &str) -> String {
    let day = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]";
    match times {
        Times::Ms => format!("typeof({column}) = 'integer'"),
        Times::Iso => format!("typeof({column}) = 'text' AND {column} GLOB '{day}T*Z'"),
        Times::Text => format!("typeof({column}) = 'text' AND {column} GLOB '{day} *'"),
    }
}
