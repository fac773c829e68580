//! The command line over a server that runs, and straight on a store that none holds.

use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::Value;

use super::{Place, Process, Said, until};

/// The key of the servers here.
pub const KEY: &str = "a-key-of-these-tests";

/// Two routes over a script that takes everything.
pub const ROUTES: &str = r#"
[transports.script]
kind = "scripted"

[policies.quick]
backoff = ["50ms"]
max_attempts = 3

[routes.email]
transport = "script"
policy = "quick"

[routes.orders]
transport = "script"
policy = "quick"
"#;

/// A place, and how its messages are reached.
pub struct Face {
    pub place: Place,
    server: Option<Process>,
    variables: Vec<(&'static str, String)>,
}

impl Face {
    /// Straight on the store.
    pub fn local(config: &str) -> Self {
        Self { place: Place::new(config), server: None, variables: Vec::new() }
    }

    /// Over a server.
    pub fn served(config: &str) -> Self {
        let place = Place::new(config).with_variable("REDELIVER_ADMIN_KEY", KEY);
        let server = place.serve();
        server.logs("answering on http://");
        let log = server.log();
        let url = log.split("answering on ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
        let url: String = url.chars().filter(|c| !c.is_control()).collect();
        let variables = vec![("REDELIVER_URL", url), ("REDELIVER_KEY", KEY.to_owned())];
        Self { place, server: Some(server), variables }
    }

    /// Both ways.
    pub fn both(config: &str) -> [Self; 2] {
        [Self::local(config), Self::served(config)]
    }

    /// Where the server answers.
    pub fn url(&self) -> &str {
        &self.variables[0].1
    }

    /// What the server has said.
    pub fn log(&self) -> String {
        self.server.as_ref().map(Process::log).unwrap_or_default()
    }

    /// A command of this place, ready to be run.
    pub fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.place.command("");
        command.args(args).envs(self.variables.iter().map(|(name, value)| (*name, value)));
        command
    }

    /// Runs a command with something to read.
    pub fn tell(&self, args: &[&str], input: &str) -> Said {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        // One that doesn't read to the end is no reason to stop here: what it says is what counts.
        let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { out: text(stdout), err: text(stderr), code: status.code() }
    }

    /// Runs a command that goes well, and gives what it prints.
    pub fn ask(&self, args: &[&str]) -> String {
        let said = self.tell(args, "");
        assert_eq!(said.code, Some(0), "{args:?}: {}{}", said.out, said.err);
        said.out
    }

    /// The same, with a line of JSON for each thing that it prints.
    pub fn json(&self, args: &[&str]) -> Vec<Value> {
        lines(&self.ask(args))
    }

    /// Has a message accepted, and gives its id.
    pub fn send(&self, message: &Value) -> String {
        let said = self.tell(&["send", "--from-json", "-", "--json"], &message.to_string());
        assert!(!said.out.is_empty(), "{}", said.err);
        let answer: Value = serde_json::from_str(&said.out).unwrap();
        answer["id"].as_str().unwrap().to_owned()
    }

    /// Waits until a message has this status.
    pub fn until(&self, id: &str, status: &str) {
        until(&format!("{id} is {status}"), || self.json(&["show", id, "--json"])[0]["status"] == status);
    }
}

/// Lines of JSON.
pub fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
