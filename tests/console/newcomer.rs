//! The first minute of somebody new, who has run `make run`: opens the page and reads nothing, or reads, and says what is
//! written there.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use redeliver_servers::free_port;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::browser::Visit;
use crate::story::{root, until, until_some, until_some_within};

/// What somebody new is told to expect within.
const MINUTE: Duration = Duration::from_secs(60);

/// `scripts/run`, which is what `make run` runs, until it goes out of scope.
struct Run {
    child: Child,
    /// What it has told.
    told: String,
    _dir: Rc<TempDir>,
}

impl Run {
    fn begin() -> Self {
        Self::begin_in(&Rc::new(tempfile::tempdir().unwrap()))
    }

    /// Where it may have been run before.
    fn begin_in(dir: &Rc<TempDir>) -> Self {
        let child = Command::new(root().join("scripts/run"))
            .env("REDELIVER", Path::new(env!("CARGO_BIN_EXE_redeliver")))
            .env("RUN_DIR", dir.path())
            .env("HTTP_PORT", free_port().to_string())
            .env("SINK_PORT", free_port().to_string())
            .stdout(Stdio::piped())
            .spawn();
        let mut run = Self { child: child.unwrap(), told: String::new(), _dir: Rc::clone(dir) };
        let mut said = run.child.stdout.take().unwrap();
        let mut bytes = [0; 4_096];
        while !run.told.contains("Ctrl-C ends everything") {
            let len = said.read(&mut bytes).unwrap();
            assert!(len > 0, "it ended: {}", run.told);
            run.told.push_str(&String::from_utf8_lossy(&bytes[..len]));
        }
        run
    }

    /// The first thing that it says: where to go, and with what.
    fn door(&self) -> (&str, &str) {
        let (page, rest) = self
            .told
            .trim_start()
            .strip_prefix("Open ")
            .unwrap()
            .split_once(" and log in with the key ")
            .unwrap();
        (page.strip_suffix("/admin").unwrap(), rest.split_whitespace().next().unwrap())
    }

    /// Says a command, and answers with what it prints.
    fn say(&self, words: &[&str]) -> String {
        let (url, key) = self.door();
        let mut command = Command::new(env!("CARGO_BIN_EXE_redeliver"));
        command.args(words).env("REDELIVER_URL", url).env("REDELIVER_KEY", key);
        let said = command.output().unwrap();
        assert!(said.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap()
    }

    /// The ids of the messages with this status.
    fn listed(&self, status: &str) -> Vec<String> {
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        self.say(&["list", "--json", "--status", status]).lines().map(id).collect()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // It ends what it has begun.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

#[test]
fn somebody_new_sees_in_a_minute_that_a_mail_fails_is_tried_again_and_why() {
    let run = Run::begin();
    let (url, key) = run.door();
    let mut visit = Visit::begin(url);
    visit.log_in(key);
    visit.until("document.querySelector('.card.warning')?.innerText.includes('1')");
    assert!(visit.text(".card.warning").contains("retried automatically"));
    assert!(visit.text(".card.alarm").contains("retry or dismiss them"));
    visit.look("first-minute");
    visit.browser.click_through(".card.warning a");
    visit.browser.click_through("a.row");
    // Why, when next, and what if that fails too, in words.
    let sentence = visit.text(".sentence");
    assert!(
        sentence.starts_with("It failed and is retried in ") && sentence.contains("try again later"),
        "{sentence}"
    );
    assert!(visit.text("li.next").contains("is next"), "{}", visit.text(".timeline"));
    assert!(visit.text("li.ahead").contains("if that fails"));
    visit.look("first-message");
    // And without anybody's doing, the next try comes.
    visit.until("document.querySelectorAll('.timeline li.warning').length >= 2");
    visit.is_content();
}

#[test]
fn whoever_runs_it_again_later_sees_a_mail_fail_and_be_tried_again_and_no_more_mails_than_before() {
    let dir = Rc::new(tempfile::tempdir().unwrap());
    let listed = |run: &Run| {
        until_some("a mail waits for its next try", || run.listed("retrying").pop());
        until_some("another is given up", || run.listed("dead").pop());
        (run.listed("retrying"), run.listed("dead"))
    };
    let run = Run::begin_in(&dir);
    let first = listed(&run);
    assert_eq!((first.0.len(), first.1.len()), (1, 1));
    // A quarter of an hour later its tries are used up; for those who can't wait, somebody stops it.
    run.say(&["cancel", &first.0[0]]);
    drop(run);
    let run = Run::begin_in(&dir);
    assert_eq!(listed(&run), first, "the same two, and one of them is tried again");
    // If it arrived, because somebody told the mail server to take everything, it can't be started over.
    let sink = run.told.split_once("--at ").unwrap().1.split_whitespace().next().unwrap().to_owned();
    run.say(&["sink", "tell", "accept", "--at", &sink]);
    run.say(&["retry", &first.0[0]]);
    until("it arrives", || run.say(&["sink", "list", "--at", &sink]).contains("defer@example.org"));
    drop(run);
    let run = Run::begin_in(&dir);
    let (waits, dead) = listed(&run);
    assert!(waits.len() == 1 && waits != first.0 && dead == first.1, "{waits:?} {dead:?}");
}

#[test]
fn somebody_new_who_says_what_is_written_there_sees_a_mail_arrive_within_a_minute() {
    let run = Run::begin();
    // What is to be said is indented; the first step ends where the second begins.
    let (first_step, _) = run.told.split_once("2. ").unwrap();
    let commands: String =
        first_step.lines().filter(|line| line.starts_with("  ")).map(|line| format!("{line}\n")).collect();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(&commands).current_dir(root()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut saying = shell.spawn().unwrap();
    until_some_within(MINUTE, "everything is said", || saying.try_wait().unwrap());
    let said = saying.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success(), "{commands}\n{err}");
    assert!(out.contains("\"status\":\"delivered\"") && out.contains("ada@example.org"), "{out}{err}");
}
