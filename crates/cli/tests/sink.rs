//! `redeliver sink` as a real process: what it receives, how it is told, and how it ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod process;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use process::{Place, Process, Signal};
use serde_json::Value;

/// Starts a sink on a port that the system chooses, and gives where.
fn start(place: &Place, args: &str) -> (Process, String) {
    let process = place.start(&format!("sink --listen 127.0.0.1:0 {args}"));
    process.logs("sink listening on ");
    let log = process.log();
    let at = log.split("sink listening on ").nth(1).unwrap().lines().next().unwrap().to_owned();
    (process, at)
}

/// Hands over a mail, and gives the first word of the last answer; nothing if there was none.
fn hand_over(at: &str, to: &str) -> String {
    let stream = TcpStream::connect(at).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut hear = || {
        let mut line = String::new();
        while line.as_bytes().get(3).is_none_or(|byte| *byte == b'-') {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return String::new();
            }
        }
        line.split(' ').next().unwrap().to_owned()
    };
    hear();
    let lines = [
        "EHLO test",
        "MAIL FROM:<a@a.test>",
        &format!("RCPT TO:<{to}>"),
        "DATA",
        "Subject: hi\r\n\r\nhello\r\n.",
    ];
    let mut code = String::new();
    for line in lines {
        (&stream).write_all(format!("{line}\r\n").as_bytes()).unwrap();
        code = hear();
        if !code.starts_with(['2', '3']) {
            break;
        }
    }
    code
}

#[test]
fn a_running_sink_is_told_asked_emptied_and_stopped() {
    let place = Place::new("");
    let (process, at) = start(&place, "--script=defer");
    assert_eq!(hand_over(&at, "b@b.test"), "451");

    let told = place.run(&format!("sink tell lose;at;data;cut --at {at}"));
    assert_eq!(told.code, Some(2), "{}", told.out);
    assert!(
        told.err.contains("cannot read the rule \"at\"") && told.err.contains("greylist"),
        "{}",
        told.err
    );
    let told = place.run(&format!("sink tell lose --at {at}"));
    assert_eq!((told.code, told.out.as_str()), (Some(0), "after dot cut\n"), "{}", told.err);
    assert_eq!(hand_over(&at, "b@b.test"), "");
    let told = place.run(&format!("sink tell --at {at}"));
    assert_eq!((told.code, told.out.as_str()), (Some(0), "accept\n"), "{}", told.err);
    assert_eq!(hand_over(&at, "c@b.test"), "250");

    let listed = place.run(&format!("sink list --json --at {at}"));
    let mails: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(mails[0]["answered"], false, "{mails}");
    assert_eq!((&mails[1]["to"][0], &mails[1]["subject"]), (&Value::from("c@b.test"), &Value::from("hi")));
    assert!(mails[1]["received_at"].as_i64().unwrap() > 0);
    let listed = place.run(&format!("sink list 1 --at {at}")).out;
    assert!(
        listed.contains("c@b.test") && listed.contains("accepted") && !listed.contains(" b@b.test"),
        "{listed}"
    );

    assert_eq!(place.run(&format!("sink show 2 --at {at}")).out, "Subject: hi\r\n\r\nhello\r\n");
    let missing = place.run(&format!("sink show 3 --at {at}"));
    assert_eq!((missing.code, missing.err.as_str()), (Some(1), "redeliver: there is no mail 3\n"));
    assert_eq!(place.run(&format!("sink clear --at {at}")).out, "2 forgotten\n");
    assert_eq!(place.run(&format!("sink list --at {at}")).out, "no mails\n");

    process.signal(Signal::TERM);
    let (status, log) = process.end();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("stopped by SIGTERM"), "{log}");
    let gone = place.run(&format!("sink list --at {at}"));
    assert_eq!(gone.code, Some(1));
    assert!(gone.err.contains("is one running there?"), "{}", gone.err);
}

#[test]
fn recipients_are_magic_unless_they_must_not_be() {
    let place = Place::new("");
    let (_process, at) = start(&place, "");
    assert_eq!(hand_over(&at, "refuse@b.test"), "550");
    let (_process, at) = start(&place, "--no-magic");
    assert_eq!(hand_over(&at, "refuse@b.test"), "250");
}

#[test]
fn what_it_kept_is_there_at_the_next_start() {
    let place = Place::new("");
    let (process, at) = start(&place, "--keep mails");
    assert_eq!(hand_over(&at, "b@b.test"), "250");
    process.signal(Signal::INT);
    process.end();
    assert_eq!(std::fs::read(place.path("mails/000001.eml")).unwrap(), b"Subject: hi\r\n\r\nhello\r\n");
    let (_process, at) = start(&place, "--keep mails");
    assert!(place.run(&format!("sink list --at {at}")).out.contains("b@b.test"));
}

#[test]
fn an_encrypted_sink_gives_its_certificate_and_takes_commands() {
    let place = Place::new("");
    let (_process, at) = start(&place, "--tls implicit --ca ca.pem --login bob:secret");
    assert!(std::fs::read_to_string(place.path("ca.pem")).unwrap().contains("BEGIN CERTIFICATE"));
    assert_eq!(place.run(&format!("sink list --at {at}")).out, "no mails\n");
}

#[test]
fn what_cannot_be_run_is_told_with_the_reason() {
    let place = Place::new("");
    let check = |args: &str, words: &str| {
        let said = place.run(&format!("sink {args}"));
        assert_eq!(said.code, Some(2), "{args}: {}", said.err);
        assert!(said.err.contains(words), "{args}: {}", said.err);
    };
    check("--listen 0.0.0.0:2525", "loopback only");
    check("--script=bounce", "bounce is nothing that can be done");
    check("--login bob", "USER:PASSWORD");
    check("--ca ca.pem", "--tls");
    check("--tls sometimes", "starttls");
}

/// A sink whose lines on standard output are read.
struct Heard {
    child: Child,
    at: String,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Heard {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_redeliver"))
            .args(["sink", "--listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.take().unwrap().by_ref()).read_line(&mut said).unwrap();
        let at = said.trim().strip_prefix("sink listening on ").unwrap().to_owned();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, at, lines }
    }

    fn next(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        // One that has ended already can't be killed, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn people_see_a_line_for_whatever_happens() {
    let mut sink = Heard::start(&["--script", "defer 451 later x1"]);
    hand_over(&sink.at, "b@b.test");
    hand_over(&sink.at, "b@b.test");
    let line = sink.next();
    assert!(line.ends_with("at rcpt from a@a.test to b@b.test: defer 451 later"), "{line}");
    let line = sink.next();
    assert!(line.ends_with("mail 1: a@a.test to 1 recipient, \"hi\", 22 bytes, accepted"), "{line}");
}

#[test]
fn programs_see_json() {
    let mut sink = Heard::start(&["--json"]);
    hand_over(&sink.at, "lose@b.test");
    let mut next = || serde_json::from_str::<Value>(&sink.next()).unwrap();
    let kept = next();
    assert_eq!((&kept["event"], &kept["mail"]["answered"]), (&Value::from("mail.kept"), &Value::from(false)));
    let played = next();
    assert_eq!((&played["stage"], &played["action"]), (&Value::from("after dot"), &Value::from("cut")));
}
