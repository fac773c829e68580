//! What a script does to a client, at each stage and in each way.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client;

use client::{Client, PATIENCE, sink};
use redeliver_sink::{Options, Sink};
use std::time::Duration;

/// How far a client comes that hands over a mail from `a@a.test` to `b@b.test`: each answer's first word, or `-` for
/// a connection that was closed.
async fn handed_over(sink: &Sink) -> String {
    handed_over_to(sink, "b@b.test").await
}

async fn handed_over_to(sink: &Sink, to: &str) -> String {
    let mut client = Client::connect(sink).await;
    let mut codes = Vec::new();
    let lines = ["EHLO test", "MAIL FROM:<a@a.test>", &format!("RCPT TO:<{to}>"), "DATA", "hello\r\n."];
    for line in [None].into_iter().chain(lines.map(Some)) {
        if let Some(line) = line {
            client.send(format!("{line}\r\n").as_bytes()).await;
        }
        let answer = client.answer().await;
        let Some(code) = answer.split([' ', '-']).next().filter(|code| !code.is_empty()) else {
            codes.push("-".to_owned());
            break;
        };
        codes.push(code.to_owned());
        if !code.starts_with(['2', '3']) {
            break;
        }
    }
    codes.join(" ")
}

#[tokio::test]
async fn every_stage_can_be_answered_badly_or_cut() {
    let check = async |script: &str, expected: &str, kept: usize| {
        let sink = sink(script).await;
        assert_eq!(handed_over(&sink).await, expected, "{script}");
        assert_eq!(sink.mails().len(), kept, "{script}");
        assert!(sink.mails().iter().all(|mail| mail.answered == expected.ends_with("354 250")), "{script}");
    };
    check("", "220 250 250 250 354 250", 1).await;
    check("accept", "220 250 250 250 354 250", 1).await;
    check("at greeting refuse 554 go away", "554", 0).await;
    check("at greeting defer 421 later", "421", 0).await;
    check("at greeting cut", "-", 0).await;
    check("at greeting garble", "??", 0).await;
    check("at ehlo defer 451 later", "220 451", 0).await;
    check("at ehlo cut", "220 -", 0).await;
    check("at mail refuse 550 not you", "220 250 550", 0).await;
    check("at mail cut", "220 250 -", 0).await;
    check("at mail garble", "220 250 ??", 0).await;
    check("defer 451 4.7.1 try later", "220 250 250 451", 0).await;
    check("at rcpt refuse 550 5.1.1 no such user", "220 250 250 550", 0).await;
    check("cut", "220 250 250 -", 0).await;
    check("garble", "220 250 250 ??", 0).await;
    check("at data refuse 554 spam", "220 250 250 250 554", 0).await;
    check("at data cut", "220 250 250 250 -", 0).await;
    check("at dot defer 452 no room", "220 250 250 250 354 452", 0).await;
    check("at dot cut", "220 250 250 250 354 -", 0).await;
    check("after dot cut", "220 250 250 250 354 -", 1).await;
    check("lose", "220 250 250 250 354 -", 1).await;
    check("after dot defer 451 kept all the same", "220 250 250 250 354 451", 1).await;
    check("after dot garble", "220 250 250 250 354 ??", 1).await;
    check("slow 1ms; at data slow 1ms", "220 250 250 250 354 250", 1).await;
    check("lose for eve@*", "220 250 250 250 354 250", 1).await;
    check("lose for *@b.test", "220 250 250 250 354 -", 1).await;
}

#[tokio::test]
async fn the_answer_is_word_for_word_the_one_of_the_script() {
    let sink = sink("defer 451 4.7.1 try later").await;
    let mut client = Client::greet(&sink).await;
    client.says("MAIL FROM:<a@a.test>", "250").await;
    assert_eq!(client.says("RCPT TO:<b@b.test>", "451").await, "451 4.7.1 try later\r\n");
}

#[tokio::test]
async fn a_refused_recipient_leaves_the_others() {
    let sink = sink("refuse 550 gone for bob@*").await;
    let mut client = Client::greet(&sink).await;
    client.says("MAIL FROM:<a@a.test>", "250").await;
    client.says("RCPT TO:<Bob@b.test>", "550 gone").await;
    client.says("DATA", "554").await;
    client.says("RCPT TO:<eve@b.test>", "250").await;
    client.sends("hello").await;
    client.hears("250").await;
    assert_eq!(sink.mails()[0].to, ["eve@b.test"]);
}

