//! The same over a real socket: connections that dawdle, and the end.

use std::sync::Arc;
use std::time::Duration;

use redeliver_engine::stop::{Stopper, stop_pair};
use redeliver_server::limits::Limits;
use redeliver_server::{router, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::rig::{ADMIN, Rig};

async fn start(limits: Limits) -> (std::net::SocketAddr, Stopper, JoinHandle<()>) {
    let rig = Rig::with(limits.clone(), Some(ADMIN));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stopper, stop) = stop_pair();
    let serving = tokio::spawn(serve::serve(listener, router(rig.server), Arc::new(limits), stop));
    (address, stopper, serving)
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // A connection that is reset has said all that it will say.
    let _ = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut text)).await.unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn a_request_is_answered_and_the_end_waits_for_it() {
    let (address, stopper, serving) = start(Limits::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stopper.stop();
    tokio::time::timeout(Duration::from_secs(30), serving).await.unwrap().unwrap();
    assert!(read_all(&mut stream).await.contains("alive"));
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn whoever_dawdles_over_the_head_of_a_request_is_cut_off() {
    let limits = Limits { header_timeout: Duration::from_millis(100), ..Limits::default() };
    let (address, _stopper, _serving) = start(limits).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nx-slow: ").await.unwrap();
    assert!(!read_all(&mut stream).await.contains("200"), "it ends, and nothing was answered");
}

#[tokio::test]
async fn whoever_dawdles_over_a_body_is_told_that_nothing_was_kept() {
    let limits = Limits { body_timeout: Duration::from_millis(100), ..Limits::default() };
    let (address, _stopper, _serving) = start(limits).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {ADMIN}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_all(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("nothing of it was kept"), "{answer}");
}

#[tokio::test]
async fn too_many_and_too_long_headers_are_refused() {
    let (address, _stopper, _serving) = start(Limits::default()).await;
    let many: String = (0..10_000).map(|n| format!("x-{n}: 1\r\n")).collect();
    let long = format!("x: {}\r\n", "y".repeat(200_000));
    for headers in [many, long] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // It may be cut off while it still talks.
        let _ =
            stream.write_all(format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{headers}\r\n").as_bytes()).await;
        let answer = read_all(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
}

#[tokio::test]
async fn whoever_comes_when_all_connections_are_taken_waits_for_one() {
    let (address, _stopper, _serving) = start(Limits { connections_max: 1, ..Limits::default() }).await;
    let ask = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let first = TcpStream::connect(address).await.unwrap();
    let mut second = TcpStream::connect(address).await.unwrap();
    second.write_all(ask.as_bytes()).await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(200), second.readable()).await;
    assert!(early.is_err(), "the first has not gone yet");
    drop(first);
    assert!(read_all(&mut second).await.contains("alive"));
}
