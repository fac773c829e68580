//! What a server does to a mail, and what is made of it, over the wire.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod peer;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mail_parser::{MessageParser, MimeHeaders};
use redeliver_core::email::{Attachment, Ics};
use redeliver_core::message::{Fate, RecipientVerdict};
use redeliver_core::outcome::Until;
use redeliver_core::settle::settle;
use redeliver_core::{Failure, Message, Outcome, State, Timestamp};
use redeliver_engine::clock::WallClock;
use redeliver_engine::transport::Transport;
use redeliver_sink::{Options, Sink, Tls as SinkTls};
use redeliver_transports::smtp::{SmtpConfig, SmtpTransport, Tls, UNCONFIGURED};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use peer::*;

/// What a mail to `ada@example.org` comes to with a server that follows this script, and how many mails it keeps.
async fn check(text: &str, expected: &str, kept: usize) {
    let sink = sink(text).await;
    let outcome = carry(&transport_to(&sink), &email(&["ada@example.org"])).await;
    assert_eq!(short(&outcome), expected, "{text}: {outcome:?}");
    assert_eq!(sink.mails().len(), kept, "{text}");
}

#[tokio::test]
async fn each_answer_is_taken_for_what_it_is_where_it_was_given() {
    check("", "delivered", 1).await;
    check("at rcpt defer 451 4.3.0 later", "failed 451 Message", 0).await;
    check("at rcpt refuse 550 5.1.1 no such user", "refused 550", 0).await;
    check("greylist", "failed 450 Message", 0).await;
    check("at rcpt refuse 552 5.2.2 mailbox full", "failed 552 Message", 0).await;
    check("at rcpt refuse 554 5.7.1 blocked by spamhaus", "failed 554 Connection", 0).await;
    check("at rcpt defer 450 4.7.1 slow down", "failed 450 Throttle", 0).await;
    check("at rcpt defer 421 4.3.2 going down", "failed 421 Connection", 0).await;
    check("at greeting defer 421 busy", "failed 421 Connection", 0).await;
    check("at greeting refuse 554 go away", "failed 554 Connection", 0).await;
    check("at ehlo refuse 550 bad name", "failed 550 Connection", 0).await;
    check("at mail refuse 550 5.1.8 bad sender", "refused 550", 0).await;
    check("at mail refuse 530 5.7.0 log in first", "failed 530 Credential", 0).await;
    check("at data refuse 554 5.6.0 no", "refused 554", 0).await;
    check("at data defer 451 no", "failed 451 Message", 0).await;
    check("at dot refuse 554 5.6.0 no", "refused 554", 0).await;
    check("at dot defer 452 4.3.1 disk full", "failed 452 Message", 0).await;
}

#[tokio::test]
async fn a_cut_is_lost_only_after_the_dot() {
    for stage in ["greeting", "ehlo", "mail", "rcpt", "data"] {
        check(&format!("at {stage} cut"), "failed ECONNRESET Connection", 0).await;
    }
    check("at dot cut", "lost", 0).await;
    check("lose", "lost", 1).await;
}

#[tokio::test]
async fn silence_is_lost_only_after_the_dot() {
    let check = async |stage: &str, expected: &str| {
        let sink = sink(&format!("at {stage} hang")).await;
        let content = email(&["ada@example.org"]).to_content().unwrap();
        let outcome = carry_within(&transport_to(&sink), &claimed(1), &content, Duration::from_secs(4)).await;
        assert_eq!(short(&outcome), expected, "{stage}: {outcome:?}");
        assert!(!format!("{outcome:?}").contains("given up"), "it says so itself, in time");
    };
    tokio::join!(
        check("greeting", "failed ETIMEDOUT Connection"),
        check("rcpt", "failed ETIMEDOUT Connection"),
        check("dot", "lost"),
    );
}

#[tokio::test]
async fn each_stage_has_its_own_patience() {
    let sink = sink("at mail hang").await;
    let config = SmtpConfig {
        command_timeout: Duration::from_millis(100),
        ..config(&format!("smtp://{}", sink.address()))
    };
    let outcome = carry(&transport_with(config), &email(&["ada@example.org"])).await;
    assert_eq!(short(&outcome), "failed ETIMEDOUT Connection");
}

