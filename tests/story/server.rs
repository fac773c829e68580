//! The shipped binary, serving; what it is asked over HTTP; and its time, which the story moves.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use redeliver_core::Timestamp;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use serde_json::Value;

use super::{until, until_some};

/// The key that every story's server is given.
pub const KEY: &str = "a-key-for-the-stories-only";

/// Where a server keeps what it has, from one start to the next.
pub struct Place {
    dir: Arc<tempfile::TempDir>,
    args: Vec<String>,
    variables: Vec<(String, String)>,
}

/// A server that runs.
pub struct Server {
    child: Child,
    pub url: String,
    log: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
    clock: Option<PathBuf>,
    /// What the server has must not go before it does.
    _dir: Arc<tempfile::TempDir>,
    http: reqwest::blocking::Client,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub json: Value,
}

impl Place {
    /// A place for the e-mail outbox that sends to this SMTP server.
    pub fn outbox(smtp_url: &str) -> Self {
        Self::profile("email-outbox").variable("SMTP_URL", smtp_url)
    }

    /// A place for a profile.
    pub fn profile(name: &str) -> Self {
        let place =
            Self { dir: Arc::new(tempfile::tempdir().unwrap()), args: Vec::new(), variables: Vec::new() };
        place.arg("--profile").arg(name)
    }

    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Its time stands still until it is moved.
    pub fn with_clock(self) -> Self {
        let clock = self.path("clock");
        std::fs::write(&clock, "2026-12-01T09:00:00Z").unwrap();
        self.arg("--clock").arg(&clock.display().to_string())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs another command with the same config, and gives what it says.
    pub fn say(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redeliver"));
        command.args(words).args(&self.args).current_dir(self.dir.path()).env_clear();
        command.env("DATABASE_URL", "sqlite:outbox.db").env("HTTP_PORT", "0").env("REDELIVER_ADMIN_KEY", KEY);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.envs(std::env::var_os("LLVM_PROFILE_FILE").map(|file| ("LLVM_PROFILE_FILE", file)));
        command
    }

    /// Starts the server, and waits until it carries.
    pub fn serve(&self) -> Server {
        let server = self.start();
        until("the server carries", || server.get("/readyz").json["carrying"] == true);
        server
    }

    /// Starts the server, and waits until it answers.
    pub fn start(&self) -> Server {
        let mut command = self.command(&["serve"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let (lines, writer) = (BufReader::new(child.stderr.take().unwrap()).lines(), Arc::clone(&log));
        let reader = std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| writer.lock().unwrap().push(line));
        });
        let heard = Arc::clone(&log);
        let url = until_some("the server says where it answers", || {
            assert!(child.try_wait().unwrap().is_none(), "the server ended: {:#?}", heard.lock().unwrap());
            let log = heard.lock().unwrap();
            let line = log.iter().find(|line| line.contains("answering on "))?;
            let (_, rest) = line.split_once("answering on ")?;
            Some(rest.split([' ', '"']).next()?.to_owned())
        });
        let clock = self.path("clock");
        // Nobody is asked for a certificate here, and still something must stand ready to check one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::blocking::Client::builder().timeout(Duration::from_secs(60)).build().unwrap();
        let clock = clock.exists().then_some(clock);
        let reader = Some(reader);
        Server { child, url, log, reader, clock, _dir: Arc::clone(&self.dir), http }
    }
}

impl Server {
    pub fn get(&self, path: &str) -> Answer {
        self.try_send(self.http.get(self.at(path))).expect("the server answers")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.try_post(path, body).expect("the server answers")
    }

    pub fn post_text(&self, path: &str, kind: &str, text: &str) -> Answer {
        let request = self.http.post(self.at(path)).header("content-type", kind).body(text.to_owned());
        self.try_send(request).expect("the server answers")
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.try_send(self.http.delete(self.at(path))).expect("the server answers")
    }

    /// The same, for whoever must live with no answer.
    pub fn try_post(&self, path: &str, body: &Value) -> Option<Answer> {
        self.try_send(self.http.post(self.at(path)).json(body))
    }

