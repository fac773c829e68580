//! A publisher and a consumer of another make on RabbitMQ (pika), and what arrives there.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{python, root, until};

/// Python's client at work.
pub struct Peer(Child);

impl Peer {
    pub fn start(args: &[&str]) -> Self {
        let mut command = Command::new(python());
        command.arg(root().join("tests/peers/broker.py")).args(args).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Waits until it says this word.
    pub fn says(&mut self, word: &str) {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A consumer that has begun: it makes these queues, and writes down what comes.
pub fn consumer(url: &str, queues: &str, out: &Path, more: &[&str]) -> Peer {
    let out = out.display().to_string();
    let what = ["consume", "--url", url, "--queues", queues, "--out", &out];
    let mut peer = Peer::start(&[&what[..], more].concat());
    peer.says("ready");
    peer
}

/// What a consumer writes down.
pub struct Arrivals {
    file: File,
    text: Vec<u8>,
    lines: usize,
}

impl Arrivals {
    pub fn of(out: &Path) -> Self {
        Self { file: File::open(out).unwrap(), text: Vec::new(), lines: 0 }
    }

    /// How many lines there are by now.
    pub fn count(&mut self) -> usize {
        let known = self.text.len();
        self.file.read_to_end(&mut self.text).unwrap();
        self.lines += self.text[known..].iter().filter(|byte| **byte == b'\n').count();
        self.lines
    }

    /// What has arrived by now.
    pub fn all(&mut self) -> Vec<Value> {
        self.count();
        // A line that is being written has no end yet.
        let whole = self.text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        whole.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// Waits until so many different messages have arrived, for as long as there are more and more of them.
    pub fn wait_for(&mut self, count: usize) -> Vec<Value> {
        loop {
            let all = self.all();
            let missing = count.saturating_sub(ids(&all).len());
            if missing == 0 {
                return all;
            }
            let (mut known, wanted) = (all.len(), all.len() + missing);
            while known < wanted {
                let what = format!("another message than the {known} is back, {wanted} are to be");
                until(&what, || self.count() > known);
                known = self.lines;
            }
        }
    }
}

/// What arrived, by what it is called.
pub fn ids(arrived: &[Value]) -> HashMap<String, Vec<&Value>> {
    let mut ids: HashMap<String, Vec<&Value>> = HashMap::new();
    for line in arrived {
        ids.entry(line["id"].as_str().unwrap_or_default().to_owned()).or_default().push(line);
    }
    ids
}

/// How much later than its time a message came.
pub fn late_ms(line: &Value) -> i64 {
    let body = STANDARD.decode(line["body"].as_str().unwrap()).unwrap();
    let said: Value = serde_json::from_slice(&body[..body.len() - 2]).unwrap();
    line["at_ms"].as_i64().unwrap() - said["not_before_ms"].as_i64().unwrap()
}
