//! How much, how long and how many at once: everything that a caller can make us do has a limit.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redeliver_engine::clock::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// The limits of the HTTP face.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a body that is read whole, and of a line of NDJSON.
    pub body_bytes_max: usize,
    /// Bytes of all bodies that are being accepted at once; whoever comes then is told to come again.
    pub accepting_bytes_max: usize,
    /// Connections at once; beyond, only health checks are answered.
    pub connections_max: usize,
    /// Connections at once from one peer: an address of IPv4, or a network (/64) of IPv6.
    pub connections_per_peer_max: usize,
    /// Connections beyond these two limits, kept for health checks.
    pub health_connections_max: usize,
    /// Bytes of a request's head.
    pub header_bytes_max: usize,
    /// How long a request's head may take, and how long a connection may be idle.
    pub header_timeout: Duration,
    /// How long a body, or the next line of NDJSON, may take.
    pub body_timeout: Duration,
    /// How long a client may take for the next 16 KiB of its answer.
    pub write_timeout: Duration,
    /// How long a request may take until its answer begins; `Prefer: wait` can't ask for more.
    pub request_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 10 * 1024 * 1024,
            accepting_bytes_max: 256 * 1024 * 1024,
            connections_max: 1_024,
            connections_per_peer_max: 512,
            health_connections_max: 32,
            header_bytes_max: 64 * 1024,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
        }
    }
}

/// Headers of a request, at most.
pub const HEADERS_MAX: usize = 100;

/// Messages of one JSON array, at most; NDJSON has no such limit.
pub const ARRAY_LEN_MAX: usize = 10_000;

/// Messages of one page, at most.
pub const PAGE_LEN_MAX: usize = 500;

/// Messages of one page, unless a caller says otherwise.
pub const PAGE_LEN: usize = 50;

/// Bytes that one permit stands for.
const PERMIT_BYTES: usize = 1024;

/// Room for what is being accepted. It is taken before anything is read, so that nothing that was accepted is dropped.
#[derive(Clone, Debug)]
pub struct Room(Arc<Semaphore>);

impl Room {
    /// Room for so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes_max / PERMIT_BYTES).clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Takes room for so many bytes, until the permit is dropped.
    pub fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Problem> {
        let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES).max(1)).unwrap_or(u32::MAX);
        Arc::clone(&self.0).try_acquire_many_owned(permits).map_err(|_| Problem::overloaded())
    }
}

/// What a future comes to, if it does in time.
pub async fn within<T>(clock: &dyn Clock, span: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        value = future => Some(value),
        // Made only where something has to be waited for.
        () = async { clock.sleep(span).await } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_given_back_and_refused_when_there_is_none() {
        let room = Room::new(10 * PERMIT_BYTES);
        let most = room.take(9 * PERMIT_BYTES).unwrap();
        let rest = room.take(1).unwrap();
        assert_eq!(room.take(0).err().map(|problem| problem.status), Some(429));
        drop((most, rest));
        assert!(room.take(10 * PERMIT_BYTES).is_ok());
    }
}
