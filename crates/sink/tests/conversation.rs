//! What a sink keeps and says when nothing goes wrong, and what it answers to whoever has no manners.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client;

use client::{Client, PATIENCE, sink};
use redeliver_sink::{Limits, Options, Sink};
use std::sync::Arc;
use std::time::Duration;

async fn limited(limits: Limits) -> Sink {
    Sink::start(Options { limits, ..Options::default() }).await.unwrap()
}

#[tokio::test]
async fn a_mail_is_kept_as_it_was_meant() {
    let clock: redeliver_sink::ClockFn = Arc::new(|| 1_700_000_000_000);
    let sink = Sink::start(Options { clock: Some(clock), ..Options::default() }).await.unwrap();
    let mut client = Client::greet(&sink).await;
    client.begins("a@a.test", &["b@b.test", "c@b.test"]).await;
    client.sends("Message-ID: <1@a.test>\r\nSubject: hi\r\n\r\n..\r\n..dots\r\n\u{e4}").await;
    client.hears("250 2.0.0 kept as 1").await;
    client.begins("", &["b@b.test"]).await;
    client.sends("").await;
    client.hears("250").await;
    let mails = sink.wait_for(2, PATIENCE).await;
    assert_eq!(
        (mails[0].number, mails[0].received_at, mails[0].answered),
        (1, Some(1_700_000_000_000), true)
    );
    assert_eq!((mails[0].from.as_str(), mails[0].to.join(",")), ("a@a.test", "b@b.test,c@b.test".to_owned()));
    let meant = "Message-ID: <1@a.test>\r\nSubject: hi\r\n\r\n.\r\n.dots\r\n\u{e4}\r\n";
    assert_eq!(str::from_utf8(&mails[0].data).unwrap(), meant);
    assert_eq!(mails[0].message_id.as_deref(), Some("<1@a.test>"));
    assert_eq!(mails[0].listed().subject.as_deref(), Some("hi"));
    assert!(!mails[0].tls && mails[0].login.is_none());
    assert_eq!((mails[1].number, mails[1].from.as_str(), &mails[1].data[..]), (2, "", b"\r\n".as_slice()));
}

#[tokio::test]
async fn it_says_what_it_can_do() {
    let sink = sink("").await;
    let mut client = Client::connect(&sink).await;
    client.hears("220").await;
    let answer = client.says("EHLO test", "250-").await;
    for word in ["SIZE 10485760", "8BITMIME", "SMTPUTF8", "PIPELINING", "ENHANCEDSTATUSCODES"] {
        assert!(answer.contains(word), "{word} in {answer}");
    }
    assert!(!answer.contains("STARTTLS") && !answer.contains("AUTH"), "{answer}");
    client.says("HELO test", "250 localhost").await;
    client.says("NOOP", "250").await;
    client.says("VRFY bob", "252").await;
    client.says("STARTTLS", "503").await;
    client.says("AUTH PLAIN AGEAYg==", "502").await;
    client.says("QUIT", "221").await;
    client.is_cut().await;
}

#[tokio::test]
async fn what_comes_in_the_wrong_order_is_told_so() {
    let sink = sink("").await;
    let mut client = Client::connect(&sink).await;
    client.hears("220").await;
    client.says("MAIL FROM:<a@a.test>", "503").await;
    client.says("EHLO test", "250").await;
    client.says("RCPT TO:<b@b.test>", "503").await;
    client.says("DATA", "503").await;
    client.says("MAIL FROM:<a@a.test>", "250").await;
    client.says("MAIL FROM:<a@a.test>", "503").await;
    client.says("DATA", "554").await;
    client.says("RSET", "250").await;
    client.says("RCPT TO:<b@b.test>", "503").await;
}

#[tokio::test]
async fn a_pipelined_conversation_is_answered_in_order() {
    let sink = sink("").await;
    let mut client = Client::connect(&sink).await;
    client
        .send(b"EHLO test\r\nMAIL FROM:<a@a.test>\r\nRCPT TO:<b@b.test>\r\nDATA\r\nhello\r\n.\r\nQUIT\r\n")
        .await;
    for code in ["220", "250", "250", "250", "354", "250", "221"] {
        client.hears(code).await;
    }
    client.is_cut().await;
    assert_eq!(sink.mails().len(), 1);
}

#[tokio::test]
async fn a_mail_that_is_too_big_is_refused_when_announced_and_when_sent() {
    let sink = limited(Limits { message_bytes_max: 1_000, ..Limits::default() }).await;
    let mut client = Client::greet(&sink).await;
    client.says("MAIL FROM:<a@a.test> SIZE=1001", "552").await;
    client.says("MAIL FROM:<a@a.test> SIZE=1000", "250").await;
    client.says("RCPT TO:<b@b.test>", "250").await;
    client.sends(&"a".repeat(999)).await;
    client.hears("552").await;
    client.begins("a@a.test", &["b@b.test"]).await;
    client.sends(&"a".repeat(998)).await;
    client.hears("250").await;
    assert_eq!(sink.mails().len(), 1);
}