    /// Has a mail accepted and tried before our eyes.
    pub fn send_and_wait(&self, body: &Value) -> Answer {
        let request = self.http.post(self.at("/v1/messages")).header("prefer", "wait=20").json(body);
        self.try_send(request).expect("the server answers")
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn try_send(&self, request: reqwest::blocking::RequestBuilder) -> Option<Answer> {
        let response = request.bearer_auth(KEY).send().ok()?;
        let status = response.status().as_u16();
        let text = response.text().ok()?;
        Some(Answer { status, json: serde_json::from_str(&text).unwrap_or(Value::String(text)) })
    }

    /// A message as it stands.
    pub fn message(&self, id: &str) -> Value {
        self.get(&format!("/v1/messages/{id}")).json
    }

    /// Waits until a message has this status, and gives it.
    pub fn wait_for_status(&self, id: &str, status: &str) -> Value {
        until_some(&format!("message {id} is {status}"), || {
            Some(self.message(id)).filter(|message| message["status"] == status)
        })
    }

    /// Moves the time on by so many seconds, one after the other, and after each waits until nothing is due or in the
    /// air any more.
    pub fn pass(&self, seconds: i64) {
        let clock = self.clock.as_ref().expect("the story's server has a clock of its own");
        for _ in 0..seconds {
            let now: Timestamp = std::fs::read_to_string(clock).unwrap().parse().unwrap();
            let then = now.plus(Duration::from_secs(1));
            let written = clock.with_extension("new");
            std::fs::write(&written, then.to_string()).unwrap();
            std::fs::rename(&written, clock).unwrap();
            until("the clock has moved and nothing is due", || {
                let stats = self.get("/v1/stats").json;
                let moved = stats["at"].as_str().is_some_and(|now| now.parse() == Ok(then));
                moved && stats["total"]["due"] == 0 && stats["total"]["sending"] == 0
            });
        }
    }

    /// Moves the time on by so many seconds at once.
    pub fn leap(&self, seconds: u64) -> Timestamp {
        let clock = self.clock.as_ref().expect("the story's server has a clock of its own");
        let now: Timestamp = std::fs::read_to_string(clock).unwrap().parse().unwrap();
        self.leap_to(now.plus(Duration::from_secs(seconds)))
    }

    /// Moves the time to this one, unless it is past already, and waits until nothing is due or in the air any more. An engine
    /// that time has left behind says that it lives before it carries anything, and looks again a second later: as long as it
    /// hasn't, seconds pass. Says what time it is then.
    pub fn leap_to(&self, then: Timestamp) -> Timestamp {
        let clock = self.clock.as_ref().expect("the story's server has a clock of its own");
        let now: Timestamp = std::fs::read_to_string(clock).unwrap().parse().unwrap();
        let set = |at: Timestamp| {
            let written = clock.with_extension("new");
            std::fs::write(&written, at.to_string()).unwrap();
            std::fs::rename(&written, clock).unwrap();
        };
        let (mut at, mut looks) = (then.max(now), 0u32);
        set(at);
        until("the clock has moved and nothing is due", || {
            looks += 1;
            if looks.is_multiple_of(50) {
                at = at.plus(Duration::from_secs(1));
                set(at);
            }
            let stats = self.get("/v1/stats").json;
            let moved = stats["at"].as_str().is_some_and(|now| now.parse() == Ok(at));
            moved && stats["total"]["due"] == 0 && stats["total"]["sending"] == 0
        });
        at
    }

    /// What it is called in the database. Its log must be JSON.
    pub fn instance_id(&self) -> i64 {
        let log = self.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut names = lines.filter_map(|line| Some(line["instance"].as_str()?.to_owned()));
        let name = names.next().expect("an instance logs its name");
        u64::from_str_radix(&name, 16).expect("a name is a number").cast_signed()
    }

    /// What it has written to its log.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Ends it as a power cut would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The same, while others still talk to it; it is gone when this returns. Says whether it was alive until then.
    pub fn kill_now(&self) -> bool {
        self.signal(Signal::KILL);
        let gone = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let ended = rustix::process::waitid(WaitId::Pid(self.pid()), gone).unwrap();
        ended.is_some_and(|ended| ended.terminating_signal() == Some(Signal::KILL.as_raw()))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Whether it stands still because a signal said so.
    pub fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The name before the state may have any character in it.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Tells it to stop, and waits until it has.
    pub fn stop(mut self) -> String {
        self.signal(Signal::TERM);
        let ended = self.child.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        assert!(ended.success(), "{}", self.log());
        self.log()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
