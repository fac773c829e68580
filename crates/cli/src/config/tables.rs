//! `[tables.NAME]`: applications' own tables, whose rows a route carries.

use std::collections::BTreeMap;
use std::time::Duration;

use redeliver_core::route::send_timeout_for;
use redeliver_core::{Name, Route};
use redeliver_stores::mails::{MailColumns, MailSource, check_query};
use redeliver_stores::mapping::{Columns, Mapping, TableName, Times, Words, check_identifier, check_word};

use super::reader::{Located, Reader};
use super::routes::cut;
use super::source::{Node, Value};
use super::store::StoreUrl;
use super::transports::TransportConfig;
use super::value::{DAY, SECOND};

/// An application's table: where it is, and what its columns and words mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableConfig {
    /// The database; without one, that of the store.
    pub url: Option<StoreUrl>,
    /// The table.
    pub table: TableName,
    /// Whose its rows are.
    pub workspace: Name,
    /// The zone of times that are written without one.
    pub zone: String,
    /// How times are written where the database has no type for them.
    pub times: Times,
    /// How often it is looked at.
    pub retry_interval: Duration,
    /// What its columns are called.
    pub columns: Columns,
    /// Its words for where a row stands.
    pub words: Words,
    /// Where its mails are, and how a sender sends them.
    pub mail: MailConfig,
}

/// What a sender (`redeliver serve --role sender`) has to know of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailConfig {
    /// Where the mails are, if anybody says so.
    pub source: Option<MailSource>,
    /// The transport that sends them.
    pub transport: Name,
    /// Mails that are sent at once.
    pub concurrency_max: u16,
    /// How long a row is locked for one sender.
    pub lease: Duration,
    /// How long a sending may take.
    pub send_timeout: Duration,
}

impl Default for MailConfig {
    fn default() -> Self {
        Self {
            source: None,
            transport: "smtp".into(),
            concurrency_max: 8,
            lease: Duration::from_secs(765),
            send_timeout: Duration::from_secs(705),
        }
    }
}

impl Default for TableConfig {
    fn default() -> Self {
        let table = TableName { schema: None, table: "EmailLog".to_owned() };
        let Mapping { workspace, zone, times, retry_interval, columns, words, table, .. } =
            Mapping::new("", "", table);
        let mail = MailConfig::default();
        Self { url: None, table, workspace, zone, times, retry_interval, columns, words, mail }
    }
}

impl TableConfig {
    /// The table as the route's store.
    pub fn mapping(&self, name: &Name, route: &Route) -> Mapping {
        Mapping {
            name: name.clone(),
            route: route.name.clone(),
            workspace: self.workspace.clone(),
            table: self.table.clone(),
            columns: self.columns.clone(),
            words: self.words.clone(),
            zone: self.zone.clone(),
            times: self.times,
            retry_interval: self.retry_interval,
            attempts_max: route.travel(redeliver_core::Lane::Medium).policy.max_attempts,
            report_within: route.report_within,
            mail: self.mail.source.clone(),
        }
    }
}

/// What sends mails, by its name.
type Transports = BTreeMap<Name, Located<TransportConfig>>;

/// How much longer a row is locked than its send may take, unless the config says otherwise.
const LOCK_SLACK: Duration = Duration::from_secs(60);

pub(super) fn read(reader: &Reader<'_>, transports: &Transports) -> TableConfig {
    let default = TableConfig::default();
    let config = TableConfig {
        url: reader.get("url", default.url, |node| match node.text()?.as_str() {
            "" => Ok(None),
            _ => node.parsed(StoreUrl::parse).map(Some),
        }),
        table: reader.get("table", default.table, |node| node.parsed(TableName::parse)),
        workspace: reader.get("workspace", default.workspace, |node| Ok(node.text()?.into())),
        zone: reader.get("zone", default.zone, |node| node.parsed(zone)),
        times: reader.get("times", default.times, |node| {
            node.word(&[("text", Times::Text), ("iso", Times::Iso), ("ms", Times::Ms)])
        }),
        retry_interval: reader.get("retry_interval", default.retry_interval, interval),
        columns: reader.section("columns", |reader| columns(reader, default.columns)),
        words: reader.section("words", |reader| words(reader, default.words)),
        mail: reader.section("mail", |reader| mail(reader, default.mail, transports)),
    };
    if config.url == Some(StoreUrl::Memory) {
        reader.findings().error(reader.place_of("url"), "a table is in a database, not in memory:");
    }
    let mut all = config.words.all();
    all.sort_unstable();
    if all.windows(2).any(|two| two[0] == two[1]) {
        reader.findings().error(reader.place_of("words"), "two words for different things are the same");
    }
    config
}

