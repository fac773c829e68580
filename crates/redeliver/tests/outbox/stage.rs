//! Where the stories play: a directory with a database, and a mail server on this machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use redeliver::profile::email_route;
use redeliver::{
    Backoff, Jitter, Mail, MessageId, Policy, Redeliver, RedeliverBuilder, Route, Status, rusqlite,
};
use redeliver_sink::{Options, Sink};
use tempfile::TempDir;

/// How long anything may take before its story has failed.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// How long what has gone out can be looked at: longer than all that a story waits for, one thing after the other.
const KEPT: Duration = Duration::from_secs(3_600);

/// A directory of its own for each story.
pub struct Stage(TempDir);

impl Stage {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn database(&self) -> PathBuf {
        self.0.path().join("app.db")
    }

    /// An outbox in the application's database that keeps what has gone out.
    pub fn outbox(&self) -> RedeliverBuilder {
        keeping(self.usual_outbox())
    }

    /// The usual outbox in the application's database.
    pub fn usual_outbox(&self) -> RedeliverBuilder {
        usual_outbox_at(format!("sqlite:{}", self.database().display()))
    }

    /// The application's own connection to that database.
    pub fn connection(&self) -> rusqlite::Connection {
        let db = rusqlite::Connection::open(self.database()).unwrap();
        db.execute_batch("CREATE TABLE IF NOT EXISTS bookings (guest TEXT)").unwrap();
        db
    }
}

/// An outbox in the database at this URL that keeps what has gone out.
pub fn outbox_at(url: String) -> RedeliverBuilder {
    keeping(usual_outbox_at(url))
}

fn usual_outbox_at(url: String) -> RedeliverBuilder {
    Redeliver::builder(url).from("desk@example.org").wait_at_most(DEADLINE)
}

/// Not waiting long between tries, and with what has gone out still there to be looked at.
fn keeping(outbox: RedeliverBuilder) -> RedeliverBuilder {
    outbox.route(Route { retention: KEPT, ..email_route(impatient()) })
}

fn impatient() -> Policy {
    Policy {
        backoff: Backoff::Table(vec![Duration::from_millis(100)]),
        jitter: Jitter::None,
        max_attempts: 1_000,
        expires_after: None,
    }
}

pub fn mail() -> Mail {
    Mail::to("Ada <ada@example.org>").subject("Your table").text("See you at eight.")
}

pub async fn sink(script: &str) -> Sink {
    sink_at((Ipv4Addr::LOCALHOST, 0).into(), script).await
}

pub async fn sink_at(listen: SocketAddr, script: &str) -> Sink {
    Sink::start(Options { listen, script: script.parse().unwrap(), ..Options::default() }).await.unwrap()
}

pub fn url(sink: &Sink) -> String {
    format!("smtp://{}", sink.address())
}

/// Waits until a message stands like this.
pub async fn until_status(redeliver: &Redeliver, id: &MessageId, expected: Status) {
    until(async || redeliver.status(id).await.unwrap() == Some(expected)).await;
}

/// Looks again and again until it is so.
pub async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let looking = async {
        let mut looks = tokio::time::interval(Duration::from_millis(10));
        while !is_so().await {
            looks.tick().await;
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.expect("it is so in time");
}
