//! Runs a router on a socket: no more connections than allowed, no patience for those that dawdle, and an end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use redeliver_engine::stop::Stop;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower::Service;

use crate::limits::{HEADERS_MAX, Limits};

/// How long to wait when the system has no connection for us, such as when it has run out of files.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How long requests have to end when everything stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves until told to stop; then takes no new connection and lets requests end that are under way.
pub async fn serve(listener: TcpListener, router: Router, limits: Arc<Limits>, mut stop: Stop) {
    let free = Arc::new(Semaphore::new(limits.connections_max));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let permit = Arc::clone(&free).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = stop.stopped() => break,
            next = next => next,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = connect(stream, router.clone(), Arc::clone(&limits), stop.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(event = "http.refused", "cannot take a connection: {error}");
                tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_TIMEOUT, all).await.is_err() {
        tracing::warn!(event = "http.cut", "some requests were cut short: their callers will say them again");
    }
}

/// Serves one connection to its end.
async fn connect(stream: TcpStream, router: Router, limits: Arc<Limits>, mut stop: Stop) {
    // Answers are small; waiting to fill a packet would only delay them.
    let _ = stream.set_nodelay(true);
    let told = stop.clone();
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let mut router = router.clone();
        let mut request = request.map(Body::new);
        // An answer that goes on and on has to hear it too.
        request.extensions_mut().insert(told.clone());
        // A router is always ready.
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(HEADERS_MAX)
        .max_buf_size(limits.header_bytes_max)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.stopped() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(event = "http.broken", "a connection ended early: {error}");
    }
}
