//! `/readyz` over a real socket, of a server whose store has lost its writer thread.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Content, MessageId, Policy, Route, Timestamp};
use redeliver_engine::clock::WallClock;
use redeliver_engine::emit::Silence;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::store::Store;
use redeliver_engine::{Engine, Settings};
use redeliver_server::limits::Limits;
use redeliver_server::metrics::Metrics;
use redeliver_server::{Durability, Server, router, serve};
use redeliver_stores::{OpenOptions, Sqlite};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A body that panics on the writer thread, which has it in hand when its caller is gone before the answer.
struct Explosive;

impl AsRef<[u8]> for Explosive {
    fn as_ref(&self) -> &[u8] {
        b"1"
    }
}

impl Drop for Explosive {
    fn drop(&mut self) {
        // A second panic would end the process.
        if !std::thread::panicking() {
            assert_ne!(std::thread::current().name(), Some("sqlite-writer"), "a bug in the writer");
        }
    }
}

async fn ask(address: std::net::SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

async fn until(address: std::net::SocketAddr, words: &str) -> String {
    let asking = async {
        loop {
            let text = ask(address).await;
            if text.contains(words) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("never heard: {words}"))
}

/// Calls the writer and goes away before it answers, until it has died of what it was left with.
async fn kill_writer(store: &Sqlite) {
    let policy = Policy {
        backoff: Backoff::Table(vec![]),
        jitter: Jitter::None,
        max_attempts: 1,
        expires_after: None,
    };
    let route = Route::new("email", "nowhere", policy);
    let killing = async {
        for number in 1.. {
            let content = Content::of_bytes(Bytes::from_owner(Explosive));
            let new = NewMessage::new("email", content);
            let row = admit(new, &route, MessageId::own(number), None, Timestamp::from_ms(1));
            tokio::select! {
                biased;
                _ = store.insert(vec![row]) => {}
                () = std::future::ready(()) => {}
            }
            if tokio::time::timeout(Duration::from_millis(100), store.broken()).await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, killing).await.unwrap();
}

#[tokio::test]
async fn a_server_whose_writer_thread_died_is_not_ready() {
    let directory = tempfile::tempdir().unwrap();
    let store = Sqlite::open(directory.path().join("store.db"), OpenOptions::default()).unwrap();
    let store = Arc::new(store);
    let clock = WallClock::new(Timestamp::default());
    let engine = Engine::new(store.clone(), clock, Arc::new(Silence), Settings::default(), Vec::new());
    let (engine, limits) = (Arc::new(engine), Limits::default());
    let (_stopper, stop) = stop_pair();
    for part in Arc::clone(&engine).parts(stop.clone()).await {
        tokio::spawn(part);
    }
    let metrics = Metrics::default();
    let server = Server::new(engine, store.clone(), None, Durability::Full, limits.clone(), metrics);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve::serve(listener, router(server), Arc::new(limits), stop));
    until(address, "HTTP/1.1 200").await;
    kill_writer(&store).await;
    let text = until(address, "HTTP/1.1 503").await;
    assert!(text.contains("the store is broken"), "{text}");
    assert!(
        !text.contains("store.db") && !text.contains("sqlite-writer"),
        "no details for strangers: {text}"
    );
    until(address, "HTTP/1.1 503").await;
}
