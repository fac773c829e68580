//! What an application's own table is called, and what its columns and words mean. Makes no statement of its own.

use std::time::Duration;

use redeliver_core::{DeadReason, Name};

use crate::mails::MailSource;

/// An application's table as a store: which columns say what, in which words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// What the config calls it; its rows are `name:id`.
    pub name: Name,
    /// The route that its rows travel.
    pub route: Name,
    /// Whose its rows are.
    pub workspace: Name,
    /// The table itself.
    pub table: TableName,
    /// Its columns.
    pub columns: Columns,
    /// Its words for where a row stands.
    pub words: Words,
    /// The zone of times that are written without one.
    pub zone: String,
    /// How times are written in a database that has no type for them.
    pub times: Times,
    /// How often it is looked at; zero is whenever somebody asks.
    pub retry_interval: Duration,
    /// Rows with as many tries are never claimed.
    pub attempts_max: u32,
    /// How long a sender has to report; after that a row that is still with it counts as lost.
    pub report_within: Option<Duration>,
    /// Where the mails are, for a sender.
    pub mail: Option<MailSource>,
}

/// A table's name, with its schema where it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// The schema.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
}

/// What the columns are called. Those that aren't there are neither read nor written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Which row it is.
    pub id: String,
    /// What the application calls the mail.
    pub key: Option<String>,
    /// Where it stands.
    pub status: String,
    /// How often it was tried.
    pub attempts: String,
    /// When it is to be tried next.
    pub next_attempt_at: String,
    /// Until when somebody has it.
    pub locked_until: String,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Why it was given up.
    pub dead_reason: Option<String>,
    /// When it was last handed to its sender.
    pub last_queued_at: Option<String>,
    /// When the application made it.
    pub created_at: Option<String>,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            id: "EmailId".to_owned(),
            key: Some("MessageKey".to_owned()),
            status: "Status".to_owned(),
            attempts: "AttemptCount".to_owned(),
            next_attempt_at: "NextAttemptAt".to_owned(),
            locked_until: "LockedUntil".to_owned(),
            last_error: Some("LastError".to_owned()),
            dead_reason: Some("DeadReason".to_owned()),
            last_queued_at: Some("LastQueuedAt".to_owned()),
            created_at: None,
        }
    }
}

/// The words for where a row stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// With its sender: never claimed.
    pub pending: String,
    /// Waits for its next try.
    pub failed: String,
    /// Claimed.
    pub retry_queued: String,
    /// The other side took it.
    pub sent: String,
    /// Given up.
    pub dead: String,
    /// Given up and put away by a person, where the application has a word for it.
    pub dismissed: Option<String>,
    /// Stopped by a person, where the application has a word for it.
    pub cancelled: Option<String>,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            pending: "Pending".to_owned(),
            failed: "Failed".to_owned(),
            retry_queued: "RetryQueued".to_owned(),
            sent: "Sent".to_owned(),
            dead: "Dead".to_owned(),
            dismissed: None,
            cancelled: None,
        }
    }
}

/// How times are written in a database that has no type for them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Times {
    /// `2026-12-01 09:00:00.000000`, in the table's zone.
    #[default]
    Text,
    /// `2026-12-01T09:00:00.000000Z`.
    Iso,
    /// Milliseconds since 1970.
    Ms,
}

impl Words {
    /// All of them that there are.
    pub fn all(&self) -> Vec<&str> {
        let words = [&self.pending, &self.failed, &self.retry_queued, &self.sent, &self.dead];
        let others = [self.dismissed.as_ref(), self.cancelled.as_ref()].into_iter().flatten();
        words.into_iter().chain(others).map(String::as_str).collect()
    }
}

impl Mapping {
    /// What a config without a word about columns means.
    pub fn new(name: impl Into<Name>, route: impl Into<Name>, table: TableName) -> Self {
        Self {
            name: name.into(),
            route: route.into(),
            workspace: "default".into(),
            table,
            columns: Columns::default(),
            words: Words::default(),
            zone: "UTC".to_owned(),
            times: Times::default(),
            retry_interval: Duration::from_secs(60),
            attempts_max: 8,
            report_within: None,
            mail: None,
        }
    }

