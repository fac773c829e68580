//! RabbitMQ: one node, or several that are one broker, with ports, names and files of their own.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::sync::{Arc, OnceLock};
use std::thread::{park_timeout, scope};
use std::time::Duration;

use tempfile::TempDir;

use crate::free_port;
use crate::guard::Guard;

/// Where Debian keeps the programs; those in the usual path drop the environment.
const PROGRAMS: &str = "/usr/lib/rabbitmq/bin";
/// How often it is started before that is given up.
const STARTED_MAX: usize = 5;
/// What nodes know one another by.
const COOKIE: &str = "redeliver-tests";
/// What a client says first.
const GREETING: &[u8] = b"AMQP\0\0\x09\x01";
/// How long it is left to itself before it is looked at again.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the node may take to say a word before it is asked again.
const WORD_WITHIN: Duration = Duration::from_secs(5);

/// A broker with a directory and ports of its own.
pub struct RabbitmqServer {
    // The node, before its name server and its files.
    node: Option<Guard>,
    names: Arc<Names>,
    directory: TempDir,
    name: String,
    ports: Ports,
}

struct Ports {
    amqp: u16,
    node: u16,
    tool: u16,
}

/// Where nodes find one another.
struct Names {
    _server: Guard,
    _directory: TempDir,
    port: u16,
}

impl Names {
    fn start() -> Arc<Self> {
        let (directory, port) = (new_directory(), free_port());
        let epmd = ["epmd", "-address", "127.0.0.1", "-port", &port.to_string()].map(str::to_owned);
        Arc::new(Self { _server: Guard::start(&epmd, "TERM", directory.path()), _directory: directory, port })
    }
}

impl RabbitmqServer {
    /// Starts a broker.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts a broker with these lines in its config.
    pub fn start_with(config: &str) -> Self {
        Self::start_node(Names::start(), "redeliver@localhost".to_owned(), config)
    }

    /// Starts so many nodes that are one broker: what goes to a quorum queue is on each of them.
    pub fn start_cluster(count: usize) -> Vec<Self> {
        let names = Names::start();
        let start = |n: usize| {
            let names = Arc::clone(&names);
            move || Self::start_node(names, format!("redeliver{n}@localhost"), "")
        };
        let nodes: Vec<Self> = scope(|threads| {
            let starting: Vec<_> = (0..count).map(|n| threads.spawn(start(n))).collect();
            starting.into_iter().map(|node| node.join().expect("a node starts")).collect()
        });
        for node in nodes.iter().skip(1) {
            node.control(&["stop_app"]);
            node.control(&["join_cluster", &nodes[0].name]);
            node.control(&["start_app"]);
            while !node.answers() {
                park_timeout(PAUSE);
            }
        }
        nodes
    }

    fn start_node(names: Arc<Names>, name: String, config: &str) -> Self {
        let directory = new_directory();
        let file = |name: &str| directory.path().join(name);
        let lines = format!("log.console = false\ndisk_free_limit.absolute = 50MB\n{config}\n");
        for (name, text) in
            [("rabbitmq.conf", lines.as_str()), ("plugins", "[].\n"), (".erlang.cookie", COOKIE)]
        {
            fs::write(file(name), text).expect("its directory can be written");
        }
        // One that others could read would be turned away.
        let secret = fs::set_permissions(file(".erlang.cookie"), fs::Permissions::from_mode(0o400));
        secret.expect("its directory is our own");
        let ports = Ports { amqp: free_port(), node: free_port(), tool: free_port() };
        let mut server = Self { node: None, names, directory, name, ports };
        server.resume();
        server
    }

    /// The broker that all tests of this process share. It ends with the process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<RabbitmqServer> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// What the node is called among others.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its port on this machine.
    pub fn port(&self) -> u16 {
        self.ports.amqp
    }

