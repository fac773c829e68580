//! Runs a router on a socket: no more connections than allowed, no patience for those that dawdle, and an end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use redeliver_engine::stop::Stop;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::Service;

use crate::doors::Doors;
use crate::limits::{HEADERS_MAX, Limits};
use crate::problem::Problem;
use crate::write_timeout::WriteTimeout;

/// How long to wait when the system has no connection for us, such as when it has run out of files.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How long requests have to end when everything stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// What is answered even when all connections are taken.
const HEALTH_PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// How long a health check may take then, from its connection to its end.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);

/// What may be asked on a connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Serves {
    /// Anything, again and again.
    All,
    /// One health check: all other connections are taken.
    HealthOnly,
}

/// Serves until told to stop; then takes no new connection and lets requests end that are under way.
pub async fn serve(listener: TcpListener, router: Router, limits: Arc<Limits>, mut stop: Stop) {
    let mut doors = Doors::new(&limits);
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            doors.make_room().await;
            listener.accept().await
        };
        let accepted = tokio::select! {
            () = stop.stopped() => break,
            accepted = next => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        match accepted {
            Ok((stream, peer)) => {
                let place = doors.enter(peer.ip());
                let serves = if place.is_some() { Serves::All } else { Serves::HealthOnly };
                let connection = connect(stream, serves, router.clone(), Arc::clone(&limits), stop.clone());
                let task = connections.spawn(async move {
                    match serves {
                        Serves::All => connection.await,
                        Serves::HealthOnly => drop(tokio::time::timeout(HEALTH_TIMEOUT, connection).await),
                    }
                    drop(place);
                });
                if serves == Serves::HealthOnly {
                    ::metrics::counter!(CONNECTIONS_REFUSED).increment(1);
                    tracing::warn!(
                        event = "http.full",
                        "all connections are taken, or all of one peer: only health checks are answered"
                    );
                    doors.reserve(task);
                }
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

/// Connections for which there was no place.
pub(crate) const CONNECTIONS_REFUSED: &str = "redeliver_http_connections_refused_total";

/// Serves one connection to its end.
async fn connect(stream: TcpStream, serves: Serves, router: Router, limits: Arc<Limits>, mut stop: Stop) {
    // Answers are small; waiting to fill a packet would only delay them.
    let _ = stream.set_nodelay(true);
    let told = stop.clone();
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let mut router = router.clone();
        let mut request = request.map(Body::new);
        // An answer that goes on and on has to hear it too.
        request.extensions_mut().insert(told.clone());
        async move {
            if serves == Serves::HealthOnly && !HEALTH_PATHS.contains(&request.uri().path()) {
                return Ok::<Response, std::convert::Infallible>(
                    Problem::too_many_connections().into_response(),
                );
            }
            // A router is always ready.
            router.call(request).await
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .keep_alive(serves == Serves::All)
        .max_headers(HEADERS_MAX)
        .max_buf_size(limits.header_bytes_max)
        .serve_connection(TokioIo::new(WriteTimeout::new(stream, limits.write_timeout)), answer);
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
