//! One address with several servers behind it: whoever comes is led to one that answers.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::spawn;

use redeliver_servers::free_port;

/// Leads each connection to the next server that answers. It goes on until the process ends.
pub struct Balance {
    port: u16,
    led: Arc<AtomicUsize>,
}

impl Balance {
    /// In front of servers on these ports.
    pub fn start(ports: Vec<u16>) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let led = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&led);
        spawn(move || {
            for (n, caller) in listener.incoming().enumerate() {
                let mut turn = ports.iter().cycle().skip(n).take(ports.len());
                let server = turn.find_map(|port| TcpStream::connect(("127.0.0.1", *port)).ok());
                // With nobody to be led to, the caller is let go.
                let (Ok(caller), Some(server)) = (caller, server) else { continue };
                count.fetch_add(1, Ordering::Relaxed);
                lead(&caller, &server);
                lead(&server, &caller);
            }
        });
        Self { port, led }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections there have been.
    pub fn led(&self) -> usize {
        self.led.load(Ordering::Relaxed)
    }
}

/// Passes on what one side says until it says nothing more; the other side is told so.
fn lead(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let _ = to.set_nodelay(true);
    spawn(move || {
        let _ = copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}
