//! A real process in a directory of its own, and waiting for what it does.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(
    clippy::disallowed_methods,
    reason = "a real process takes real time: what it does is polled for, to a deadline"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

pub mod face;

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use redeliver_cli::config::{Config, Sources, load};
use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::{Content, Message, MessageId, State, Timestamp};
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_engine::store::{Filter, Inserted, Store};
use redeliver_stores::{OpenOptions, Role, SyncSqlite};

pub use rustix::process::Signal;

/// How long a process may take for anything, on a machine that is busy with everything else.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a message carries, and must never be seen.
pub const BODY: &str = "the-secret-body";

/// Runs a story that waits for a store.
pub fn run<T>(story: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(story)
}

/// Waits until it is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A directory with a config and a store.
pub struct Place {
    dir: tempfile::TempDir,
    config: Config,
    variables: Vec<(&'static str, String)>,
}

/// What a command said and how it ended.
pub struct Said {
    pub out: String,
    pub err: String,
    pub code: Option<i32>,
}

impl Place {
    /// A place with this config, its store in `store.db`.
    pub fn new(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("[store]\nurl = \"sqlite:store.db\"\n{config}");
        std::fs::write(dir.path().join("redeliver.toml"), &text).unwrap();
        let file = Some(("redeliver.toml".into(), text));
        let config = load(&Sources { file, ..Sources::default() }).unwrap().config;
        Self { dir, config, variables: Vec::new() }
    }

    pub fn with_variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redeliver"));
        command.args(args.split_whitespace()).current_dir(self.dir.path()).env_clear();
        // Several of these run at once: each answers on a port of its own.
        command.env("HTTP_PORT", "0").envs(self.variables.iter().map(|(name, value)| (name, value)));
        // Where an instrumented process writes down which lines it reached.
        command.envs(std::env::var_os("LLVM_PROFILE_FILE").map(|file| ("LLVM_PROFILE_FILE", file)));
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, args: &str) -> Said {
        let Output { status, stdout, stderr } = self.command(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { out: text(stdout), err: text(stderr), code: status.code() }
    }

    /// Starts a command that goes on until it is told to end.
    pub fn start(&self, args: &str) -> Process {
        let mut child = self.command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let (lines, writer) = (BufReader::new(child.stderr.take().unwrap()).lines(), Arc::clone(&log));
        let reader = std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| writer.lock().unwrap().push(line));
        });
        Process { child, log, reader: Some(reader) }
    }

    /// Starts an engine, and waits until it serves.
    pub fn serve(&self) -> Process {
        let process = self.start("serve");
        process.logs("serving");
        process
    }

    /// The store, as an application beside the engine has it.
    pub fn client(&self) -> SyncSqlite {
        let options = OpenOptions { role: Role::Client, ..OpenOptions::default() };
        SyncSqlite::open(self.path("store.db"), options).unwrap()
    }

    /// Has messages with these numbers accepted on a route, due now.
    pub fn accept(&self, route: &str, numbers: std::ops::Range<u128>) {
        self.accept_due(route, numbers, Duration::ZERO);
    }

    /// The same, due so much later.
    pub fn accept_due(&self, route: &str, numbers: std::ops::Range<u128>, later: Duration) {
        let now = now();
        let rows = numbers.map(|number| {
            let due_at = Some(now.plus(later));
            let new = NewMessage { due_at, ..NewMessage::new(route, Content::of_bytes(BODY)) };
            admit(new, &self.config.routes[route].route, MessageId::own(number), None, now)
        });
        let rows: Vec<_> = rows.collect();
        let count = rows.len();
        assert_eq!(run(self.client().insert(rows)).unwrap(), vec![Inserted::New; count]);
    }

    pub fn message(&self, number: u128) -> Message {
        run(self.client().get(MessageId::own(number))).unwrap().unwrap()
    }

    /// Whether its carrying is on record to have started, which only a route that holds on loss has.
    pub fn is_started(&self, number: u128) -> bool {
        matches!(self.message(number).state, State::Claimed(lease) if lease.started_at.is_some())
    }

    /// How many messages are in this state.
    pub fn count(&self, state: &'static str) -> usize {
        let filter = Filter { state: Some(state), limit: 1_000, ..Filter::default() };
        run(self.client().list(filter)).unwrap().len()
    }
}

/// The time of day.
pub fn now() -> Timestamp {
    WallClock::new(Timestamp::default()).now()
}

/// A process that runs; it ends with this value at the latest.
pub struct Process {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// What it has written to standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Waits until it has written this to standard error.
    pub fn logs(&self, words: &str) {
        let start = Instant::now();
        while !self.log().contains(words) {
            assert!(start.elapsed() < PATIENCE, "waited in vain for {words:?} in:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Where it answers, once it does.
    pub fn url(&self) -> String {
        self.logs("answering on http://");
        let log = self.log();
        let address = log.split("answering on http://").nth(1).unwrap();
        let is_address = |c: &char| c.is_ascii_digit() || ".:".contains(*c);
        format!("http://{}", address.chars().take_while(is_address).collect::<String>())
    }

    pub fn signal(&self, signal: Signal) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Waits until it has ended, and gives how it did and all that it wrote to standard error.
    pub fn end(mut self) -> (ExitStatus, String) {
        let mut status = None;
        until("the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        self.reader.take().unwrap().join().unwrap();
        (status.unwrap(), self.log())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already can't be killed, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
