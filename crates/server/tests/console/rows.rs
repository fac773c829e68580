//! Rows of an application's own table, in the console beside everything else.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use redeliver_core::accept::NewMessage;
use redeliver_core::change::Audit;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Name, Policy, Route, Timestamp};
use redeliver_engine::access::{Access, Role};
use redeliver_engine::clock::WallClock;
use redeliver_engine::emit::Silence;
use redeliver_engine::intake::Sink;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::transport::Transport;
use redeliver_engine::{Engine, Line, Settings};
use redeliver_server::auth::secret::NewKey;
use redeliver_server::limits::Limits;
use redeliver_server::metrics::Metrics;
use redeliver_server::{Durability, Server, router};
use redeliver_stores::mapping::{Mapping, TableName, Words};
use redeliver_stores::sqlite::table::SqliteTable;
use redeliver_stores::table::{Beside, TableStore};
use redeliver_stores::{OpenOptions, Sqlite};

use crate::reader::Reader;
use crate::stage::{Relay, TRIES_MAX, mail};

/// Two rows that are dead, of the same error, and one that waits.
const ROWS: &str = r#"INSERT INTO "EmailLog" ("EmailId", "MessageKey", "Status", "AttemptCount", "NextAttemptAt", "LastError", "DeadReason") VALUES
(17, 'invoice-17', 'Dead', 8, NULL, '550 5.1.1 no such user', 'MaxAttemptsExceeded'),
(18, 'invoice-18', 'Dead', 8, NULL, '550 5.1.1 no such user', 'MaxAttemptsExceeded'),
(19, 'invoice-19', 'Failed', 1, '2099-01-01 00:00:00.000000', '451 4.3.2 later', NULL)"#;

/// A server whose route `mail` carries the rows of a table, and `email` our own messages.
struct Desk {
    engine: Arc<Engine>,
    reader: Reader,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Desk {
    /// An operator before a table that has this word for rows that were put away, if any.
    async fn open(dismissed: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("app.db");
        let words = Words { dismissed: dismissed.map(str::to_owned), ..Words::default() };
        let mapping = Mapping { words, ..Mapping::new("log", "mail", TableName::parse("EmailLog").unwrap()) };
        let own = Arc::new(Sqlite::open(&path, OpenOptions::default()).unwrap());
        let db = rusqlite::Connection::open(&path).unwrap();
        db.busy_timeout(Duration::from_secs(30)).unwrap();
        db.execute_batch(&SqliteTable::ddl(&mapping)).unwrap();
        db.execute_batch(ROWS).unwrap();
        let rows = Arc::new(SqliteTable::open(&path, mapping.clone()).unwrap());
        let table = TableStore::new(mapping, rows, own.clone(), own.clone());
        let policy = Policy {
            backoff: Backoff::Table(vec![Duration::from_secs(1_800)]),
            jitter: Jitter::None,
            max_attempts: TRIES_MAX,
            expires_after: None,
        };
        let relay = Arc::new(Relay { takes_mails: true }) as Arc<dyn Transport>;
        let transports = [("relay".into(), relay)].into();
        let line = |name: &str, table: Option<Name>| {
            let route = Route { table, ..Route::new(name, "relay", policy.clone()) };
            Line::new(route, &transports, Vec::new()).unwrap()
        };
        let lines = vec![line("email", None), line("mail", Some("log".into()))];
        let store = Arc::new(Beside::new(own.clone(), vec![table]));
        let clock = WallClock::new(Timestamp::default());
        let engine = Arc::new(Engine::new(store, clock, Arc::new(Silence), Settings::default(), lines));
        let server = Server::new(
            engine.clone(),
            own.clone(),
            None,
            Durability::Full,
            Limits::default(),
            Metrics::default(),
        );
        let router = router(server);
        let at = engine.clock().now();
        let key = NewKey::make("ada", Role::Operator, None, at).unwrap();
        let audit =
            Audit { actor: "stage".into(), action: "create_key", subject: "ada".into(), at, detail: None };
        assert!(own.add_key(key.record.clone(), audit).await.unwrap());
        let mut reader = Reader::new(&router);
        assert_eq!(reader.log_in(&key.text).await.location(), "/admin");
        Self { engine, reader, path, _directory: directory }
    }

    /// The status of a row, as the application reads it.
    fn status(&self, id: u32) -> String {
        let db = rusqlite::Connection::open(&self.path).unwrap();
        let sql = "SELECT \"Status\" FROM \"EmailLog\" WHERE \"EmailId\" = ?1";
        db.query_row(sql, [id], |row| row.get(0)).unwrap()
    }

    /// Does the bulk operations that were begun, until a row has this status.
    async fn work_until(&self, id: u32, status: &str) {
        let (stopper, stop) = stop_pair();
        let working = tokio::spawn(Arc::clone(&self.engine).bulks(stop));
        let seen = async {
            while self.status(id) != status {
                self.engine.clock().sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), seen).await.unwrap();
        stopper.stop();
        working.await.unwrap();
    }
}

fn page_of(id: u32) -> String {
    format!("/admin/messages/log%3A{id}")
}

#[tokio::test]
async fn rows_are_listed_under_their_route_and_shown_beside_everything_else() {
    let mut desk = Desk::open(None).await;
    desk.engine.accept(vec![NewMessage { attempts: TRIES_MAX, ..mail("Invoice") }]).await.unwrap();
    let of = async |desk: &mut Desk, asked: &str| {
        let page = desk.reader.get(&format!("/admin/messages{asked}")).await;
        let has = |id| page.says(&format!("href=\"{}\"", page_of(id)));
        ([17, 18, 19].map(has), page.says(">Invoice<"))
    };
    assert_eq!(of(&mut desk, "").await, ([true; 3], true), "beside our own");
    assert_eq!(of(&mut desk, "?route=mail").await, ([true; 3], false));
    assert_eq!(of(&mut desk, "?route=email").await, ([false; 3], true));
    assert_eq!(of(&mut desk, "?route=mail&status=dead").await, ([true, true, false], false));
    assert_eq!(of(&mut desk, "?status=dead").await, ([true, true, false], true));
    let row = desk.reader.get(&page_of(17)).await;
    for said in
        ["invoice-17", "log:17", "mail, medium priority", "550 5.1.1 no such user", ">Retry now</button>"]
    {
        assert!(row.says(said), "{said}: {}", row.body);
    }
    assert!(!row.says("/edit\""), "what the application wrote is for the application to correct");
    let waits = desk.reader.get(&page_of(19)).await;
    assert!(waits.says("451 4.3.2 later") && waits.says("2099-01-01"), "{}", waits.body);
}

#[tokio::test]
async fn a_row_that_is_retried_starts_over_in_its_table_and_that_is_said_and_leads_to_it() {
    let mut desk = Desk::open(None).await;
    let page = page_of(17);
    let answer = desk.reader.press(&page, &format!("{page}/retry"), "message").await;
    assert_eq!((answer.status, answer.location()), (StatusCode::SEE_OTHER, page.as_str()));
    assert_eq!((desk.status(17), desk.status(18)), ("Failed".to_owned(), "Dead".to_owned()));
    let link = format!("<a href=\"{page}\">See the message</a>");
    let seen = desk.reader.get("/admin/messages").await;
    assert!(seen.says("Retried: the message is due now") && seen.says(&link), "{}", seen.body);
    assert!(!desk.reader.get("/admin/messages").await.says("Retried: the message is due now"), "once");
    let audit = desk.reader.get("/admin/audit").await;
    assert!(audit.says(&format!("href=\"{page}\">log:17</a>")), "{}", audit.body);
}

#[tokio::test]
async fn a_row_is_put_away_and_brought_back_where_its_table_has_a_word_for_that() {
    let mut desk = Desk::open(Some("Archived")).await;
    let page = page_of(17);
    desk.reader.press(&page, &format!("{page}/dismiss"), "message").await;
    assert_eq!(desk.status(17), "Archived");
    assert!(desk.reader.get("/admin").await.says("Dismissed: the message left"));
    let dead = desk.reader.get("/admin/messages?status=dead").await;
    assert!(!dead.says(&page) && dead.says(&page_of(18)), "{}", dead.body);
    desk.reader.press(&page, &format!("{page}/restore"), "message").await;
    assert_eq!(desk.status(17), "Dead");
    assert!(desk.reader.get("/admin").await.says("Restored"));
    // Where there is no such word, the row stays as it is, and whoever asked is told what is missing.
    let mut desk = Desk::open(None).await;
    let refused = desk.reader.press(&page, &format!("{page}/dismiss"), "message").await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.says("tables.log.words.dismissed"), "{}", refused.body);
    assert_eq!(desk.status(17), "Dead");
}

