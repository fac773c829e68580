//! Ports that stay free for whoever was given one, also while its server is down.

use std::net::{TcpListener, UdpSocket};
use std::ops::Range;
use std::sync::Mutex;

/// Below the ports that Linux gives to callers by itself: a connection that somebody opens never takes one of these.
const OURS: Range<u16> = 12_000..32_000;

/// What says to other processes which ports this one was given: the UDP socket of the same number, which no server
/// here wants. They go with the process.
static GIVEN: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// A port of this machine that nobody uses, and that is given to nobody else while this process lives.
pub fn free_port() -> u16 {
    // Processes begin at different places, or each would first try what all the others have.
    let first = std::process::id().wrapping_mul(97);
    let ports = (0..u32::from(OURS.end - OURS.start)).map(|n| in_range(first.wrapping_add(n)));
    for port in ports {
        let Ok(mark) = UdpSocket::bind(("127.0.0.1", port)) else { continue };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            GIVEN.lock().expect("nobody panics while holding it").push(mark);
            return port;
        }
    }
    panic!("this machine has no free port in {OURS:?}");
}

fn in_range(n: u32) -> u16 {
    let among = n % u32::from(OURS.end - OURS.start);
    OURS.start + u16::try_from(among).expect("it is among them")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nobody_is_given_a_port_twice_or_one_that_callers_get() {
        let ports: BTreeSet<u16> = (0..50).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 50);
        assert!(ports.iter().all(|port| OURS.contains(port)));
    }

    #[test]
    fn a_port_that_somebody_uses_is_left_alone() {
        let next = free_port() + 1;
        let _taken = TcpListener::bind(("127.0.0.1", next));
        assert!((0..5).all(|_| free_port() != next));
    }
}