#[tokio::test]
async fn nonsense_is_worth_one_fresh_connection_and_then_it_has_failed() {
    check("at rcpt garble", "failed PROTOCOL Connection", 0).await;
    check("at rcpt garble x1", "delivered", 1).await;
    check("at mail refuse 503 5.5.1 out of step x1", "delivered", 1).await;
    check("at greeting garble x1", "delivered", 1).await;
    check("at dot garble", "lost", 0).await;
    let sink = sink("at rcpt garble").await;
    carry(&transport_to(&sink), &email(&["ada@example.org"])).await;
    assert_eq!(sink.connections(), 2);
}

#[tokio::test]
async fn greylisting_is_over_with_the_second_try() {
    let sink = sink("greylist").await;
    let transport = transport_to(&sink);
    let email = email(&["ada@example.org"]);
    assert_eq!(short(&carry(&transport, &email).await), "failed 450 Message");
    assert_eq!(short(&carry(&transport, &email).await), "delivered");
}

#[tokio::test]
async fn recipients_have_a_verdict_each_and_only_the_failed_ones_are_tried_again() {
    let sink = sink("at rcpt refuse 550 5.1.1 no for bob@*; at rcpt defer 450 later for cy@* x1").await;
    let transport = transport_to(&sink);
    let email = email(&["ada@example.org", "bob@example.org", "cy@example.org", "ada@example.org"]);
    let content = email.to_content().unwrap();
    let message = claimed(1);
    let outcome = carry_message(&transport, &message, &content).await;
    let Outcome::Partial(verdicts) = &outcome else { panic!("{outcome:?}") };
    let fates: Vec<&str> = verdicts
        .iter()
        .map(|verdict| match verdict.fate {
            Fate::Delivered => "delivered",
            Fate::Failed(_) => "failed",
            Fate::Refused(_) => "refused",
        })
        .collect();
    assert_eq!(fates, ["delivered", "refused", "failed", "delivered"]);
    let waiting =
        settle(&message, &outcome, &redeliver_conformance::make::route(), Timestamp::from_ms(0)).message;
    let again = Message { state: message.state.clone(), ..waiting };
    let outcome = carry_message(&transport, &again, &content).await;
    let dead = settle(&again, &outcome, &redeliver_conformance::make::route(), Timestamp::from_ms(0)).message;
    assert!(matches!(dead.state, State::Dead { .. }), "bob was refused: {:?}", dead.state);
    assert_eq!(dead.recipients.len(), 4);
    let envelopes: Vec<Vec<String>> = sink.mails().into_iter().map(|mail| mail.to).collect();
    assert_eq!(envelopes, [vec!["ada@example.org"], vec!["cy@example.org"]]);
}

#[tokio::test]
async fn a_message_whose_recipients_all_have_a_verdict_is_not_sent() {
    let sink = sink("").await;
    let refused = RecipientVerdict { index: 0, fate: Fate::Refused(Failure::new("no")) };
    let message = Message { recipients: vec![refused], ..claimed(1) };
    let content = email(&["ada@example.org"]).to_content().unwrap();
    let outcome = carry_message(&transport_to(&sink), &message, &content).await;
    assert_eq!(outcome, Outcome::Partial(vec![]));
    assert_eq!(sink.connections(), 0);
}

#[tokio::test]
async fn connections_are_used_again_also_after_a_refusal() {
    let sink = sink("at rcpt refuse 550 no x1; at data defer 451 no x1; at dot defer 451 no x1").await;
    let transport = transport_to(&sink);
    for expected in ["refused 550", "failed 451 Message", "failed 451 Message", "delivered", "delivered"] {
        assert_eq!(short(&carry(&transport, &email(&["ada@example.org"])).await), expected);
    }
    assert_eq!((sink.connections(), sink.mails().len()), (1, 2));
}

#[tokio::test]
async fn no_more_connections_are_made_than_allowed() {
    let sink = sink("slow 20ms").await;
    let config = SmtpConfig { connections_max: 2, ..config(&format!("smtp://{}", sink.address())) };
    let transport = transport_with(config);
    let email = email(&["ada@example.org"]);
    let outcomes = tokio::join!(
        carry(&transport, &email),
        carry(&transport, &email),
        carry(&transport, &email),
        carry(&transport, &email),
        carry(&transport, &email),
    );
    for outcome in <[Outcome; 5]>::from(outcomes) {
        assert_eq!(short(&outcome), "delivered");
    }
    assert!(sink.connections() <= 2, "{}", sink.connections());
}