#[tokio::test]
async fn dead_rows_are_a_group_of_their_error_and_are_retried_all_at_once() {
    let mut desk = Desk::open(None).await;
    let groups = desk.reader.get("/admin/dead-letters").await;
    assert!(groups.says("no such user") && groups.says("class=\"tries\"><b>2</b>"), "{}", groups.body);
    let fingerprint = groups.body.split_once("name=\"fingerprint\" value=\"").unwrap().1;
    let fingerprint = fingerprint.split_once('"').unwrap().0;
    let csrf = groups.csrf();
    let asked = [("csrf", csrf.as_str()), ("action", "retry"), ("all", "yes"), ("status", "dead")];
    let asked = [&asked[..], &[("fingerprint", fingerprint)]].concat();
    let plan = desk.reader.post("/admin/bulk", &asked).await;
    assert!(plan.says("id=\"count\">2<"), "{}", plan.body);
    let begun = desk.reader.post("/admin/bulk", &[&asked[..], &[("sure", "yes")]].concat()).await;
    assert_eq!(begun.status, StatusCode::SEE_OTHER, "{}", begun.body);
    desk.work_until(17, "Failed").await;
    desk.work_until(18, "Failed").await;
    let groups = desk.reader.get("/admin/dead-letters").await;
    assert!(groups.says("No dead messages"), "{}", groups.body);
    // And by their names.
    let mut desk = Desk::open(None).await;
    let csrf = desk.reader.get("/admin/messages").await.csrf();
    let chosen = [("csrf", csrf.as_str()), ("action", "retry"), ("id", "log:17"), ("sure", "yes")];
    let begun = desk.reader.post("/admin/bulk", &chosen).await;
    assert_eq!(begun.status, StatusCode::SEE_OTHER, "{}", begun.body);
    desk.work_until(17, "Failed").await;
    assert_eq!(desk.status(18), "Dead");
}
