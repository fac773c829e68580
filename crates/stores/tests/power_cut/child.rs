//! The process that is killed: it keeps messages, delivers some, and says of each when that was acknowledged.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redeliver_conformance::make::{keyed, request, result, row_with, took_it};
use redeliver_core::change::NewRow;
use redeliver_core::{Content, Message, MessageId};
use redeliver_engine::store::{Applied, ClaimRequest, Inserted, Store};
use redeliver_stores::{Durability, OpenOptions, Sqlite};
use rusqlite::Connection;
use tokio::task::JoinSet;

pub use redeliver_conformance::make::id;

/// The test that is the child if it finds a job.
const ENTRY: &str = "what_was_acknowledged_survives_a_power_cut";

/// The database's file in its directory.
pub const FILE: &str = "store.db";

/// Where the child finds its job: the directory, the durability, whether to write the log back in between.
const DIRECTORY: &str = "POWER_CUT_WATCHED";
const DURABILITY: &str = "POWER_CUT_DURABILITY";
const CHECKPOINTS: &str = "POWER_CUT_CHECKPOINTS";

/// Calls that are under way at once.
const TASKS: u32 = 8;
/// Messages in one call, at most.
const ROWS_MAX: u32 = 4;
/// Messages in a call that the store commits and then syncs while it goes on.
const MANY: u32 = 150;
/// Numbers of such messages; all others have smaller ones.
const FIRST_OF_MANY: u32 = 1_000_000;
const BODY_BYTES_MAX: u32 = 6_000;

/// What the child is to do.
#[derive(Copy, Clone, Debug)]
pub struct Job {
    pub seed: u64,
    pub durability: Durability,
    /// Whether the log is written back into the database every few milliseconds.
    pub checkpoints: bool,
}

/// Something that must still be so after the cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// The message with this number.
    Accepted(u32),
    Delivered(MessageId),
}

impl Job {
    /// These very tests again, with the job in their environment.
    pub fn command(&self) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([ENTRY, "--exact", "--nocapture"]);
        command.env(DURABILITY, if self.durability == Durability::Full { "full" } else { "relaxed" });
        command.env(CHECKPOINTS, if self.checkpoints { "often" } else { "seldom" });
        command
    }
}

impl Acknowledged {
    /// What the child says about it.
    fn say(&self) {
        let line = match self {
            Self::Accepted(n) => format!("accepted {n}\n"),
            Self::Delivered(id) => format!("delivered {id}\n"),
        };
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    }

    /// What a line of the child's says, if it says anything.
    pub fn heard(line: &str) -> Option<Self> {
        match line.split_once(' ')? {
            ("accepted", n) => Some(Self::Accepted(n.parse().ok()?)),
            ("delivered", id) => Some(Self::Delivered(id.parse().ok()?)),
            _ => None,
        }
    }
}

/// What the n-th message carries.
pub fn content(n: u32) -> Content {
    let length = n.wrapping_mul(7_919) % BODY_BYTES_MAX;
    let bytes: Vec<u8> = (0..length).map(|at| (at ^ n.wrapping_mul(31)) as u8).collect();
    Content::of_bytes(bytes)
}

/// What the n-th message is called.
pub fn key(n: u32) -> String {
    format!("key {n}")
}

/// In the child, works until it is killed. In the test itself, does nothing.
pub fn run_if_asked() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let path = PathBuf::from(directory).join(FILE);
    let durability = match std::env::var(DURABILITY).unwrap().as_str() {
        "full" => Durability::Full,
        "relaxed" => Durability::Relaxed,
        other => panic!("no such durability: {other}"),
    };
    let store = Sqlite::open(&path, OpenOptions { durability, ..OpenOptions::default() }).unwrap();
    if std::env::var(CHECKPOINTS).unwrap() == "often" {
        std::thread::spawn(move || checkpoint_often(Connection::open(path).unwrap()));
    }
    // The harness has begun a line of its own.
    println!();
    let (store, next) = (Arc::new(store), Arc::new(AtomicU32::new(0)));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        tasks.spawn(deliver_for_ever(store.clone()));
        tasks.spawn(accept_many_for_ever(store.clone()));
        for _ in 0..TASKS {
            tasks.spawn(accept_for_ever(store.clone(), next.clone()));
        }
        tasks.join_next().await.unwrap().unwrap();
    });
}

async fn accept_for_ever(store: Arc<Sqlite>, next: Arc<AtomicU32>) {
    loop {
        let first = next.fetch_add(ROWS_MAX, Ordering::Relaxed);
        accept(&store, (first..=first + first / ROWS_MAX % ROWS_MAX).collect()).await;
    }
}

async fn accept_many_for_ever(store: Arc<Sqlite>) {
    for first in (FIRST_OF_MANY..).step_by(MANY as usize) {
        accept(&store, (first..first + MANY).collect()).await;
    }
}

async fn accept(store: &Sqlite, numbers: Vec<u32>) {
    let answers = store.insert(numbers.iter().map(|n| row(*n)).collect()).await.unwrap();
    for (n, answer) in numbers.iter().zip(answers) {
        assert_eq!(answer, Inserted::New);
        Acknowledged::Accepted(*n).say();
    }
}

async fn deliver_for_ever(store: Arc<Sqlite>) {
    loop {
        let claims = store.claim(ClaimRequest { limit: 3, ..request() }).await.unwrap();
        let claimed: Vec<Message> = claims.claimed.into_iter().map(|(message, _)| message).collect();
        let changes = claimed.iter().map(|message| result(message, &took_it(), 1)).collect();
        let answers = store.apply(changes).await.unwrap();
        for (message, answer) in claimed.into_iter().zip(answers) {
            assert_eq!(answer, Applied::Applied);
            Acknowledged::Delivered(message.id).say();
        }
    }
}

/// The n-th message, under its key.
fn row(n: u32) -> NewRow {
    row_with(keyed(n, &key(n)), content(n))
}

/// Writes the log back in all three ways, so that it is begun anew, and cut off, while messages come in.
fn checkpoint_often(db: Connection) {
    db.busy_timeout(Duration::from_secs(5)).unwrap();
    db.pragma_update(None, "synchronous", "FULL").unwrap();
    for mode in ["PASSIVE", "RESTART", "PASSIVE", "TRUNCATE"].iter().cycle() {
        std::thread::sleep(Duration::from_millis(7));
        db.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())).unwrap();
    }
}
