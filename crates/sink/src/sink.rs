//! A sink that runs: starting it, telling it, asking what it got, and ending it.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::keep::Keep;
use crate::mail::Mail;
use crate::mailbox::Mailbox;
use crate::options::{Options, Tls};
use crate::script::{Playing, Script};
use crate::session::converse;
use crate::shared::Shared;
use crate::tls::make_certificate;

/// A mail server that fails on purpose. It runs until it is stopped or dropped.
pub struct Sink {
    address: SocketAddr,
    ca_pem: Option<String>,
    shared: Arc<Shared>,
    stopper: oneshot::Sender<()>,
    listening: JoinHandle<()>,
}

/// How long to wait when the system has no connection to give, so as not to ask it in circles.
const BREATH: Duration = Duration::from_millis(100);

impl Sink {
    /// Begins to listen, on loopback and nowhere else.
    pub async fn start(options: Options) -> io::Result<Self> {
        let Options { listen, script, magic, keep, tls, login, limits, clock, watcher } = options;
        if !listen.ip().is_loopback() {
            let wrong =
                format!("cannot listen on {listen}: a sink listens on loopback only, such as 127.0.0.1");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, wrong));
        }
        let mailbox = Mailbox::open(keep.map(Keep::open).transpose()?, &limits)?;
        let certificate = match tls {
            Tls::Off => None,
            Tls::StartTls | Tls::Implicit => Some(make_certificate()?),
        };
        let (ca_pem, acceptor) = certificate.map(|made| (made.pem, made.acceptor)).unzip();
        let listener = TcpListener::bind(listen)
            .await
            .map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {listen}: {error}")))?;
        let address = listener.local_addr()?;
        let playing = Mutex::new(Playing::new(script, magic));
        let connections = AtomicUsize::new(0);
        let shared =
            Arc::new(Shared { limits, tls, acceptor, login, mailbox, playing, connections, clock, watcher });
        let (stopper, stopped) = oneshot::channel();
        let listening = tokio::spawn(listen_until(stopped, listener, Arc::clone(&shared)));
        Ok(Self { address, ca_pem, shared, stopper, listening })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate that a client has to trust, where there is encryption.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// Begins another script. Conversations that hang go on hanging.
    pub fn tell(&self, script: Script) {
        self.shared.playing().tell(script);
    }

    /// What it has kept, oldest first.
    pub fn mails(&self) -> Vec<Mail> {
        self.shared.mailbox.mails().into_iter().map(Arc::unwrap_or_clone).collect()
    }

    /// What it has kept, as soon as there are so many, or else when the time is over.
    pub async fn wait_for(&self, count: usize, within: Duration) -> Vec<Mail> {
        // In time or not, the caller sees what there is.
        let _ = timeout(within, self.shared.mailbox.wait_for(count)).await;
        self.mails()
    }

    /// Forgets what it has kept.
    pub fn clear(&self) {
        self.shared.mailbox.clear();
    }

    /// How many connections were ever made to it.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Ends every conversation and frees the port.
    pub async fn stop(self) {
        drop(self.stopper);
        // It ends by itself; if it panicked, it has ended as well.
        let _ = self.listening.await;
    }
}

async fn listen_until(mut stopped: oneshot::Receiver<()>, listener: TcpListener, shared: Arc<Shared>) {
    let mut conversations = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            Some(_) = conversations.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    shared.connections.fetch_add(1, Ordering::Relaxed);
                    if conversations.len() < shared.limits.connections_max {
                        conversations.spawn(converse(stream, Arc::clone(&shared)));
                    } else {
                        turn_down(&stream);
                    }
                }
                Err(_) => sleep(BREATH).await,
            },
        }
    }
    drop(listener);
    conversations.shutdown().await;
}

/// Says that there is no room, if it can be said at once.
fn turn_down(stream: &TcpStream) {
    let _ = stream.try_write(b"421 4.3.2 too many connections\r\n");
}
