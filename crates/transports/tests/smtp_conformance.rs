//! The SMTP transport keeps the rules for transports, against the sink.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod peer;

use std::net::SocketAddr;

use async_trait::async_trait;
use redeliver_conformance::transport::{LATE, Manner, Seen, TransportRig};
use redeliver_core::email::message_id;
use redeliver_core::{Content, Message};
use redeliver_engine::transport::Transport;
use redeliver_sink::{Mail, Options, Sink};
use redeliver_transports::smtp::SmtpTransport;
use tokio::sync::Mutex;

use peer::{email, script, sink, transport_to};

struct Rig {
    transport: SmtpTransport,
    address: SocketAddr,
    peer: Mutex<Peer>,
}

/// The sink while it runs, and what those before it got.
struct Peer {
    sink: Option<Sink>,
    before: Vec<Mail>,
}

async fn rig() -> Rig {
    let sink = sink("").await;
    let (transport, address) = (transport_to(&sink), sink.address());
    Rig { transport, address, peer: Mutex::new(Peer { sink: Some(sink), before: Vec::new() }) }
}

#[async_trait]
impl TransportRig for Rig {
    fn transport(&self) -> &dyn Transport {
        &self.transport
    }

    async fn behave(&self, manner: Manner) {
        let mut peer = self.peer.lock().await;
        let text = match manner {
            Manner::Takes => "",
            Manner::Fails => "after dot defer 451 4.3.0 try later",
            Manner::Refuses => "after dot refuse 554 5.6.0 never",
            Manner::Silent => "at mail hang",
            Manner::AnswersLate => &format!("after dot slow {}s", LATE.as_secs()),
            Manner::CutsOff => "after dot cut",
            Manner::Away => {
                if let Some(sink) = peer.sink.take() {
                    peer.before.extend(sink.mails());
                    sink.stop().await;
                }
                return;
            }
        };
        match &peer.sink {
            Some(sink) => sink.tell(script(text)),
            None => {
                let options = Options { listen: self.address, script: script(text), ..Options::default() };
                peer.sink = Some(Sink::start(options).await.unwrap());
            }
        }
    }

    async fn seen(&self) -> Vec<Seen> {
        let peer = self.peer.lock().await;
        let mails = peer.before.iter().cloned().chain(peer.sink.iter().flat_map(Sink::mails));
        mails.map(|mail| Seen { attempt_id: mail.message_id, bytes: None }).collect()
    }

    /// A mail has one Message-ID, however often it is tried.
    fn name_of(&self, message: &Message) -> String {
        message_id(&message.id, "from@example.org")
    }

    fn content(&self, n: u32) -> Content {
        email(&[&format!("u{n}@example.org")]).to_content().unwrap()
    }
}

redeliver_conformance::transport_tests!(rig().await);