#[tokio::test]
async fn a_mail_that_finds_no_connection_free_is_put_off_and_costs_no_try() {
    let sink = sink("at rcpt hang").await;
    let config = SmtpConfig { connections_max: 1, ..config(&format!("smtp://{}", sink.address())) };
    let transport = transport_with(config);
    let content = email(&["ada@example.org"]).to_content().unwrap();
    let (first, second) = (claimed(1), claimed(2));
    let (long, short_time) = (Duration::from_secs(2), Duration::from_millis(300));
    let (_, outcome) = tokio::join!(
        carry_within(&transport, &first, &content, long),
        carry_within(&transport, &second, &content, short_time),
    );
    assert_eq!(short(&outcome), "deferred", "{outcome:?}");
}

#[tokio::test]
async fn a_kept_connection_that_died_is_replaced_within_the_same_try() {
    let first = sink("").await;
    let transport = transport_to(&first);
    let email = email(&["ada@example.org"]);
    assert_eq!(short(&carry(&transport, &email).await), "delivered");
    let address = first.address();
    first.stop().await;
    let second = Sink::start(Options { listen: address, ..Options::default() }).await.unwrap();
    assert_eq!(short(&carry(&transport, &email).await), "delivered");
    // The server is about to close the connection that we kept.
    second.tell(script("at mail defer 421 4.4.2 idle too long x1"));
    assert_eq!(short(&carry(&transport, &email).await), "delivered");
    assert_eq!((second.connections(), second.mails().len()), (2, 2));
}

#[tokio::test]
async fn nobody_there_is_a_failed_try_that_blames_the_connection() {
    let gone = sink("").await;
    let transport = transport_to(&gone);
    gone.stop().await;
    assert_eq!(short(&carry(&transport, &email(&["a@b"])).await), "failed ECONNREFUSED Connection");
}

#[tokio::test]
async fn without_a_server_mails_wait_and_it_is_said_why() {
    let transport =
        SmtpTransport::new("smtp", SmtpConfig::default(), WallClock::new(Timestamp::default())).unwrap();
    let outcome = carry(&transport, &email(&["a@b"])).await;
    let Outcome::Deferred { until: Until::At(_), reason } = outcome else { panic!("{outcome:?}") };
    assert_eq!(&*reason, UNCONFIGURED);
    assert_eq!(transport.lacks().as_deref(), Some(UNCONFIGURED));
    assert_eq!(transport.fixed_destination().as_deref(), Some("smtp"));
}

struct Secure {
    sink: Sink,
    directory: tempfile::TempDir,
}

/// A sink with encryption and a login, and its certificate in a file.
async fn secure(tls: SinkTls) -> Secure {
    let login = Some(("ada".to_owned(), "pass:word".to_owned()));
    let sink = Sink::start(Options { tls, login, ..Options::default() }).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("ca.pem"), sink.ca_pem().unwrap_or_default()).unwrap();
    Secure { sink, directory }
}

impl Secure {
    async fn check(&self, scheme_and_login: &str, trusted: bool, expected: &str) {
        let url = format!("{scheme_and_login}@localhost:{}", self.sink.address().port());
        let ca_file = trusted.then(|| self.directory.path().join("ca.pem"));
        let transport = transport_with(SmtpConfig { ca_file, ..config(&url) });
        let outcome = carry(&transport, &email(&["bob@example.org"])).await;
        assert_eq!(short(&outcome), expected, "{scheme_and_login}: {outcome:?}");
    }
}

#[tokio::test]
async fn logins_go_over_starttls() {
    let peer = secure(SinkTls::StartTls).await;
    peer.check("smtp+starttls://ada:pass%3Aword", true, "delivered").await;
    peer.check("smtp://ada:pass%3Aword", true, "delivered").await;
    peer.check("smtp+starttls://ada:wrong", true, "failed 535 Credential").await;
    peer.check("smtp+starttls://ada:pass%3Aword", false, "failed TLS Connection").await;
    let mails = peer.sink.mails();
    assert!(mails.len() == 2 && mails.iter().all(|mail| mail.tls && mail.login.as_deref() == Some("ada")));
}

#[tokio::test]
async fn logins_go_over_tls_from_the_first_byte() {
    let peer = secure(SinkTls::Implicit).await;
    peer.check("smtps://ada:pass%3Aword", true, "delivered").await;
    peer.check("smtps://ada:wrong", true, "failed 535 Credential").await;
    peer.check("smtps://ada:pass%3Aword", false, "failed TLS Connection").await;
}

