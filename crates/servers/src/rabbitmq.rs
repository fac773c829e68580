//! RabbitMQ: one node with ports, names and files of its own.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::thread::park_timeout;
use std::time::Duration;

use tempfile::TempDir;

use crate::free_port;
use crate::guard::Guard;

/// Where Debian keeps the programs; those in the usual path drop the environment.
const PROGRAMS: &str = "/usr/lib/rabbitmq/bin";
/// How often it is started before that is given up.
const STARTED_MAX: usize = 5;
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
    _names: Guard,
    directory: TempDir,
    ports: Ports,
}

struct Ports {
    amqp: u16,
    node: u16,
    names: u16,
    tool: u16,
}

impl RabbitmqServer {
    /// Starts a broker.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts a broker with these lines in its config.
    pub fn start_with(config: &str) -> Self {
        let directory =
            tempfile::Builder::new().prefix("redeliver-mq").tempdir().expect("a directory for it");
        let lines = format!("log.console = false\ndisk_free_limit.absolute = 50MB\n{config}\n");
        fs::write(directory.path().join("rabbitmq.conf"), lines).expect("its directory can be written");
        fs::write(directory.path().join("plugins"), "[].\n").expect("its directory can be written");
        let names_directory = directory.path().join("names");
        fs::create_dir(&names_directory).expect("its directory can be written");
        let ports = Ports { amqp: free_port(), node: free_port(), names: free_port(), tool: free_port() };
        let epmd = ["epmd", "-address", "127.0.0.1", "-port", &ports.names.to_string()].map(str::to_owned);
        let names = Guard::start(&epmd, "TERM", &names_directory);
        let mut server = Self { node: None, _names: names, directory, ports };
        server.resume();
        server
    }

    /// The broker that all tests of this process share. It ends with the process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<RabbitmqServer> = OnceLock::new();
        SHARED.get_or_init(Self::start)
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

    /// Runs `rabbitmqctl`, and answers with what it says.
    pub fn control(&self, arguments: &[&str]) -> String {
        let output = self.try_to_control(arguments);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "rabbitmqctl {}: {words}", arguments.join(" "));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
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
            ("RABBITMQ_NODENAME", "redeliver@localhost".to_owned()),
            ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1".to_owned()),
            ("RABBITMQ_NODE_PORT", self.ports.amqp.to_string()),
            ("RABBITMQ_DIST_PORT", self.ports.node.to_string()),
            ("RABBITMQ_CTL_DIST_PORT_MIN", self.ports.tool.to_string()),
            ("RABBITMQ_CTL_DIST_PORT_MAX", self.ports.tool.to_string()),
            ("ERL_EPMD_PORT", self.ports.names.to_string()),
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