#[tokio::test]
async fn a_refused_greeting_leaves_only_the_way_out() {
    let sink = sink("at greeting refuse 554 go away").await;
    let mut client = Client::connect(&sink).await;
    client.hears("554 go away").await;
    client.says("EHLO test", "503").await;
    client.says("QUIT", "221").await;
    client.is_cut().await;
}

#[tokio::test]
async fn a_code_of_421_ends_the_conversation() {
    let sink = sink("at mail defer 421 4.3.2 going down").await;
    let mut client = Client::greet(&sink).await;
    client.says("MAIL FROM:<a@a.test>", "421 4.3.2 going down").await;
    client.is_cut().await;
}

#[tokio::test]
async fn a_hanging_sink_says_nothing_and_does_not_close() {
    let sink = sink("at greeting hang x1; hang x1; after dot hang x1").await;
    let mut client = Client::connect(&sink).await;
    client.hears_nothing().await;
    let mut client = Client::greet(&sink).await;
    client.says("MAIL FROM:<a@a.test>", "250").await;
    client.send(b"RCPT TO:<b@b.test>\r\n").await;
    client.hears_nothing().await;
    let mut client = Client::greet(&sink).await;
    client.begins("a@a.test", &["b@b.test"]).await;
    client.sends("hello").await;
    let mails = sink.wait_for(1, PATIENCE).await;
    assert!(mails.len() == 1 && !mails[0].answered);
    client.hears_nothing().await;
}

#[tokio::test]
async fn a_slow_answer_takes_its_time() {
    let sink = sink("at mail slow 200ms").await;
    let mut client = Client::greet(&sink).await;
    let start = tokio::time::Instant::now();
    client.says("MAIL FROM:<a@a.test>", "250").await;
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn a_rule_ends_after_its_number_of_times() {
    let sink = sink("defer x2; refuse x1").await;
    let mut ends = Vec::new();
    for _ in 0..4 {
        ends.push(handed_over(&sink).await.split(' ').next_back().unwrap().to_owned());
    }
    assert_eq!(ends, ["451", "451", "550", "250"]);
    assert_eq!(sink.connections(), 4);
}

#[tokio::test]
async fn a_greylist_takes_the_second_try() {
    let sink = sink("greylist").await;
    assert_eq!(handed_over(&sink).await, "220 250 250 450");
    assert_eq!(handed_over_to(&sink, "c@b.test").await, "220 250 250 450");
    assert_eq!(handed_over(&sink).await, "220 250 250 250 354 250");
}

#[tokio::test]
async fn a_running_sink_can_be_told_another_script() {
    let sink = sink("refuse").await;
    let mut client = Client::greet(&sink).await;
    client.says("MAIL FROM:<a@a.test>", "250").await;
    client.says("RCPT TO:<b@b.test>", "550").await;
    sink.tell("defer".parse().unwrap());
    client.says("RCPT TO:<b@b.test>", "451").await;
    sink.tell("".parse().unwrap());
    client.says("RCPT TO:<b@b.test>", "250").await;
}

#[tokio::test]
async fn magic_recipients_need_no_script() {
    let sink = Sink::start(Options { magic: true, ..Options::default() }).await.unwrap();
    let check = async |to: &str, expected: &str| {
        assert_eq!(handed_over_to(&sink, to).await, expected, "{to}");
    };
    check("defer@b.test", "220 250 250 451").await;
    check("refuse@b.test", "220 250 250 550").await;
    check("cut@b.test", "220 250 250 -").await;
    check("garble@b.test", "220 250 250 ??").await;
    check("lose@b.test", "220 250 250 250 354 -").await;
    check("greylist@b.test", "220 250 250 450").await;
    check("greylist@b.test", "220 250 250 250 354 250").await;
    check("deferred@b.test", "220 250 250 250 354 250").await;
    let mut client = Client::greet(&sink).await;
    client.says("MAIL FROM:<a@a.test>", "250").await;
    client.send(b"RCPT TO:<hang@b.test>\r\n").await;
    client.hears_nothing().await;
}

#[tokio::test]
async fn without_mails_waiting_ends_when_the_time_is_over() {
    let sink = sink("").await;
    assert_eq!(sink.wait_for(1, Duration::from_millis(10)).await, []);
}