#[tokio::test]
async fn a_login_is_never_sent_where_anybody_can_read_it_unless_that_is_meant() {
    let login = Some(("ada".to_owned(), "secret".to_owned()));
    let sink = Sink::start(Options { login, ..Options::default() }).await.unwrap();
    let url = format!("smtp://ada:secret@{}", sink.address());
    let open = SmtpConfig { tls: Some(Tls::Opportunistic), ..config(&url) };
    let outcome = carry(&transport_with(open.clone()), &email(&["a@b"])).await;
    assert_eq!(short(&outcome), "failed AUTH Credential");
    let required = carry(&transport_with(config(&url)), &email(&["a@b"])).await;
    assert_eq!(short(&required), "failed TLS Connection", "it has no STARTTLS: {required:?}");
    assert_eq!(sink.mails().len(), 0);
    let meant = SmtpConfig { auth_without_tls: true, ..open };
    assert_eq!(short(&carry(&transport_with(meant), &email(&["a@b"])).await), "delivered");
    let never = SmtpConfig { tls: Some(Tls::None), ..config(&url) };
    assert!(SmtpTransport::new("smtp", never, WallClock::new(Timestamp::default())).is_err());
}

#[tokio::test]
async fn without_a_login_whoever_encrypts_is_trusted_with_what_would_be_open_otherwise() {
    let sink = Sink::start(Options { tls: SinkTls::StartTls, ..Options::default() }).await.unwrap();
    assert_eq!(short(&carry(&transport_to(&sink), &email(&["a@b"])).await), "delivered");
    assert!(sink.mails()[0].tls);
}

#[tokio::test]
async fn dots_long_lines_and_other_scripts_arrive_byte_for_byte() {
    let sink = sink("").await;
    let transport = transport_to(&sink);
    let calendar = "BEGIN:VCALENDAR\r\n.\r\nSUMMARY:Tee für zwei\nEND:VCALENDAR\r\n";
    let bytes: Vec<u8> = (0..100_000u32).map(|n| (n * 7 % 251) as u8).collect();
    let text = format!(".\n..\n.dot\n{}\nGrüße\n日本語\n", "x".repeat(3_000));
    let mail = redeliver_core::email::Email {
        text: Some(text.clone()),
        html: Some("<p>.</p>".to_owned()),
        ics: Some(Ics { content: calendar.to_owned(), method: "REQUEST".to_owned() }),
        attachments: vec![Attachment {
            name: "Größe.bin".to_owned(),
            content_type: "application/octet-stream".to_owned(),
            base64: STANDARD.encode(&bytes),
        }],
        bcc: vec![mailbox("secret@example.org")],
        ..email(&["ada@example.org"])
    };
    assert_eq!(short(&carry(&transport, &mail).await), "delivered");
    let got = sink.mails().remove(0);
    assert_eq!(got.to, ["ada@example.org", "secret@example.org"]);
    assert!(!String::from_utf8_lossy(&got.data).contains("secret"));
    let read = MessageParser::default().parse(&got.data).unwrap();
    assert_eq!(read.body_text(0).unwrap().replace("\r\n", "\n"), text);
    let calendars: Vec<&[u8]> = read
        .parts
        .iter()
        .filter(|part| {
            part.content_type().is_some_and(|kind| matches!(kind.subtype(), Some("calendar" | "ics")))
        })
        .map(|part| part.contents())
        .collect();
    assert_eq!(calendars, [calendar.as_bytes(), calendar.as_bytes()]);
    let file = read.parts.last().unwrap();
    assert_eq!((file.attachment_name(), file.contents()), (Some("Größe.bin"), &bytes[..]));
}

#[tokio::test]
async fn a_lonely_dot_ends_nothing() {
    let sink = sink("").await;
    let smuggling =
        "Hello\r\n.\r\nMAIL FROM:<evil@example.org>\r\nRCPT TO:<x@example.org>\r\nDATA\r\nx\r\n.\r\n";
    let mail =
        redeliver_core::email::Email { text: Some(smuggling.to_owned()), ..email(&["ada@example.org"]) };
    let transport = transport_to(&sink);
    assert_eq!(short(&carry(&transport, &mail).await), "delivered");
    assert_eq!(short(&carry(&transport, &email(&["ada@example.org"])).await), "delivered");
    let mails = sink.mails();
    assert_eq!(mails.len(), 2);
    assert!(mails[0].data.ends_with(smuggling.as_bytes()));
}