    /// What the application calls a reason of death.
    pub fn reason_word(reason: DeadReason) -> &'static str {
        match reason {
            DeadReason::AttemptsExhausted => "MaxAttemptsExceeded",
            DeadReason::Refused => "PermanentFailure",
            DeadReason::Expired => "Expired",
            DeadReason::Uncertain => "Uncertain",
            DeadReason::Poison => "Poison",
        }
    }

    /// The reason that a word stands for. What a sender gave up in words of its own was refused.
    pub fn reason(word: Option<&str>) -> DeadReason {
        let is = |reason: &DeadReason| word == Some(Self::reason_word(*reason));
        DeadReason::ALL.into_iter().find(is).unwrap_or(DeadReason::Refused)
    }

    /// The DDL of this table for those who start fresh, with the index that it needs.
    pub fn ddl(&self, types: &Types) -> String {
        let column = |name: &str, kind: &str| format!("    {} {kind}", quoted(name));
        let c = &self.columns;
        let mut lines = vec![column(&c.id, types.id)];
        lines.extend(c.key.as_deref().map(|name| column(name, types.text)));
        lines.push(column(
            &c.status,
            &format!("{} NOT NULL DEFAULT {}", types.text, literal(&self.words.pending)),
        ));
        lines.push(column(&c.attempts, "integer NOT NULL DEFAULT 0"));
        lines.push(column(&c.next_attempt_at, types.time));
        lines.push(column(&c.locked_until, types.time));
        for (name, kind) in [
            (&c.last_error, types.text),
            (&c.dead_reason, types.text),
            (&c.last_queued_at, types.time),
            (&c.created_at, types.time),
        ] {
            lines.extend(name.as_deref().map(|name| column(name, kind)));
        }
        if let Some(MailSource::Columns(mail)) = &self.mail {
            lines.extend(mail.named().map(|(_, name)| column(name, types.text)));
        }
        let table = self.table.quoted();
        let schema = self.table.schema.as_deref().filter(|_| types.has_schemas);
        let schema = schema.map(|name| format!("CREATE SCHEMA IF NOT EXISTS {};\n", quoted(name)));
        format!(
            "{}CREATE TABLE IF NOT EXISTS {table} (\n{}\n);\n{};\n{}",
            schema.unwrap_or_default(),
            lines.join(",\n"),
            self.index_ddl(),
            self.overdue_index_ddl().map(|ddl| format!("{ddl};\n")).unwrap_or_default(),
        )
    }

    /// The question for the mail of one row, with this in the place of its id; what is missing if there is none.
    pub(crate) fn mail_question(&self, by: &str) -> Result<String, String> {
        let name = &self.name;
        let source = self.mail.as_ref();
        let source =
            source.ok_or_else(|| format!("nothing says where the mails are: set tables.{name}.mail.to"))?;
        Ok(source.question(&self.table, &self.columns.id, by))
    }

    /// The statement that makes the index that this table needs.
    pub fn index_ddl(&self) -> String {
        self.index_on(&self.columns.next_attempt_at)
    }

    /// The statement that makes the index that overdue rows are found by, if any are looked for.
    pub fn overdue_index_ddl(&self) -> Option<String> {
        self.report_within?;
        self.columns.last_queued_at.as_ref().map(|column| self.index_on(column))
    }

    fn index_on(&self, column: &str) -> String {
        let c = &self.columns;
        let name = format!("{}_{}_{column}", self.table.table, c.status);
        format!(
            "CREATE INDEX IF NOT EXISTS {} ON {} ({}, {})",
            quoted(&name),
            self.table.quoted(),
            quoted(&c.status),
            quoted(column)
        )
    }
}

/// A database's words for the types of such a table.
pub struct Types {
    /// The id's, made by the database.
    pub id: &'static str,
    /// A text's.
    pub text: &'static str,
    /// A time's.
    pub time: &'static str,
    /// Whether tables are in schemas.
    pub has_schemas: bool,
}

