//! A real browser, driven over a pipe: it is told what to do in its own protocol, and clicks like a person.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// How long the browser may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// The browser reads commands from descriptor 3 and answers on 4.
const START: &str = "exec chromium \"$@\" 3<&0 4>&1 >/dev/null 2>/dev/null </dev/null";

const FLAGS: [&str; 13] = [
    "--remote-debugging-pipe",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--lang=en-GB",
    "--window-size=1280,800",
];

/// A browser with one page.
pub struct Chromium {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    sent: u64,
    session: Option<String>,
    profile: PathBuf,
    /// What went wrong on the page, in the browser's words.
    pub complaints: Vec<String>,
    loads: usize,
}

impl Chromium {
    /// Starts a browser that keeps everything in this directory, and deletes it afterwards.
    pub fn start(profile: &Path) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", START, "chromium"])
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a browser: scripts/ensure installs chromium");
        let to = child.stdin.take().unwrap();
        let from = listen(child.stdout.take().unwrap());
        let profile = profile.to_owned();
        let mut this =
            Self { child, to, from, sent: 0, session: None, profile, complaints: Vec::new(), loads: 0 };
        let target = this.tell("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = this.tell("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        this.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            this.tell(&format!("{domain}.enable"), json!({}));
        }
        this
    }

    /// Goes to an address, and waits until it is there.
    pub fn go(&mut self, url: &str) {
        let loads = self.loads;
        self.tell("Page.navigate", json!({ "url": url }));
        self.await_load(loads);
    }

    /// What an expression on the page comes to.
    pub fn ask(&mut self, expression: &str) -> Value {
        let said = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.tell("Runtime.evaluate", said);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Presses the mouse in the middle of what this selects.
    pub fn click(&mut self, selector: &str) {
        let selector = json!(selector);
        let place = self.ask(&format!(
            "(() => {{ const e = document.querySelector({selector}); if (!e) return null; \
               e.scrollIntoView({{block: 'center', behavior: 'instant'}}); const b = e.getBoundingClientRect(); \
               return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
        ));
        assert!(place.is_array(), "nothing to click: {selector}");
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.tell("Input.dispatchMouseEvent", event);
        }
    }

    /// Clicks what leads to another page, and waits until it is there.
    pub fn click_through(&mut self, selector: &str) {
        let loads = self.loads;
        self.click(selector);
        self.await_load(loads);
    }

    /// Writes where the cursor is.
    pub fn write(&mut self, text: &str) {
        self.tell("Input.insertText", json!({ "text": text }));
    }

    /// Presses a key that writes a character.
    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { key } else { "" };
            self.tell("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "text": text }));
        }
    }

    /// Presses a key that leads to another page, and waits until it is there.
    pub fn press_through(&mut self, key: &str) {
        let loads = self.loads;
        self.press(key);
        self.await_load(loads);
    }

    /// Tells the browser something, and waits for its answer.
    pub fn tell(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let mut said = json!({ "id": self.sent, "method": method, "params": params });
        if let Some(session) = &self.session {
            said["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&said).unwrap();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let heard = self.hear(method);
            if heard["id"] == json!(self.sent) {
                assert!(heard.get("error").is_none(), "{method}: {heard}");
                return heard["result"].clone();
            }
        }
    }

    fn await_load(&mut self, loads: usize) {
        while self.loads == loads {
            self.hear("a page");
        }
    }

    /// The next thing that the browser says, noted if it is about the page.
    fn hear(&mut self, waiting_for: &str) -> Value {
        let heard = self.from.recv_timeout(PATIENCE);
        let heard = heard.unwrap_or_else(|_| panic!("the browser says nothing; waited for {waiting_for}"));
        match heard["method"].as_str() {
            Some("Page.loadEventFired") => self.loads += 1,
            // Not a fault of the page: a key that was pressed before the page could set its focus, on a busy machine.
            Some("Log.entryAdded") if heard["params"]["entry"]["level"] == "info" => {}
            Some("Log.entryAdded" | "Runtime.exceptionThrown") => {
                self.complaints.push(heard["params"].to_string());
            }
            _ => {}
        }
        heard
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Asked first, because only it knows its own children; it may be gone already, and then there is nothing to end.
        let _ = self.to.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        while self.from.recv_timeout(PATIENCE).is_ok() {}
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// Hears on a thread of its own, so that a silent browser is noticed.
fn listen(from: impl std::io::Read + Send + 'static) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut said = Vec::new();
        while from.read_until(0, &mut said).is_ok_and(|count| count > 0) {
            said.pop();
            let Ok(value) = serde_json::from_slice(&said) else { return };
            if sender.send(value).is_err() {
                return;
            }
            said.clear();
        }
    });
    receiver
}
