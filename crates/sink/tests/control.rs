//! The private commands, the directory of mails, logins and encryption.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client;

use std::sync::Arc;

use client::{Client, sink};
use redeliver_sink::{Control, ControlError, Options, Sink, Tls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

async fn hand_over(client: &mut Client, data: &str) {
    client.begins("a@a.test", &["b@b.test"]).await;
    client.sends(data).await;
    client.hears("250").await;
}

async fn encrypt(sink: &Sink, stream: Box<dyn client::Stream>) -> Client {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(sink.ca_pem().unwrap().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    Client::over(TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap())
}

#[tokio::test]
async fn a_running_sink_can_be_asked_and_emptied() {
    let sink = sink("").await;
    hand_over(&mut Client::greet(&sink).await, "Subject: one\r\n\r\nfirst").await;
    hand_over(&mut Client::greet(&sink).await, "Subject: two\r\n\r\nsecond").await;
    let mut control = Control::connect(sink.address()).await.unwrap();
    let listed = control.list(None).await.unwrap();
    assert_eq!(listed, sink.mails().iter().map(redeliver_sink::Mail::listed).collect::<Vec<_>>());
    assert_eq!(control.list(Some(1)).await.unwrap(), listed[1..]);
    let (shown, data) = control.show(1).await.unwrap();
    assert_eq!(
        (shown.subject.as_deref(), &data[..]),
        (Some("one"), b"Subject: one\r\n\r\nfirst\r\n".as_slice())
    );
    let error = control.show(3).await.unwrap_err();
    assert!(matches!(&error, ControlError::Refused(why) if why == "there is no mail 3"), "{error}");
    assert_eq!(control.clear().await.unwrap(), "2 forgotten");
    assert_eq!((control.list(None).await.unwrap(), sink.mails()), (vec![], vec![]));
    hand_over(&mut Client::greet(&sink).await, "third").await;
    assert_eq!(control.list(None).await.unwrap()[0].number, 3);
}

#[tokio::test]
async fn a_sink_that_never_greets_can_still_be_told_and_uses_up_no_rule() {
    for script in ["at greeting hang x1", "at greeting cut x1", "at greeting refuse 554 go away x1"] {
        let sink = sink(script).await;
        let mut control = Control::connect(sink.address()).await.unwrap();
        assert_eq!(control.list(None).await.unwrap(), []);
        sink.tell("at greeting cut".parse().unwrap());
        Client::connect(&sink).await.is_cut().await;
        let mut control = Control::connect(sink.address()).await.unwrap();
        assert_eq!(control.tell("").await.unwrap(), "accept");
        Client::greet(&sink).await;
    }
}

#[tokio::test]
async fn telling_answers_with_what_was_understood() {
    let sink = sink("").await;
    let mut control = Control::connect(sink.address()).await.unwrap();
    let told = control.tell("# greet them well\nlose x1 for bob@*\nat data hang").await.unwrap();
    assert_eq!(told, "after dot cut x1 for bob@*; at data hang");
    let error = control.tell("at lunch defer").await.unwrap_err().to_string();
    assert!(error.contains("there is no stage lunch") && error.contains("rcpt"), "{error}");
}

#[tokio::test]
async fn the_private_commands_are_plain_text() {
    let sink = sink("").await;
    let mut client = Client::greet(&sink).await;
    hand_over(&mut client, "hello").await;
    let listed = client.says("XLIST", "250-{\"number\":1,").await;
    assert!(listed.ends_with("250 2.0.0 1 listed\r\n"), "{listed}");
    client.says("XSHOW 1", "250-{\"number\":1,").await;
    assert_eq!(client.reads(7).await, b"hello\r\n");
    client.says("XTELL refuse 550 no", "250 2.0.0 at rcpt refuse 550 no").await;
    client.says("XCLEAR", "250 2.0.0 1 forgotten").await;
}

#[tokio::test]
async fn kept_mails_are_there_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { keep: Some(dir.path().join("mails")), ..Options::default() };
    let sink = Sink::start(options.clone()).await.unwrap();
    hand_over(&mut Client::greet(&sink).await, "Message-ID: <1@a.test>\r\n\r\n..").await;
    sink.tell("lose".parse().unwrap());
    let mut client = Client::greet(&sink).await;
    client.begins("a@a.test", &["b@b.test"]).await;
    client.sends("lost").await;
    client.is_cut().await;
    let before = sink.mails();
    sink.stop().await;
    assert_eq!(std::fs::read(dir.path().join("mails/000001.eml")).unwrap(), before[0].data);
    let line = std::fs::read_to_string(dir.path().join("mails/000002.json")).unwrap();
    assert!(line.contains("\"answered\":false") && line.lines().count() == 1, "{line}");

    std::fs::write(dir.path().join("mails/notes.json"), "mine").unwrap();
    let sink = Sink::start(options).await.unwrap();
    assert_eq!(sink.mails(), before);
    hand_over(&mut Client::greet(&sink).await, "third").await;
    assert_eq!(sink.mails()[2].number, 3);
    sink.clear();
    let left: Vec<_> =
        std::fs::read_dir(dir.path().join("mails")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.json"]);
}

#[tokio::test]
async fn without_the_right_login_no_mail_is_taken() {
    let login = Some(("bob".to_owned(), "secret".to_owned()));
    let sink = Sink::start(Options { login, ..Options::default() }).await.unwrap();
    let mut client = Client::connect(&sink).await;
    client.hears("220").await;
    assert!(client.says("EHLO test", "250").await.contains("AUTH PLAIN LOGIN"));
    client.says("MAIL FROM:<a@a.test>", "530").await;
    client.says("AUTH CRAM-MD5", "504").await;
    client.says("AUTH PLAIN AGJvYgB3cm9uZw==", "535").await;
    client.says("AUTH PLAIN nonsense!", "501").await;
    client.says("AUTH PLAIN", "334").await;
    client.says("*", "501").await;
    client.says("AUTH PLAIN AGJvYgBzZWNyZXQ=", "235").await;
    client.says("AUTH PLAIN AGJvYgBzZWNyZXQ=", "503").await;
    hand_over(&mut client, "hello").await;
    assert_eq!(sink.mails()[0].login.as_deref(), Some("bob"));

    let mut client = Client::greet(&sink).await;
    client.says("AUTH LOGIN", "334 VXNlcm5hbWU6").await;
    client.says("Ym9i", "334 UGFzc3dvcmQ6").await;
    client.says("c2VjcmV0", "235").await;

    sink.tell("at auth defer 454 4.7.0 later".parse().unwrap());
    let mut client = Client::greet(&sink).await;
    client.says("AUTH PLAIN AGJvYgBzZWNyZXQ=", "454 4.7.0 later").await;
    client.says("MAIL FROM:<a@a.test>", "530").await;
}

#[tokio::test]
async fn starttls_encrypts_forgets_what_came_before_and_then_takes_logins() {
    let login = Some(("bob".to_owned(), "secret".to_owned()));
    let sink = Sink::start(Options { tls: Tls::StartTls, login, ..Options::default() }).await.unwrap();
    let mut client = Client::connect(&sink).await;
    client.hears("220").await;
    let offered = client.says("EHLO test", "250").await;
    assert!(offered.contains("STARTTLS") && !offered.contains("AUTH"), "{offered}");
    client.says("AUTH PLAIN AGJvYgBzZWNyZXQ=", "538").await;
    // The second line is an attacker's, put in before the encryption began.
    client.send(b"STARTTLS\r\nXTELL refuse\r\n").await;
    client.hears("220").await;
    let mut client = encrypt(&sink, client.into_inner()).await;
    client.says("MAIL FROM:<a@a.test>", "503").await;
    let offered = client.says("EHLO test", "250").await;
    assert!(!offered.contains("STARTTLS") && offered.contains("AUTH"), "{offered}");
    client.says("AUTH PLAIN AGJvYgBzZWNyZXQ=", "235").await;
    hand_over(&mut client, "hello").await;
    assert!(sink.mails()[0].tls);
}

#[tokio::test]
async fn implicit_encryption_begins_with_the_first_byte_and_leaves_private_commands_in_the_clear() {
    let sink = Sink::start(Options { tls: Tls::Implicit, ..Options::default() }).await.unwrap();
    let stream = tokio::net::TcpStream::connect(sink.address()).await.unwrap();
    let mut client = encrypt(&sink, Box::new(stream)).await;
    client.hears("220").await;
    client.says("EHLO test", "250").await;
    hand_over(&mut client, "hello").await;
    let mut control = Control::connect(sink.address()).await.unwrap();
    assert!(control.list(None).await.unwrap()[0].tls);
    let mut client = Client::connect(&sink).await;
    client.says("XLIST 0", "250").await;
    client.says("MAIL FROM:<a@a.test>", "503").await;
    client.is_cut().await;
}

#[tokio::test]
async fn what_is_no_sink_is_told_so() {
    let sink = sink("").await;
    let at = sink.address();
    sink.stop().await;
    let error = Control::connect(at).await.err().unwrap().to_string();
    assert!(error.contains("is one running there?") && error.contains(&at.to_string()), "{error}");
}