    /// Its address, with the login that every broker has for callers from its own machine.
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}", self.ports.amqp)
    }

    /// The process id of the node, while it runs.
    pub fn pid(&self) -> Option<u32> {
        fs::read_to_string(self.directory.path().join("pid")).ok()?.trim().parse().ok()
    }

    /// How long it has kept processors busy.
    pub fn worked(&self) -> Duration {
        let stat = self.pid().and_then(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok());
        // Behind the name of the program, which may have any characters, the twelfth and the thirteenth word, in hundredths.
        let words = stat.as_deref().and_then(|stat| stat.rsplit_once(')')).map_or("", |(_, words)| words);
        let ticks = words.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok());
        Duration::from_millis(ticks.sum::<u64>() * 10)
    }

    /// Runs `rabbitmqctl`, and answers with what it says.
    pub fn control(&self, arguments: &[&str]) -> String {
        let output = self.try_to_control(arguments);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "rabbitmqctl {}: {words}", arguments.join(" "));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Has it write down which log belongs to which quorum queue. By itself it does so within seconds, and a node that is
    /// killed before has lost what it confirmed: this is for tests that kill one that has only just begun.
    pub fn write_down_queues(&self) {
        self.control(&["eval", "[dets:sync(Table) || Table <- dets:all()]."]);
    }

    /// Kills it without a word, as a power cut would.
    pub fn kill(&mut self) {
        if let Some(pid) = self.pid() {
            let status = Command::new("kill").arg("-KILL").arg(pid.to_string()).status();
            assert!(status.is_ok_and(|status| status.success()), "cannot kill the node {pid}");
        }
        self.node = None;
    }

    /// Stops it in order.
    pub fn stop(&mut self) {
        self.node = None;
    }

    /// Starts it again, with what it had, on its old port. It answers then, and every queue that it had is back.
    pub fn resume(&mut self) {
        // Whose process it was is no longer so.
        let _ = fs::remove_file(self.directory.path().join("pid"));
        let mut command = vec!["env".to_owned()];
        command.extend(self.environment().map(|(name, value)| format!("{name}={value}")));
        command.push(format!("{PROGRAMS}/rabbitmq-server"));
        for _ in 0..STARTED_MAX {
            let mut node = Guard::start(&command, "TERM", self.directory.path());
            while node.is_running() {
                if self.answers() && self.has_its_queues() {
                    self.node = Some(node);
                    return;
                }
                park_timeout(PAUSE);
            }
        }
        let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        panic!("RabbitMQ does not start: {log}");
    }

    /// Whether it speaks AMQP.
    fn answers(&self) -> bool {
        let Ok(mut socket) = TcpStream::connect(("127.0.0.1", self.ports.amqp)) else { return false };
        let mut first = [0];
        socket.set_read_timeout(Some(WORD_WITHIN)).is_ok()
            && socket.write_all(GREETING).is_ok()
            && socket.read_exact(&mut first).is_ok()
    }

    /// Whether every queue that it knows is at work: they come back one by one, after it has begun to answer.
    fn has_its_queues(&self) -> bool {
        let output = self.try_to_control(&["--quiet", "list_queues", "--no-table-headers", "name", "state"]);
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success()
            && words.lines().all(|line| line.trim().is_empty() || line.ends_with("running"))
    }

    fn try_to_control(&self, arguments: &[&str]) -> Output {
        let mut control = Command::new(format!("{PROGRAMS}/rabbitmqctl"));
        control.envs(self.environment()).args(arguments);
        control.output().expect("rabbitmqctl comes with RabbitMQ")
    }

    fn environment(&self) -> impl Iterator<Item = (&'static str, String)> {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        [
            ("HOME", path("")),
            ("RABBITMQ_NODENAME", self.name.clone()),
            ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1".to_owned()),
            ("RABBITMQ_NODE_PORT", self.ports.amqp.to_string()),
            ("RABBITMQ_DIST_PORT", self.ports.node.to_string()),
            ("RABBITMQ_CTL_DIST_PORT_MIN", self.ports.tool.to_string()),
            ("RABBITMQ_CTL_DIST_PORT_MAX", self.ports.tool.to_string()),
            ("ERL_EPMD_PORT", self.names.port.to_string()),
            ("ERL_EPMD_ADDRESS", "127.0.0.1".to_owned()),
            ("RABBITMQ_MNESIA_BASE", path("mnesia")),
            ("RABBITMQ_LOG_BASE", path("logs")),
            ("RABBITMQ_PID_FILE", path("pid")),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins")),
            ("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf")),
            // Two threads that don't spin while they wait: others use this machine too.
            (
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none".to_owned(),
            ),
            ("LC_ALL", "C.UTF-8".to_owned()),
        ]
        .into_iter()
    }
}

fn new_directory() -> TempDir {
    tempfile::Builder::new().prefix("redeliver-mq").tempdir().expect("a directory for it")
}