#[tokio::test]
async fn addresses_in_other_scripts_go_to_servers_that_know_them() {
    let sink = sink("").await;
    let outcome = carry(&transport_to(&sink), &email(&["käthe@bücher.example"])).await;
    assert_eq!(short(&outcome), "delivered", "{outcome:?}");
    assert_eq!(sink.mails()[0].to, ["käthe@xn--bcher-kva.example"]);
    let old = old_server().await;
    let transport = transport_with(config(&format!("smtp://{old}")));
    assert_eq!(short(&carry(&transport, &email(&["käthe@example.org"])).await), "refused 553");
    assert_eq!(short(&carry(&transport, &email(&["ada@example.org"])).await), "delivered");
}

#[tokio::test]
async fn what_is_no_mail_or_a_hostile_one_is_refused_before_anybody_hears_of_it() {
    let sink = sink("").await;
    let transport = transport_to(&sink);
    let hostile = redeliver_core::email::Email { subject: "x\r\nBcc: all@b".to_owned(), ..email(&["a@b"]) };
    assert_eq!(short(&carry(&transport, &hostile).await), "refused INVALID_MAIL");
    let other = redeliver_core::Content::of_bytes("{}");
    assert_eq!(short(&carry_message(&transport, &claimed(1), &other).await), "refused INVALID_MAIL");
    assert_eq!(sink.connections(), 0);
}

#[tokio::test]
async fn a_server_that_only_knows_the_older_login_gets_it() {
    let peer = raw_server(|heard| match heard {
        _ if heard.starts_with("EHLO") => "250-mx\r\n250 AUTH LOGIN\r\n",
        "AUTH LOGIN\r\n" => "334 VXNlcm5hbWU6\r\n",
        "YWRh\r\n" => "334 UGFzc3dvcmQ6\r\n",
        "c2VjcmV0\r\n" => "235 welcome\r\n",
        "d3Jvbmc=\r\n" => "535 5.7.8 no\r\n",
        _ => "250 ok\r\n",
    })
    .await;
    for (password, expected) in [("secret", "delivered"), ("wrong", "failed 535 Credential")] {
        let open = SmtpConfig {
            tls: Some(Tls::None),
            auth_without_tls: true,
            ..config(&format!("smtp://ada:{password}@{peer}"))
        };
        assert_eq!(short(&carry(&transport_with(open), &email(&["a@b"])).await), expected);
    }
}

#[tokio::test]
async fn a_cut_in_the_middle_of_a_mail_is_a_failed_try() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(b"220 hi\r\n").await.unwrap();
            let mut buffer = [0; 2_048];
            loop {
                let count = stream.read(&mut buffer).await.unwrap();
                match buffer[..count].starts_with(b"DATA") {
                    true => break,
                    false => stream.write_all(b"250 ok\r\n").await.unwrap(),
                }
            }
            stream.write_all(b"354 go\r\n").await.unwrap();
            // It leaves with most of the mail unread, which ends the connection the hard way.
            let _ = stream.read(&mut buffer).await.unwrap();
        }
    });
    let big = Attachment {
        name: "big.bin".to_owned(),
        content_type: "application/octet-stream".to_owned(),
        base64: "QUJD".repeat(6 << 20),
    };
    let mail = redeliver_core::email::Email { attachments: vec![big], ..email(&["a@b"]) };
    let outcome = carry(&transport_with(config(&format!("smtp://{address}"))), &mail).await;
    assert_eq!(short(&outcome), "failed ECONNRESET Connection", "{outcome:?}");
}

/// A server from before extensions: HELO only.
async fn old_server() -> std::net::SocketAddr {
    raw_server(|heard| if heard.starts_with("EHLO") { "502 what?\r\n" } else { "250 ok\r\n" }).await
}

/// A server that answers every command like this, and takes what follows DATA.
async fn raw_server(answer: fn(&str) -> &'static str) -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, answer));
        }
    });
    address
}

async fn converse(
    mut stream: tokio::net::TcpStream,
    answer: fn(&str) -> &'static str,
) -> std::io::Result<()> {
    stream.write_all(b"220 hi\r\n").await?;
    let (mut heard, mut in_data) = (String::new(), false);
    let mut buffer = [0; 4_096];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        heard.push_str(&String::from_utf8_lossy(&buffer[..count]));
        if !heard.ends_with(if in_data { "\r\n.\r\n" } else { "\r\n" }) {
            continue;
        }
        let said = match heard.as_str() {
            _ if in_data => "250 kept\r\n",
            "DATA\r\n" => "354 go\r\n",
            command => answer(command),
        };
        in_data = heard == "DATA\r\n";
        heard.clear();
        stream.write_all(said.as_bytes()).await?;
    }
}