impl TableName {
    /// Reads `EmailLog`, `mail.EmailLog` or `"my mail"."E.Log"`. Names are taken as they are written, capitals included.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text.trim();
        loop {
            let (part, after) = match rest.strip_prefix('"') {
                Some(inner) => quoted_part(inner)?,
                None => {
                    let end = rest.find('.').unwrap_or(rest.len());
                    (rest[..end].to_owned(), &rest[end..])
                }
            };
            parts.push(check_identifier(&part)?.to_owned());
            match after.strip_prefix('.') {
                Some(more) => rest = more,
                None if after.is_empty() => break,
                None => return Err(format!("has {after:?} after a quoted name")),
            }
        }
        match (parts.pop(), parts.pop(), parts.pop()) {
            (Some(table), schema, None) => Ok(Self { schema, table }),
            _ => Err("must be TABLE or SCHEMA.TABLE".to_owned()),
        }
    }

    /// The name as a statement has it.
    pub fn quoted(&self) -> String {
        let schema = self.schema.as_deref().map(|schema| format!("{}.", quoted(schema)));
        format!("{}{}", schema.unwrap_or_default(), quoted(&self.table))
    }
}

/// A quoted name's text and what comes after it; the first quote is gone already.
fn quoted_part(inner: &str) -> Result<(String, &str), String> {
    let mut part = String::new();
    let mut rest = inner;
    loop {
        let Some(at) = rest.find('"') else { return Err("has a quote that never ends".to_owned()) };
        part.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                part.push('"');
                rest = more;
            }
            None => return Ok((part, rest)),
        }
    }
}

/// The longest name that PostgreSQL keeps whole.
const IDENTIFIER_BYTES_MAX: usize = 63;

/// Whether a name can be a column's or a table's.
pub fn check_identifier(name: &str) -> Result<&str, String> {
    if name.is_empty() || name.len() > IDENTIFIER_BYTES_MAX {
        return Err(format!("must have 1 to {IDENTIFIER_BYTES_MAX} bytes, not {}", name.len()));
    }
    if name.chars().any(char::is_control) {
        return Err("must not have control characters".to_owned());
    }
    Ok(name)
}

/// Whether a word can stand in a status column.
pub fn check_word(word: &str) -> Result<&str, String> {
    if word.is_empty() || word.chars().any(|c| c.is_control() || c == '\\') {
        return Err(format!("is no word for a status: {word:?}"));
    }
    Ok(word)
}

/// A name as a statement has it, whatever is in it.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a statement has it, whatever is in it.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A statement with its blanks filled in: `{name}` becomes the value of that name.
pub(crate) fn filled(template: &str, values: &[(&str, String)]) -> String {
    let mut sql = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        sql.push_str(before);
        let (name, more) = after.split_once('}').unwrap_or((after, ""));
        match values.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => sql.push_str(value),
            None => sql.push_str(&format!("{{{name}}}")),
        }
        rest = more;
    }
    sql.push_str(rest);
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_as_they_are_written() {
        for (text, quoted) in [
            ("EmailLog", "\"EmailLog\""),
            ("mail.EmailLog", "\"mail\".\"EmailLog\""),
            ("\"my mail\".\"E.Log\"", "\"my mail\".\"E.Log\""),
            ("\"a\"\"b\"", "\"a\"\"b\""),
            ("x\"; DROP TABLE y; --", "\"x\"\"; DROP TABLE y; --\""),
        ] {
            assert_eq!(TableName::parse(text).unwrap().quoted(), quoted, "{text}");
        }
        for text in ["", "a.b.c", "a.", "\"a", "\"a\"b", "a\nb"] {
            assert!(TableName::parse(text).is_err(), "{text}");
        }
        assert!(check_identifier(&"x".repeat(64)).is_err());
    }

    #[test]
    fn words_cannot_leave_their_quotes() {
        assert_eq!(literal("it's"), "'it''s'");
        assert!(check_word("a\\").is_err());
        assert!(check_word("a\0").is_err());
        assert!(check_word("in Bearbeitung").is_ok());
    }

    #[test]
    fn a_filled_statement_keeps_what_it_was_filled_with() {
        let values = [("id", "\"{status}\"".to_owned()), ("status", "s".to_owned())];
        assert_eq!(filled("SELECT {id}, {status}", &values), "SELECT \"{status}\", s");
    }

    #[test]
    fn every_reason_has_a_word_and_other_words_are_refusals() {
        for reason in DeadReason::ALL {
            assert_eq!(Mapping::reason(Some(Mapping::reason_word(reason))), reason);
        }
        assert_eq!(Mapping::reason(Some("Bounced")), DeadReason::Refused);
        assert_eq!(Mapping::reason(None), DeadReason::Refused);
    }
}
