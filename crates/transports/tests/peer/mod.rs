//! A sink to send to, a transport that sends to it, and messages to send.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use redeliver_conformance::make;
use redeliver_core::email::{Email, Mailbox};
use redeliver_core::{Content, Lease, Message, Outcome, State, Timestamp};
use redeliver_engine::clock::WallClock;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_sink::{Options, Script, Sink};
use redeliver_transports::smtp::{Server, SmtpConfig, SmtpTransport};

/// Long enough for any answer that will come.
pub const WITHIN: Duration = Duration::from_secs(20);

pub fn script(text: &str) -> Script {
    text.parse().unwrap()
}

pub async fn sink(text: &str) -> Sink {
    Sink::start(Options { script: script(text), ..Options::default() }).await.unwrap()
}

pub fn config(url: &str) -> SmtpConfig {
    SmtpConfig { server: Some(Server::parse(url).unwrap()), ..SmtpConfig::default() }
}

pub fn transport_with(config: SmtpConfig) -> SmtpTransport {
    SmtpTransport::new("smtp", config, WallClock::new(Timestamp::default())).unwrap()
}

pub fn transport_to(sink: &Sink) -> SmtpTransport {
    transport_with(config(&format!("smtp://{}", sink.address())))
}

pub fn mailbox(address: &str) -> Mailbox {
    Mailbox { address: address.to_owned(), name: None }
}

pub fn email(to: &[&str]) -> Email {
    Email {
        from: Some(mailbox("from@example.org")),
        to: to.iter().map(|address| mailbox(address)).collect(),
        subject: "Hello".to_owned(),
        text: Some("Hello\n".to_owned()),
        ..Email::default()
    }
}

/// The n-th message, in a worker's hands.
pub fn claimed(n: u32) -> Message {
    let lease = Lease {
        instance: make::ANN,
        claim: 1,
        until_at: make::at(60),
        started_at: None,
        cancel_requested: false,
    };
    Message { fence: 1, ..make::standing(n, State::Claimed(lease)) }
}

pub async fn carry_message(transport: &SmtpTransport, message: &Message, content: &Content) -> Outcome {
    carry_within(transport, message, content, WITHIN).await
}

pub async fn carry_within(
    transport: &SmtpTransport,
    message: &Message,
    content: &Content,
    within: Duration,
) -> Outcome {
    let envelope = Envelope { message, content, target: None };
    let carried = tokio::time::timeout(within, transport.carry(&envelope, within)).await;
    carried.unwrap_or_else(|_| Outcome::Lost { reason: "given up by the engine".into() })
}

pub async fn carry(transport: &SmtpTransport, email: &Email) -> Outcome {
    carry_message(transport, &claimed(1), &email.to_content().unwrap()).await
}

/// An outcome in short: what it is, its code and whom it blames.
pub fn short(outcome: &Outcome) -> String {
    let code = |code: &Option<Arc<str>>| code.as_deref().unwrap_or("-").to_owned();
    match outcome {
        Outcome::Delivered { .. } => "delivered".to_owned(),
        Outcome::Failed(failure) => format!("failed {} {:?}", code(&failure.code), failure.blame),
        Outcome::Refused(failure) => format!("refused {}", code(&failure.code)),
        Outcome::Lost { .. } => "lost".to_owned(),
        Outcome::Deferred { .. } => "deferred".to_owned(),
        other => format!("{other:?}"),
    }
}