fn columns(reader: &Reader<'_>, default: Columns) -> Columns {
    let name = |key, default| reader.get(key, default, |node: &Node| node.parsed(identifier));
    let optional = |key, default| reader.get(key, default, column);
    Columns {
        id: name("id", default.id),
        key: optional("key", default.key),
        status: name("status", default.status),
        attempts: name("attempts", default.attempts),
        next_attempt_at: name("next_attempt_at", default.next_attempt_at),
        locked_until: name("locked_until", default.locked_until),
        last_error: optional("last_error", default.last_error),
        dead_reason: optional("dead_reason", default.dead_reason),
        last_queued_at: optional("last_queued_at", default.last_queued_at),
        created_at: optional("created_at", default.created_at),
    }
}

fn mail(reader: &Reader<'_>, default: MailConfig, transports: &Transports) -> MailConfig {
    let named = |key| reader.get(key, None, column);
    let columns = MailColumns {
        to: named("to").unwrap_or_default(),
        to_name: named("to_name"),
        from: named("from"),
        subject: named("subject"),
        text: named("text"),
        html: named("html"),
    };
    let query = reader.get("query", None, |node| match node.text()?.as_str() {
        "" => Ok(None),
        _ => node.parsed(|text| check_query(text).map(str::to_owned)).map(Some),
    });
    let source = match (query, columns) {
        (None, columns) if columns == MailColumns::default() => None,
        (Some(query), columns) if columns == MailColumns::default() => Some(MailSource::Query(query)),
        (Some(_), _) => {
            let wrong = "a mail is in columns or found by a query, not both";
            reader.findings().error(reader.place_of("query"), wrong);
            None
        }
        (None, columns) => {
            if columns.to.is_empty() {
                reader.findings().error(reader.place(), "a mail needs to, the column of its address");
            }
            if columns.text.is_none() && columns.html.is_none() {
                reader.findings().error(reader.place(), "a mail needs text or html, the column of its words");
            }
            Some(MailSource::Columns(columns))
        }
    };
    let transport: Name = reader.get("transport", default.transport, |node| Ok(node.text()?.into()));
    let sends_by = transports.get(&transport).map(|found| &found.value);
    let patience = sends_by.map_or(default.send_timeout, |config| send_timeout_for(&config.timeouts()));
    let send_timeout = reader.get("send_timeout", patience, |node| node.span(SECOND..=DAY));
    let config = MailConfig {
        source,
        concurrency_max: reader.get("concurrency_max", default.concurrency_max, |node| {
            Ok(u16::try_from(node.count(1..=1_000)?).unwrap_or(u16::MAX))
        }),
        lease: reader
            .get("lease", default.lease.max(send_timeout + LOCK_SLACK), |node| node.span(SECOND..=DAY)),
        send_timeout,
        transport,
    };
    if config.lease <= config.send_timeout {
        let wrong = "lease must be longer than send_timeout: another sender takes the mail when it is over";
        reader.findings().error(reader.place_of("lease"), wrong);
    }
    if let Some(sends_by) = sends_by
        && config.source.is_some()
        && let Some(wrong) = cut(config.send_timeout, reader.path(), &config.transport, sends_by)
    {
        reader.findings().error(reader.place_of("send_timeout"), wrong);
    }
    config
}

/// The name of a column, or none.
fn column(node: &Node) -> Result<Option<String>, String> {
    match node.text()?.as_str() {
        "" => Ok(None),
        _ => node.parsed(identifier).map(Some),
    }
}

fn words(reader: &Reader<'_>, default: Words) -> Words {
    let word = |text: &str| check_word(text).map(str::to_owned);
    let said = |key, default| reader.get(key, default, |node: &Node| node.parsed(word));
    let optional = |key, default| {
        reader.get(key, default, |node: &Node| match node.text()?.as_str() {
            "" => Ok(None),
            _ => node.parsed(word).map(Some),
        })
    };
    Words {
        pending: said("pending", default.pending),
        failed: said("failed", default.failed),
        retry_queued: said("retry_queued", default.retry_queued),
        sent: said("sent", default.sent),
        dead: said("dead", default.dead),
        dismissed: optional("dismissed", default.dismissed),
        cancelled: optional("cancelled", default.cancelled),
    }
}

