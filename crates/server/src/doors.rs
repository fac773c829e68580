//! Which connections are let in: up to a limit in all and one for each peer, and beyond that only health checks.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::limits::Limits;

/// The least time that a connection beyond the limits has before a newer one may take its place.
const RESERVED_FOR: Duration = Duration::from_millis(50);

/// Counts connections.
pub(crate) struct Doors {
    free: Arc<Semaphore>,
    peers: Arc<Mutex<HashMap<IpAddr, usize>>>,
    per_peer_max: usize,
    reserved: VecDeque<(Instant, AbortHandle)>,
    reserved_max: usize,
}

/// The place of one connection, which is free again when this is dropped.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    peers: Arc<Mutex<HashMap<IpAddr, usize>>>,
    peer: IpAddr,
}

impl Doors {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            free: Arc::new(Semaphore::new(limits.connections_max)),
            peers: Arc::default(),
            per_peer_max: limits.connections_per_peer_max,
            reserved: VecDeque::new(),
            reserved_max: limits.health_connections_max,
        }
    }

    /// A place for a connection from this peer; `None` if all places are taken, or all that one peer may have.
    pub(crate) fn enter(&self, peer: IpAddr) -> Option<Place> {
        let peer = network(peer);
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = peers.entry(peer).or_default();
        if *count >= self.per_peer_max {
            return None;
        }
        *count += 1;
        Some(Place { _permit: permit, peers: Arc::clone(&self.peers), peer })
    }

    /// Waits until there is room for a health check. The oldest has to go if there is none: a client that holds connections
    /// and says nothing can't keep health checks out.
    pub(crate) async fn make_room(&mut self) {
        self.reserved.retain(|(_, connection)| !connection.is_finished());
        if self.reserved.len() < self.reserved_max {
            return;
        }
        if let Some((since, _)) = self.reserved.front() {
            tokio::time::sleep_until(*since + RESERVED_FOR).await;
        }
        // Not before: the caller may give up waiting.
        if let Some((_, oldest)) = self.reserved.pop_front() {
            oldest.abort();
        }
    }

    /// Notes a connection that has no place, and is here for a health check only.
    pub(crate) fn reserve(&mut self, connection: AbortHandle) {
        self.reserved.push_back((Instant::now(), connection));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = peers.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                peers.remove(&self.peer);
            }
        }
    }
}

/// What counts as one peer: an address of IPv4, and the first half of one of IPv6, of which a single host has many.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_peer_has_so_many_places_and_all_together_so_many() {
        let limits = Limits { connections_max: 3, connections_per_peer_max: 2, ..Limits::default() };
        let doors = Doors::new(&limits);
        let first = doors.enter(peer("192.0.2.1"));
        let second = doors.enter(peer("::ffff:192.0.2.1"));
        assert!(first.is_some() && second.is_some());
        assert!(doors.enter(peer("192.0.2.1")).is_none(), "it has its two");
        let other = doors.enter(peer("2001:db8::1"));
        assert!(other.is_some() && doors.enter(peer("192.0.2.3")).is_none(), "all three are taken");
        drop(first);
        assert!(doors.enter(peer("192.0.2.1")).is_some());
        drop((second, other));
        assert!(doors.peers.lock().unwrap().is_empty(), "nobody is remembered who has gone");
    }

    #[test]
    fn the_addresses_of_one_ipv6_network_are_one_peer() {
        let doors = Doors::new(&Limits { connections_per_peer_max: 1, ..Limits::default() });
        let _first = doors.enter(peer("2001:db8::1"));
        assert!(doors.enter(peer("2001:db8::2")).is_none());
        assert!(doors.enter(peer("2001:db8:0:1::2")).is_some());
    }
}
