//! A network that fails as it is told to: a TCP proxy before a server, for clients of any protocol.
//!
//! It passes bytes on unchanged. What it does to them can be changed at any time, also under open connections, and
//! separately for each direction.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{park_timeout, spawn};
use std::time::Duration;

use crate::free_port;

/// How often a connection looks for a new order while nothing comes.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Bytes that are passed on at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// What happens to the bytes of one direction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// They are passed on.
    None,
    /// They are passed on this much later.
    Delay(Duration),
    /// They are passed on one by one, with this much time between two: a slow reader or writer.
    Trickle(Duration),
    /// They are taken and dropped: the other side hears nothing and is told nothing.
    BlackHole,
    /// They are not taken: whoever sends them fills its buffers and then waits.
    Stall,
}

/// Which way bytes go.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// From client to server.
    Up,
    /// From server to client.
    Down,
}

/// A proxy before one server. It goes on until the process ends.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    faults: Mutex<[Fault; 2]>,
    open: Mutex<Vec<Arc<Connection>>>,
    connections: AtomicUsize,
}

/// A client, the server it talks to, and how many more bytes may pass each way before both are closed.
struct Connection {
    client: TcpStream,
    server: TcpStream,
    left: Mutex<[Option<usize>; 2]>,
}

impl Connection {
    fn close(&self) {
        for stream in [&self.client, &self.server] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// How many of so many bytes may pass, and whether the connection is closed after them.
    fn allow(&self, way: Way, bytes: usize) -> (usize, bool) {
        match &mut self.left.lock().unwrap()[way as usize] {
            None => (bytes, false),
            Some(left) => {
                let allowed = bytes.min(*left);
                *left -= allowed;
                (allowed, *left == 0)
            }
        }
    }
}

impl Proxy {
    /// A proxy before the server on this port.
    pub fn before(server_port: u16) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let faults = Mutex::new([Fault::None; 2]);
        let shared = Arc::new(Shared { faults, open: Mutex::default(), connections: AtomicUsize::new(0) });
        let accepting = Arc::clone(&shared);
        spawn(move || {
            for client in listener.incoming().filter_map(Result::ok) {
                accepting.connections.fetch_add(1, Ordering::Relaxed);
                // If the server is away, the client is let go, as it would be without a proxy.
                if let Ok(server) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], server_port))) {
                    accepting.connect(&client, &server);
                }
            }
        });
        Self { port, shared }
    }

    /// Where clients connect.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections there have been.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// What happens to the bytes of one direction from now on.
    pub fn set(&self, way: Way, fault: Fault) {
        self.shared.faults.lock().unwrap()[way as usize] = fault;
    }

    /// The same for both directions.
    pub fn set_both(&self, fault: Fault) {
        *self.shared.faults.lock().unwrap() = [fault; 2];
    }

    /// Closes all open connections at once, on both sides.
    pub fn cut(&self) {
        self.shared.open.lock().unwrap().drain(..).for_each(|connection| connection.close());
    }

    /// Closes each connection that is open now, on both sides, once this many more bytes have passed this way: in the
    /// middle of a message, or of its answer. Later connections are left alone.
    pub fn cut_after(&self, way: Way, bytes: usize) {
        for connection in &*self.shared.open.lock().unwrap() {
            connection.left.lock().unwrap()[way as usize] = Some(bytes);
        }
    }

    /// Says to the server, on all open connections, that the client sends nothing more; what it answers still comes.
    pub fn half_close(&self) {
        for connection in &*self.shared.open.lock().unwrap() {
            let _ = connection.server.shutdown(Shutdown::Write);
        }
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        let copy = |stream: &TcpStream| stream.try_clone().expect("a socket can be shared");
        let connection =
            Arc::new(Connection { client: copy(client), server: copy(server), left: Mutex::default() });
        self.open.lock().unwrap().push(Arc::clone(&connection));
        for (way, from, to) in [(Way::Up, client, server), (Way::Down, server, client)] {
            let (shared, connection) = (Arc::clone(self), Arc::clone(&connection));
            let (from, to) = (copy(from), copy(to));
            let _ = to.set_nodelay(true);
            spawn(move || shared.pass(&connection, way, from, to));
        }
    }

    /// Passes bytes on until one side is gone, and then lets the other one know.
    fn pass(&self, connection: &Connection, way: Way, mut from: TcpStream, mut to: TcpStream) {
        let fault = || self.faults.lock().unwrap()[way as usize];
        let _ = from.set_read_timeout(Some(LOOK_INTERVAL));
        let mut bytes = [0; CHUNK_BYTES];
        loop {
            let size = match fault() {
                Fault::Stall => {
                    park_timeout(LOOK_INTERVAL);
                    continue;
                }
                Fault::Trickle(_) => 1,
                Fault::None | Fault::Delay(_) | Fault::BlackHole => CHUNK_BYTES,
            };
            let read = match from.read(&mut bytes[..size]) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
                Err(_) => break,
            };
            let (read, is_cut) = connection.allow(way, read);
            let written = match fault() {
                Fault::BlackHole => Ok(()),
                Fault::Delay(time) | Fault::Trickle(time) => {
                    park_timeout(time);
                    to.write_all(&bytes[..read])
                }
                Fault::None | Fault::Stall => to.write_all(&bytes[..read]),
            };
            if is_cut {
                connection.close();
            }
            if is_cut || written.is_err() {
                break;
            }
        }
        // A black hole doesn't tell of an end either.
        while fault() == Fault::BlackHole {
            park_timeout(LOOK_INTERVAL);
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that says back what it hears, and a client before it.
    fn connected() -> (Proxy, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::before(listener.local_addr().unwrap().port());
        spawn(move || {
            for mut client in listener.incoming().filter_map(Result::ok) {
                let mut copy = client.try_clone().unwrap();
                spawn(move || std::io::copy(&mut client, &mut copy).map(|_| copy.shutdown(Shutdown::Write)));
            }
        });
        let client = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        (proxy, client)
    }

    fn echo(client: &mut TcpStream, text: &str) -> std::io::Result<String> {
        client.write_all(text.as_bytes())?;
        let mut bytes = vec![0; text.len()];
        client.read_exact(&mut bytes)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn bytes_pass_unchanged_late_or_one_by_one() {
        let (proxy, mut client) = connected();
        for fault in [
            Fault::None,
            Fault::Delay(Duration::from_millis(20)),
            Fault::Trickle(Duration::from_millis(5)),
            Fault::None,
        ] {
            proxy.set_both(fault);
            assert_eq!(echo(&mut client, "hello").unwrap(), "hello", "{fault:?}");
        }
        assert_eq!(proxy.connections(), 1);
    }

    #[test]
    fn a_black_hole_takes_everything_and_says_nothing() {
        let (proxy, mut client) = connected();
        proxy.set(Way::Down, Fault::BlackHole);
        client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let error = echo(&mut client, "hello").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    }

    #[test]
    fn a_cut_ends_both_sides_and_a_half_close_only_one_direction() {
        let (proxy, mut client) = connected();
        assert_eq!(echo(&mut client, "hello").unwrap(), "hello");
        client.write_all(b"last words").unwrap();
        let mut heard = [0; 10];
        client.read_exact(&mut heard).unwrap();
        proxy.half_close();
        assert_eq!(client.read(&mut heard).unwrap(), 0, "the server has heard the end, and has ended");
        let mut other = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        assert_eq!(echo(&mut other, "hello").unwrap(), "hello");
        proxy.cut();
        assert!(echo(&mut other, "hello").is_err());
    }

    #[test]
    fn a_connection_is_cut_in_the_middle_of_a_message_and_the_next_one_is_not() {
        let (proxy, mut client) = connected();
        assert_eq!(echo(&mut client, "hello").unwrap(), "hello");
        proxy.cut_after(Way::Up, 3);
        client.write_all(b"hello").unwrap();
        let mut heard = Vec::new();
        // The end may come as a reset, which says nothing of the bytes before it.
        let _ = client.read_to_end(&mut heard);
        assert!(b"hel".starts_with(&heard[..]), "{heard:?}");
        let mut other = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        assert_eq!(echo(&mut other, "hello").unwrap(), "hello");
    }
}
