//! A broker that is a program of its own, and keeps its topics in a file: tansu.

use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::thread::park_timeout;
use std::time::Duration;

use tempfile::TempDir;

use crate::free_port;
use crate::guard::Guard;

/// How long it is left to itself before it is looked at again.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a topic is asked for: a broker takes connections a little earlier than requests.
const ASKED_MAX: usize = 500;

/// A broker with a port and a directory of its own. What it was told survives its being killed.
pub(super) struct Broker {
    // The process, before its files.
    process: Option<Guard>,
    directory: TempDir,
    program: String,
    port: u16,
}

impl Broker {
    pub(super) fn start(program: String) -> Self {
        let directory =
            tempfile::Builder::new().prefix("redeliver-kafka").tempdir().expect("a directory for it");
        let mut broker = Self { process: None, directory, program, port: free_port() };
        broker.bring_up();
        broker
    }

    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills it without a word, as a power cut would.
    pub(super) fn take_down(&mut self) {
        self.process = None;
    }

    /// Starts it, unless it runs, with what it had on the port that it had.
    pub(super) fn bring_up(&mut self) {
        if self.process.is_some() {
            return;
        }
        let mut process = Guard::start(&self.command(), "KILL", self.directory.path());
        while TcpStream::connect(self.address()).is_err() {
            let log = || fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            assert!(process.is_running(), "{} does not start: {}", self.program, log());
            park_timeout(PAUSE);
        }
        self.process = Some(process);
    }

    pub(super) fn make_topic(&self, name: &str, partitions: i32) {
        let mut said = String::new();
        for _ in 0..ASKED_MAX {
            let mut create = Command::new(&self.program);
            create.args(["topic", "create", name, "--partitions", &partitions.to_string()]);
            let output = create.args(["--broker", &self.url()]).output().expect("the program runs");
            if output.status.success() {
                return;
            }
            said = String::from_utf8_lossy(&output.stderr).into_owned();
            park_timeout(PAUSE);
        }
        panic!("no topic {name}: {said}");
    }

    fn url(&self) -> String {
        format!("tcp://{}", self.address())
    }

    fn command(&self) -> Vec<String> {
        let options = [
            ("--listener-url", self.url()),
            ("--advertised-listener-url", self.url()),
            // Looked for from where it is started, whatever it begins with.
            ("--storage-engine", "sqlite://topics.db".to_owned()),
        ];
        let options = options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
        let there = ["env".to_owned(), "-C".to_owned(), self.directory.path().display().to_string()];
        there.into_iter().chain([self.program.clone(), "broker".to_owned()]).chain(options).collect()
    }
}
