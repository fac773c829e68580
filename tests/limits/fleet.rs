//! Three instances of the shipped binary on one PostgreSQL, with a route that has a rate and one that has a concurrency
//! limit.

use std::time::Duration;

use redeliver_servers::postgres::PostgresServer;
use rustix::process::Signal;
use serde_json::json;

use super::receiver::{Receiver, now};
use super::{AT_ONCE, LIMITED, RATE, SLOW, SLOW_FOR};
use crate::story::server::{Place, Server};
use crate::story::{until, until_some};

const INSTANCES: usize = 3;
/// More than the fleet can send in this many seconds.
const BACKLOG_S: usize = 110;

pub struct Fleet {
    place: Place,
    servers: Vec<Option<Server>>,
    database: PostgresServer,
}

/// A time during which an instance was stopped.
#[derive(Copy, Clone, Debug)]
pub struct Outage {
    pub from: Duration,
    pub until: Duration,
}

/// A try that did not succeed, as the store keeps it.
#[derive(Clone, Debug)]
pub struct Record {
    pub key: String,
    /// When its send started, by the clock of the database as the sender knew it.
    pub sent_at: Duration,
}

impl Fleet {
    pub fn start(limited: &Receiver, slow: &Receiver) -> Self {
        let database = PostgresServer::start();
        let place = Place::outbox(&limited.url())
            .variable("DATABASE_URL", &database.url("postgres"))
            .variable("REDELIVER_LOG__FORMAT", "json")
            .variable("REDELIVER_LOG__FILTER", "warn,redeliver_cli=info");
        let config = format!(
            r#"
[policies.once]
backoff = ["1h"]
max_attempts = 3

[routes.{LIMITED}]
transport = "smtp"
policy = "once"
lease = "10s"
rate = "{RATE}/s"

[transports.slow]
kind = "smtp"
url = "{}"

[routes.{SLOW}]
transport = "slow"
policy = "once"
lease = "10s"
destination_concurrency_max = {AT_ONCE}
"#,
            slow.url()
        );
        let path = place.path("limits.toml");
        std::fs::write(&path, config).unwrap();
        let place = place.arg("--config").arg(&path.display().to_string());
        let servers = (0..INSTANCES).map(|_| Some(place.serve())).collect();
        Self { place, servers, database }
    }

    fn server(&self, n: usize) -> &Server {
        self.servers[n].as_ref().expect("this instance runs")
    }

    fn ask(&self, sql: &str) -> String {
        self.database.say("postgres", sql)
    }

    fn count(&self, sql: &str) -> usize {
        self.ask(sql).parse().expect("it is a number")
    }

    /// Submits more mails than can be sent in time.
    pub fn accept(&self) {
        for (route, count) in
            [(LIMITED, BACKLOG_S * RATE), (SLOW, BACKLOG_S * AT_ONCE / SLOW_FOR.as_secs() as usize)]
        {
            let mail = |n: usize| {
                let key = format!("{route}-{n}");
                let email = json!({ "from": "desk@example.org", "to": format!("{key}@example.net"),
                    "subject": key, "text": "hello" });
                json!({ "route": route, "key": key, "email": email }).to_string()
            };
            let lines: Vec<String> = (0..count).map(mail).collect();
            let answer = self.server(0).post_text("/v1/messages", "application/x-ndjson", &lines.join("\n"));
            assert_eq!(answer.status, 200, "{answer:?}");
            let stored = format!("SELECT count(*) FROM redeliver.redeliver_messages WHERE route = '{route}'");
            assert_eq!(self.count(&stored), count);
        }
    }

    /// Permits that an instance holds of the concurrency limit.
    fn held(&self, n: usize) -> usize {
        let id = self.server(n).instance_id();
        self.count(&format!(
            "SELECT coalesce(sum(held), 0) FROM redeliver.redeliver_limit_shares WHERE instance = {id}"
        ))
    }

    /// The instance that holds the most permits: its death costs the most. `except` is left out.
    pub fn largest_holder(&self, except: Option<usize>) -> usize {
        until_some("an instance holds permits", || {
            let others = (0..INSTANCES).filter(|n| Some(*n) != except);
            let held: Vec<(usize, usize)> = others.map(|n| (self.held(n), n)).collect();
            println!("permits and instances: {held:?}");
            held.into_iter().max().filter(|(held, _)| *held > 0).map(|(_, n)| n)
        })
    }

    /// Kills an instance, and says how many permits it held.
    pub fn kill(&mut self, n: usize) -> usize {
        let id = self.server(n).instance_id();
        assert!(self.server(n).kill_now(), "the instance had ended by itself");
        self.servers[n] = None;
        self.count(&format!(
            "SELECT coalesce(sum(held), 0) FROM redeliver.redeliver_limit_shares WHERE instance = {id}"
        ))
    }

    pub fn restart(&mut self, n: usize) {
        self.servers[n] = Some(self.place.serve());
    }

    /// Stops an instance: when, and how many permits it held.
    pub fn stop(&self, n: usize) -> (Duration, usize) {
        self.server(n).signal(Signal::STOP);
        until("the instance stands still", || self.server(n).is_stopped());
        (now(), self.held(n))
    }

    /// Lets an instance go on that others take for dead by now.
    pub fn resume(&self, n: usize) {
        assert!(self.server(n).is_stopped(), "the instance went on too early");
        assert!(!self.is_alive(n), "the instance was not stopped for long enough");
        self.server(n).signal(Signal::CONT);
        until("the instance lives again", || self.is_alive(n));
    }

    fn is_alive(&self, n: usize) -> bool {
        let id = self.server(n).instance_id();
        let now = "floor(extract(epoch FROM clock_timestamp()) * 1000)";
        let sql = format!(
            "SELECT count(*) FROM redeliver.redeliver_instances WHERE id = {id} AND silent_at > {now}"
        );
        self.count(&sql) == 1
    }

    /// There was work on both routes until now.
    pub fn assert_backlog(&self) {
        for route in [LIMITED, SLOW] {
            let untried = self.count(&format!(
                "SELECT count(*) FROM redeliver.redeliver_messages \
                 WHERE route = '{route}' AND state = 0 AND attempts = 0"
            ));
            assert!(untried > AT_ONCE, "{route} had too little work");
        }
    }

    /// Stops all instances in order, so that the results of all sends are stored.
    pub fn end(&mut self) {
        for server in self.servers.iter_mut().filter_map(Option::take) {
            assert_eq!(server.stop().matches("panicked").count(), 0);
        }
    }

    /// The tries of a route whose start is known.
    pub fn records(&self, route: &str) -> Vec<Record> {
        let rows = self.ask(&format!(
            "SELECT m.key, a.sent_at FROM redeliver.redeliver_attempts a \
             JOIN redeliver.redeliver_messages m ON m.id = a.message_id \
             WHERE m.route = '{route}' AND a.sent_at IS NOT NULL"
        ));
        let record = |row: &str| {
            let (key, ms) = row.split_once('|').unwrap();
            Record { key: key.to_owned(), sent_at: Duration::from_millis(ms.parse().unwrap()) }
        };
        rows.lines().map(record).collect()
    }
}
