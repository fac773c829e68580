//! Redis: one server with a port and files of its own, a few of them as a cluster, or one that a sentinel watches.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::thread::park_timeout;
use std::time::Duration;

use tempfile::TempDir;

use crate::free_port;
use crate::guard::Guard;

/// How often it is started before that is given up.
const STARTED_MAX: usize = 5;
/// How long it is left to itself before it is looked at again.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a cluster or a sentinel is looked at before it counts as one that never will be ready.
const LOOKS_MAX: usize = 6_000;

/// A server with a directory and a port of its own. What it was told survives its being killed.
pub struct RedisServer {
    // The process, before its files.
    process: Option<Guard>,
    directory: TempDir,
    port: u16,
    options: Vec<String>,
}

impl RedisServer {
    /// Starts a server.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with these options, such as `["--requirepass", "secret"]`.
    pub fn start_with(options: &[&str]) -> Self {
        let directory =
            tempfile::Builder::new().prefix("redeliver-redis").tempdir().expect("a directory for it");
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut server = Self { process: None, directory, port: free_port(), options };
        server.resume();
        server
    }

    /// The server that all tests of this process share. It ends with the process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<RedisServer> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Its port on this machine.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Where its files are.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        fs::read_to_string(self.directory.path().join("pid")).ok()?.trim().parse().ok()
    }

    /// Says a command to it, and answers with what it says.
    pub fn say(&self, words: &[&str]) -> String {
        let output = self.try_to_say(words);
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(output.status.success(), "redis-cli {}: {said}", words.join(" "));
        said
    }

    /// Takes everything that it has.
    pub fn flush(&self) {
        assert_eq!(self.say(&["FLUSHALL"]), "OK");
    }

    /// Kills it without a word, as a power cut would.
    pub fn kill(&mut self) {
        self.signal("KILL");
        self.process = None;
    }

    /// Sends a signal to it, such as `STOP` or `CONT`.
    pub fn signal(&self, signal: &str) {
        let pid = self.pid().expect("it runs");
        let status = Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot signal the process {pid}");
    }

    /// Starts it again, with what it had, on its old port. It answers then.
    pub fn resume(&mut self) {
        // Whose process it was is no longer so.
        let _ = fs::remove_file(self.directory.path().join("pid"));
        for _ in 0..STARTED_MAX {
            let mut process = Guard::start(&self.command(), "TERM", self.directory.path());
            while process.is_running() {
                let output = self.try_to_say(&["PING"]);
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                // One that asks for a login answers too.
                if ["PONG", "NOAUTH"].iter().any(|word| said.starts_with(word)) && self.pid().is_some() {
                    self.process = Some(process);
                    return;
                }
                park_timeout(PAUSE);
            }
        }
        let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        panic!("Redis does not start: {log}");
    }

    fn command(&self) -> Vec<String> {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        let usual = [
            "redis-server".to_owned(),
            // A file of its own, which a server that is told something new may write to.
            path("redis.conf"),
            "--port".to_owned(),
            self.port.to_string(),
            "--bind".to_owned(),
            "127.0.0.1".to_owned(),
            "--dir".to_owned(),
            path(""),
            "--pidfile".to_owned(),
            path("pid"),
            "--appendonly".to_owned(),
            "yes".to_owned(),
            "--save".to_owned(),
            String::new(),
        ];
        let config = self.directory.path().join("redis.conf");
        if !config.exists() {
            fs::write(config, "").expect("its directory can be written");
        }
        usual.into_iter().chain(self.options.clone()).collect()
    }

    fn try_to_say(&self, words: &[&str]) -> Output {
        let mut client = Command::new("redis-cli");
        client.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]).args(words);
        client.output().expect("redis-cli comes with Redis")
    }
}

/// Three servers that share the keys among them.
pub struct RedisCluster {
    /// The servers.
    pub nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts a cluster. Every node says that it is whole.
    pub fn start() -> Self {
        let nodes: Vec<RedisServer> = (0..3)
            .map(|_| {
                let bus = free_port().to_string();
                RedisServer::start_with(&["--cluster-enabled", "yes", "--cluster-port", &bus])
            })
            .collect();
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]);
        create.args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())));
        let made = create.arg("--cluster-yes").output().expect("redis-cli comes with Redis");
        assert!(made.status.success(), "no cluster: {}", String::from_utf8_lossy(&made.stdout));
        let cluster = Self { nodes };
        let is_whole = |node: &RedisServer| node.say(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
        wait_until("the cluster is whole", || cluster.nodes.iter().all(is_whole));
        cluster
    }

    /// Its address: any of its nodes leads to all.
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis-cluster://{}", nodes.join(","))
    }
}

/// A server, one that repeats what it does, and a sentinel that puts the second in the place of the first.
pub struct RedisSentinel {
    /// Who is written to at first.
    pub master: RedisServer,
    /// Who repeats it.
    pub replica: RedisServer,
    sentinel: RedisServer,
}

impl RedisSentinel {
    /// What the sentinel calls the server.
    pub const MASTER: &str = "main";

    /// Starts all three. The sentinel knows the other two.
    pub fn start() -> Self {
        let master = RedisServer::start();
        let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &master.port().to_string()]);
        wait_until("the replica follows", || replica.say(&["INFO"]).contains("master_link_status:up"));
        let sentinel = RedisServer::start_with(&["--sentinel"]);
        let port = master.port().to_string();
        let name = Self::MASTER;
        sentinel.say(&["SENTINEL", "MONITOR", name, "127.0.0.1", &port, "1"]);
        sentinel.say(&["SENTINEL", "SET", name, "down-after-milliseconds", "1000"]);
        wait_until("the sentinel knows the replica", || {
            sentinel.say(&["SENTINEL", "REPLICAS", name]).contains(&replica.port().to_string())
        });
        Self { master, replica, sentinel }
    }

    /// Its address: the sentinel's, and what it calls the server.
    pub fn url(&self) -> String {
        format!("redis-sentinel://127.0.0.1:{}/{}", self.sentinel.port(), Self::MASTER)
    }

    /// Ends when the replica is written to instead.
    pub fn wait_for_failover(&self) {
        wait_until("the replica takes over", || self.replica.say(&["INFO"]).contains("role:master"));
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..LOOKS_MAX {
        if is_so() {
            return;
        }
        park_timeout(PAUSE);
    }
    panic!("not so: {what}");
}
