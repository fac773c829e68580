//! Mail servers to send to: somebody else's (aiosmtpd), and the sink of this house as its own process.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redeliver_servers::free_port;
use serde_json::Value;

use super::{python, root, until_some};

/// A mail as a peer got it.
#[derive(Clone, Debug)]
pub struct Got {
    pub from: String,
    pub to: Vec<String>,
    pub data: Vec<u8>,
    pub tls: bool,
    pub login: Option<String>,
}

/// A mail server that can be stopped and started again on its port.
pub trait Peer {
    fn port(&self) -> u16;
    fn start(&mut self);
    fn stop(&mut self);
    /// How it answers from now on: `accept`, `defer`, `refuse`, `greylist` or `lose`.
    fn tell(&self, rule: &str);
    fn mails(&self) -> Vec<Got>;

    fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.port())
    }

    /// The mails, once there are this many.
    fn wait_for(&self, count: usize) -> Vec<Got> {
        until_some(&format!("{count} mails"), || Some(self.mails()).filter(|mails| mails.len() >= count))
    }
}

/// aiosmtpd, by the script in `tests/peers`.
pub struct Aiosmtpd {
    dir: tempfile::TempDir,
    port: u16,
    args: Vec<String>,
    child: Option<Child>,
}

impl Aiosmtpd {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// One that wants STARTTLS and this login, and shows this certificate.
    pub fn with_login(cert: &PathBuf, key: &PathBuf, login: &str) -> Self {
        let text = |path: &PathBuf| path.display().to_string();
        Self::with(&["--cert", &text(cert), "--key", &text(key), "--login", login])
    }

    /// The same, on this port.
    pub fn on(mut self, port: u16) -> Self {
        self.stop();
        self.port = port;
        self.start();
        self
    }

    fn with(args: &[&str]) -> Self {
        let mut peer = Self {
            dir: tempfile::tempdir().unwrap(),
            port: free_port(),
            args: args.iter().map(ToString::to_string).collect(),
            child: None,
        };
        peer.tell("accept");
        peer.start();
        peer
    }
}

impl Peer for Aiosmtpd {
    fn port(&self) -> u16 {
        self.port
    }

    fn start(&mut self) {
        let mut child = Command::new(python())
            .arg(root().join("tests/peers/smtp_server.py"))
            .args(["--port", &self.port.to_string()])
            .args(["--out".as_ref(), self.dir.path().join("mails").as_os_str()])
            .args(["--rules".as_ref(), self.dir.path().join("rules").as_os_str()])
            .args(&self.args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        self.port = line.trim().parse().expect("the peer says its port");
        self.child = Some(child);
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn tell(&self, rule: &str) {
        std::fs::write(self.dir.path().join("rules"), rule).unwrap();
    }

    fn mails(&self) -> Vec<Got> {
        let text = std::fs::read_to_string(self.dir.path().join("mails")).unwrap_or_default();
        // A line that is being written has no end yet.
        text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(got).collect()
    }
}

impl Drop for Aiosmtpd {
    fn drop(&mut self) {
        self.stop();
    }
}

fn got(line: &str) -> Got {
    let mail: Value = serde_json::from_str(line).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Got {
        from: text(&mail["from"]),
        to: mail["to"].as_array().unwrap().iter().map(text).collect(),
        data: STANDARD.decode(mail["data"].as_str().unwrap()).unwrap(),
        tls: mail["tls"].as_bool().unwrap(),
        login: mail["login"].as_str().map(ToOwned::to_owned),
    }
}

/// The sink, run inside the test.
pub struct Sink {
    runtime: tokio::runtime::Runtime,
    port: u16,
    sink: Option<redeliver_sink::Sink>,
    /// What it got before it was stopped.
    before: Vec<Got>,
    arrivals: Arc<AtomicUsize>,
}

impl Sink {
    pub fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let (runtime, arrivals) = (runtime.unwrap(), Arc::default());
        let mut sink = Self { runtime, port: free_port(), sink: None, before: Vec::new(), arrivals };
        sink.start();
        sink
    }

    /// How many mails have arrived, as it goes on.
    pub fn arrivals(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.arrivals)
    }

    fn got(&self) -> Vec<Got> {
        let mails = self.sink.as_ref().map(redeliver_sink::Sink::mails).unwrap_or_default();
        let got = |mail: redeliver_sink::Mail| Got {
            from: mail.from,
            to: mail.to,
            data: mail.data,
            tls: mail.tls,
            login: mail.login,
        };
        mails.into_iter().map(got).collect()
    }
}

impl Peer for Sink {
    fn port(&self) -> u16 {
        self.port
    }

    fn start(&mut self) {
        let limits = redeliver_sink::Limits { mails_max: 1_000_000, ..redeliver_sink::Limits::default() };
        let arrivals = Arc::clone(&self.arrivals);
        let watcher: redeliver_sink::WatcherFn = Arc::new(move |seen| {
            if let redeliver_sink::Seen::Kept(_) = seen {
                arrivals.fetch_add(1, Ordering::Relaxed);
            }
        });
        let options = redeliver_sink::Options {
            listen: ([127, 0, 0, 1], self.port).into(),
            limits,
            watcher: Some(watcher),
            ..redeliver_sink::Options::default()
        };
        let sink = self.runtime.block_on(redeliver_sink::Sink::start(options)).unwrap();
        self.port = sink.address().port();
        self.sink = Some(sink);
    }

    fn stop(&mut self) {
        self.before.extend(self.got());
        if let Some(sink) = self.sink.take() {
            self.runtime.block_on(sink.stop());
        }
    }

    fn tell(&self, rule: &str) {
        let script = match rule {
            "defer" => "defer 451 4.3.0 try again later",
            "refuse" => "refuse 550 5.1.1 no such user",
            other => other,
        };
        self.sink.as_ref().unwrap().tell(script.parse().unwrap());
    }

    fn mails(&self) -> Vec<Got> {
        self.before.iter().cloned().chain(self.got()).collect()
    }
}
