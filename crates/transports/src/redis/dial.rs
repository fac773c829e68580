//! Comes to a server: the socket, encryption where the URL asks for it, the login, and where it is behind sentinels.

use ::redis::{Value, cmd};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::classify::{FORBIDDEN, WRONG_LOGIN};
use super::config::{Kind, ServerConfig, Servers};
use super::line::{Line, Trouble};
use crate::address::show_address;
use crate::encryption::connector;

/// A host and a port.
pub(super) type Address = (String, u16);

/// Knows how to come to the servers of one config.
pub(super) struct Dial {
    pub(super) config: ServerConfig,
    pub(super) servers: Servers,
    tls: Option<TlsConnector>,
}

impl Dial {
    /// To the servers of this config, if it has any.
    pub(super) fn new(config: &ServerConfig) -> Result<Option<Self>, String> {
        let Some(servers) = config.servers.clone() else { return Ok(None) };
        let tls = servers.tls.then(|| connector(config.ca_file.as_deref())).transpose()?;
        Ok(Some(Self { config: config.clone(), servers, tls }))
    }

    /// The servers' name for people.
    pub(super) fn name(&self) -> String {
        self.servers.name()
    }

    /// A connection to the one server, or to the one that sentinels know.
    pub(super) async fn connect(&self) -> Result<Line, Trouble> {
        match &self.servers.kind {
            Kind::One | Kind::Cluster => self.connect_to(&self.servers.hosts[0]).await,
            Kind::Sentinel(name) => {
                let address = self.ask_sentinels(name).await?;
                self.connect_to(&address).await
            }
        }
    }

    /// A connection that is logged in.
    pub(super) async fn connect_to(&self, address: &Address) -> Result<Line, Trouble> {
        let within = self.config.connect_timeout;
        let connected = async {
            let line = self.open(address).await?;
            self.log_in(&line).await?;
            Ok(line)
        };
        match tokio::time::timeout(within, connected).await {
            Ok(line) => line,
            Err(_) => {
                let name = show_address(&address.0, address.1);
                Err(Trouble::Away(format!("connecting to {name} took too long")))
            }
        }
    }

    /// Where the server is that has this name: the first sentinel that knows is believed.
    async fn ask_sentinels(&self, name: &str) -> Result<Address, Trouble> {
        let mut last = Trouble::Away("no sentinel knows where it is".to_owned());
        let within = self.config.connect_timeout;
        for sentinel in &self.servers.hosts {
            let asked = async {
                let line = self.open(sentinel).await?;
                line.ask(cmd("SENTINEL").arg("get-master-addr-by-name").arg(name), within).await
            };
            match tokio::time::timeout(within, asked).await {
                Ok(Ok(answer)) => match read_address(&answer) {
                    Some(address) => return Ok(address),
                    None => last = Trouble::Away(format!("no sentinel knows a server named {name}")),
                },
                Ok(Err(trouble)) => last = trouble,
                Err(_) => last = Trouble::Away("no sentinel answers".to_owned()),
            }
        }
        Err(last)
    }

    /// Says who we are and which database is meant, and hears whether the server is ready for more: nothing is entrusted to one
    /// that has not said a word.
    async fn log_in(&self, line: &Line) -> Result<(), Trouble> {
        let within = self.config.connect_timeout;
        if let Some(password) = &self.servers.password {
            let mut auth = cmd("AUTH");
            if let Some(user) = &self.servers.user {
                auth.arg(user);
            }
            let accepted = line.ask(auth.arg(password.reveal()), within).await;
            accepted.map_err(|trouble| match trouble {
                Trouble::Said { code, text } => {
                    Trouble::Said { code: WRONG_LOGIN.to_owned(), text: format!("{code} {text}") }
                }
                away => away,
            })?;
        }
        if self.servers.database != 0 {
            line.ask(cmd("SELECT").arg(self.servers.database), within).await?;
        }
        match line.ask(&cmd("PING"), within).await {
            // Who may do nothing but write is ready too.
            Err(trouble) if trouble.code() != Some(FORBIDDEN) => Err(trouble),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn open(&self, address: &Address) -> Result<Line, Trouble> {
        let (host, port) = (address.0.as_str(), address.1);
        let socket = TcpStream::connect((host, port)).await?;
        // A word that waits for company is a word that comes late.
        socket.set_nodelay(true)?;
        match &self.tls {
            None => Line::open(socket).await,
            Some(connector) => {
                let server = ServerName::try_from(host.to_owned())
                    .map_err(|_| Trouble::Away(format!("{host} is no name of a host")))?;
                Line::open(connector.connect(server, socket).await?).await
            }
        }
    }
}

/// An address as a sentinel says it: the host, and the port as a text.
fn read_address(answer: &Value) -> Option<Address> {
    let Value::Array(parts) = answer else { return None };
    let [host, port] = &parts[..] else { return None };
    Some((text(host)?.to_owned(), text(port)?.parse().ok()?))
}

/// A text that a server says in either of two ways.
pub(super) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}