#[tokio::test]
async fn whoever_sends_without_end_is_cut_off() {
    let limits = Limits { message_bytes_max: 1_000, line_bytes_max: 1_000, ..Limits::default() };
    let sink = limited(limits).await;
    let mut client = Client::greet(&sink).await;
    client.send(&[b'a'; 20_000]).await;
    client.is_cut().await;
    let mut client = Client::greet(&sink).await;
    client.begins("a@a.test", &["b@b.test"]).await;
    client.says("DATA", "354").await;
    client.send(&[b'a'; 20_000]).await;
    client.is_cut().await;
    assert_eq!(sink.mails(), []);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused_and_the_next_one_read() {
    let sink = sink("").await;
    let mut client = Client::greet(&sink).await;
    client.says(&format!("NOOP {}", "a".repeat(20_000)), "500").await;
    client.says("NOOP", "250").await;
    client.says("\0\u{1}", "500").await;
    client.send(b"\xff\xfe\r\n").await;
    client.hears("500").await;
    client.send(b"NOOP\n").await;
    client.hears("250").await;
}

#[tokio::test]
async fn recipients_and_connections_are_counted() {
    let sink = limited(Limits { recipients_max: 2, connections_max: 1, ..Limits::default() }).await;
    let mut client = Client::greet(&sink).await;
    client.begins("a@a.test", &["b@b.test", "c@b.test"]).await;
    client.says("RCPT TO:<d@b.test>", "452").await;
    let mut second = Client::connect(&sink).await;
    second.hears("421").await;
    second.is_cut().await;
}

#[tokio::test]
async fn the_oldest_mails_go_when_there_are_too_many() {
    let dropped: Arc<std::sync::Mutex<Vec<u64>>> = Arc::default();
    let told = Arc::clone(&dropped);
    let watcher: redeliver_sink::WatcherFn = Arc::new(move |seen| {
        if let redeliver_sink::Seen::Dropped(number) = seen {
            told.lock().unwrap().push(*number);
        }
    });
    let limits = Limits { mails_max: 3, kept_bytes_max: 100, ..Limits::default() };
    let sink = Sink::start(Options { limits, watcher: Some(watcher), ..Options::default() }).await.unwrap();
    let mut client = Client::greet(&sink).await;
    for data in ["1", "2", "3", "4", &"5".repeat(95)] {
        client.begins("a@a.test", &["b@b.test"]).await;
        client.sends(data).await;
        client.hears("250").await;
    }
    assert_eq!(sink.mails().iter().map(|mail| mail.number).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(*dropped.lock().unwrap(), [1, 2, 3]);
}

#[tokio::test]
async fn whoever_is_silent_for_too_long_is_told_to_leave() {
    let sink = limited(Limits { silence: Duration::from_millis(50), ..Limits::default() }).await;
    let mut client = Client::connect(&sink).await;
    client.hears("220").await;
    client.hears("421").await;
    client.is_cut().await;
}

#[tokio::test]
async fn an_address_beyond_ascii_needs_smtputf8() {
    let sink = sink("").await;
    let mut client = Client::greet(&sink).await;
    client.says("MAIL FROM:<a@a.test>", "250").await;
    client.says("RCPT TO:<\u{e4}@b.test>", "553").await;
    client.says("RSET", "250").await;
    client.says("MAIL FROM:<\u{e4}@a.test>", "553").await;
    client.says("MAIL FROM:<\u{e4}@a.test> SMTPUTF8 BODY=8BITMIME", "250").await;
    client.says("RCPT TO:<\u{f6}@b.test>", "250").await;
}

#[tokio::test]
async fn a_stopped_sink_frees_its_port_and_ends_every_conversation() {
    let first = sink("hang").await;
    let mut client = Client::greet(&first).await;
    client.says("MAIL FROM:<a@a.test>", "250").await;
    client.send(b"RCPT TO:<b@b.test>\r\n").await;
    let listen = first.address();
    first.stop().await;
    client.is_cut().await;
    let second = Sink::start(Options { listen, ..Options::default() }).await.unwrap();
    Client::greet(&second).await;
}

#[tokio::test]
async fn it_listens_on_loopback_only() {
    let listen = "0.0.0.0:0".parse().unwrap();
    let error = Sink::start(Options { listen, ..Options::default() }).await.err().unwrap();
    assert!(error.to_string().contains("loopback only"), "{error}");
}

#[tokio::test]
async fn no_garbage_makes_it_stop_listening() {
    let sink = sink("").await;
    // The same on every run: bytes of a linear congruence, in pieces of all lengths.
    let mut state: u32 = 1;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let verbs: [&[u8]; 8] =
        [b"MAIL FROM:", b"RCPT TO:<", b"AUTH ", b"XTELL ", b"XLIST ", b"XSHOW ", b"EHLO ", b"DATA\r\n"];
    for length in 0..300 {
        let mut client = Client::connect(&sink).await;
        let mut said = verbs[length % verbs.len()].to_vec();
        said.extend((0..length).map(|_| byte()));
        said.extend_from_slice(b"\r\n.\r\nQUIT\r\n");
        client.send(&said).await;
        while !client.answer().await.is_empty() {}
    }
    let mut client = Client::connect(&sink).await;
    client.hears("220").await;
}