fn identifier(text: &str) -> Result<String, String> {
    check_identifier(text).map(str::to_owned)
}

/// The name of a zone, as far as it can be told without asking anybody.
fn zone(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+');
    match !text.is_empty() && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err(format!("not the name of a zone such as Europe/Paris: {text:?}")),
    }
}

/// A span; a bare number from the environment is in seconds, as `RetryIntervalSeconds` says.
fn interval(node: &Node) -> Result<Duration, String> {
    match &node.value {
        Value::Bare(text) if text.trim().parse::<u32>().is_ok() => {
            let value = Value::Bare(format!("{}s", text.trim()));
            Node { place: node.place.clone(), value }.span(SECOND..=DAY)
        }
        _ => node.span(SECOND..=DAY),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::config::{Loaded, Sources, load};

    fn loaded(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let file = Some(("f".into(), text.to_owned()));
        let sources = Sources { file, variables: variables.collect(), ..Sources::default() };
        load(&sources).map_err(|wrong| format!("{wrong:?}"))
    }

    const ROWS: &str = "[tables.email-log]\n[transports.t]\nkind = 'scripted'\n\
                        [policies.email-log]\nbackoff = ['1m']\nmax_attempts = 8\n\
                        [routes.email-log]\ntransport = 't'\npolicy = 'email-log'\ntable = 'email-log'\n";

    #[test]
    fn the_documents_names_are_taken_from_the_environment() {
        let said =
            [("RetryIntervalSeconds", "30"), ("MaxAttempts", "5"), ("BackoffSchedule", "1m, 5m, 15m,1h")];
        let config = loaded(ROWS, &said).unwrap().config;
        assert_eq!(config.tables["email-log"].retry_interval, Duration::from_secs(30));
        let policy = &config.policies["email-log"];
        assert_eq!(policy.max_attempts, 5);
        assert_eq!(policy.timetable(5).len(), 4);
        let route = &config.routes["email-log"].route;
        assert_eq!(config.tables["email-log"].mapping(&"email-log".into(), route).attempts_max, 5);
        assert!(loaded("", &said).is_ok(), "without the table, they are somebody else's");
    }

    #[test]
    fn a_table_that_cannot_be_meant_is_refused() {
        for (line, word) in [
            ("table = 'a.b.c'", "SCHEMA.TABLE"),
            ("zone = 'Paris; --'", "zone"),
            ("url = 'memory:'", "memory"),
            ("retry_interval = '0s'", "between"),
            ("words = { failed = 'Dead' }", "the same"),
            ("words = { failed = '' }", "failed"),
            ("columns = { id = '' }", "id"),
            ("colums = {}", "columns"),
            ("mail = { text = 'Body' }", "needs to"),
            ("mail = { to = 'To' }", "text or html"),
            ("mail = { to = 'To', text = 'Body', query = 'SELECT :id' }", "not both"),
            ("mail = { query = 'SELECT 1' }", ":id"),
            ("mail = { lease = '10s', send_timeout = '10s' }", "longer"),
        ] {
            let wrong = loaded(&ROWS.replacen('\n', &format!("\n{line}\n"), 1), &[]).unwrap_err();
            assert!(wrong.contains(word), "{line}: {wrong}");
        }
        let no_time =
            ROWS.replacen('\n', "\ncolumns = { last_queued_at = '' }\n", 1) + "report_within = '1h'\n";
        assert!(loaded(&no_time, &[]).unwrap_err().contains("needs last_queued_at"));
        assert!(loaded(&format!("{ROWS}report_within = '1h'\n"), &[]).is_ok());
        let expires = ROWS.replace("max_attempts = 8", "max_attempts = 8\nexpires_after = '1h'");
        assert!(loaded(&expires, &[]).unwrap_err().contains("never expire"));
        let twice =
            format!("{ROWS}[routes.other]\ntransport = 't'\npolicy = 'email-log'\ntable = 'email-log'\n");
        assert!(loaded(&twice, &[]).unwrap_err().contains("two routes"));
        let none = ROWS.replace("table = 'email-log'", "table = 'email-lag'");
        assert!(loaded(&none, &[]).unwrap_err().contains("did you mean"));
    }
}
