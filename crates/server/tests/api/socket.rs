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

/// Asks on a connection of its own, and gives the whole answer.
async fn ask(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    read_all(&mut stream).await
}

#[tokio::test]
async fn when_all_connections_are_taken_health_checks_are_answered_and_the_rest_is_told_so() {
    for limits in [
        Limits { connections_max: 2, ..Limits::default() },
        Limits { connections_per_peer_max: 2, ..Limits::default() },
    ] {
        let (address, _stopper, _serving) = start(limits).await;
        // More than there is room for, and in the reserve, too: they never say anything.
        let mut idle = Vec::new();
        for _ in 0..60 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        for path in ["/healthz", "/readyz", "/metrics"] {
            let answer = ask(address, path).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        }
        let refused = ask(address, "/openapi.json").await;
        assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 1"), "{refused}");
        drop(idle);
        // They are gone a moment later.
        while !ask(address, "/openapi.json").await.starts_with("HTTP/1.1 200") {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn whoever_asks_and_reads_nothing_is_cut_off() {
    let limits =
        Limits { connections_max: 4, write_timeout: Duration::from_millis(300), ..Limits::default() };
    let (address, _stopper, _serving) = start(limits).await;
    let ask_much = "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(500);
    let mut deaf = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // It is not read to its end, once nothing more fits anywhere.
        let _ = tokio::time::timeout(Duration::from_millis(200), stream.write_all(ask_much.as_bytes())).await;
        deaf.push(stream);
    }
    let come_again = async {
        while !ask(address, "/openapi.json").await.starts_with("HTTP/1.1 200") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), come_again)
        .await
        .expect("their connections are free again");
}
