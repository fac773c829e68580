//! PgBouncer, which gives each transaction whichever connection is free.

use std::fs;
use std::net::TcpStream;
use std::thread::yield_now;

use tempfile::TempDir;

use crate::free_port;
use crate::guard::{Guard, as_user, give};
use crate::postgres::{Database, PostgresServer};

const USER: &str = "postgres";

/// A pooler in front of a server, in transaction mode.
pub struct PgBouncer {
    _guard: Guard,
    _directory: TempDir,
    port: u16,
}

impl PgBouncer {
    /// Starts one with so few connections that callers meet on them.
    pub fn start(server: &PostgresServer) -> Self {
        Self::start_with(server, "")
    }

    /// The same, which lets in whoever brings settings, and drops them.
    pub fn start_dropping_settings(server: &PostgresServer) -> Self {
        Self::start_with(server, "ignore_startup_parameters = options\n")
    }

    fn start_with(server: &PostgresServer, more: &str) -> Self {
        let directory =
            tempfile::Builder::new().prefix("redeliver-pgb").tempdir().expect("a directory for it");
        give(directory.path(), USER);
        let port = free_port();
        let config = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 4\n\
             max_client_conn = 1000\n{more}",
            server.port()
        )
        .replace("* = host=127.0.0.1", &format!("* = user={USER} host=127.0.0.1"));
        let file = directory.path().join("pgbouncer.ini");
        fs::write(&file, config).expect("its directory can be written");
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"]
            .into_iter()
            .find(|path| fs::exists(path).is_ok_and(|it| it));
        let command = vec![program.unwrap_or("pgbouncer").to_owned(), file.display().to_string()];
        let log = directory.path().join("log");
        let mut guard = Guard::start(&as_user(USER, command), "INT", directory.path());
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let words = || fs::read_to_string(&log).unwrap_or_default();
            assert!(
                guard.is_running() && !words().contains("FATAL"),
                "PgBouncer does not start: {}",
                words()
            );
            yield_now();
        }
        Self { _guard: guard, _directory: directory, port }
    }

    /// The address of a database behind it.
    pub fn url(&self, database: &Database<'_>) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{}", self.port, database.name())
    }
}
