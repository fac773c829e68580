//! The first minute of somebody new, who has run `make run`, opens the page and reads nothing.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use redeliver_servers::free_port;
use rustix::process::{Pid, Signal, kill_process};

use crate::browser::Visit;
use crate::story::root;

/// `scripts/run`, which is what `make run` runs, until it goes out of scope.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        // It ends what it has begun.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

#[test]
fn somebody_new_sees_in_a_minute_that_a_mail_fails_is_tried_again_and_why() {
    let dir = tempfile::tempdir().unwrap();
    let run = Command::new(root().join("scripts/run"))
        .env("REDELIVER", Path::new(env!("CARGO_BIN_EXE_redeliver")))
        .env("RUN_DIR", dir.path())
        .env("HTTP_PORT", free_port().to_string())
        .env("SINK_PORT", free_port().to_string())
        .stdout(Stdio::piped())
        .spawn();
    let mut run = Run(run.unwrap());
    let mut said = run.0.stdout.take().unwrap();
    let mut told = String::new();
    let mut bytes = [0; 4_096];
    while !told.contains("Ctrl-C ends everything") {
        let len = said.read(&mut bytes).unwrap();
        assert!(len > 0, "it ended: {told}");
        told.push_str(&String::from_utf8_lossy(&bytes[..len]));
    }
    // The first thing that it says is where to go, and with what.
    let (page, rest) =
        told.trim_start().strip_prefix("Open ").unwrap().split_once(" and log in with the key ").unwrap();
    let key = rest.split_whitespace().next().unwrap();
    let mut visit = Visit::begin(page.strip_suffix("/admin").unwrap());
    visit.log_in(key);
    visit.until("document.querySelector('.card.warning')?.innerText.includes('1')");
    assert!(visit.text(".card.warning").contains("tried again by themselves"));
    assert!(visit.text(".card.alarm").contains("retry or dismiss them"));
    visit.look("first-minute");
    visit.browser.click_through(".card.warning a");
    visit.browser.click_through("a.row");
    // Why, when next, and what if that fails too, in words.
    let sentence = visit.text(".sentence");
    assert!(
        sentence.starts_with("It failed and is tried again in ") && sentence.contains("try again later"),
        "{sentence}"
    );
    assert!(visit.text("li.next").contains("is next"), "{}", visit.text(".timeline"));
    assert!(visit.text("li.ahead").contains("if that fails"));
    visit.look("first-message");
    // And without anybody's doing, the next try comes.
    visit.until("document.querySelectorAll('.timeline li.warning').length >= 2");
    visit.is_content();
}
