//! Comes to a broker: the socket, encryption where the URL asks for it, and the login.

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::amqp::wire::Short;
use super::amqp::{Channel, Closed, Connection, Options, Stream, code};
use super::config::{Broker, BrokerConfig};
use super::declare;
use crate::encryption::connector;

/// Knows how to come to one broker.
pub(super) struct Dial {
    config: BrokerConfig,
    broker: Broker,
    encryption: Option<(TlsConnector, ServerName<'static>)>,
    name: String,
    body_bytes_max: usize,
}

impl Dial {
    /// To the broker of this config, if it has one; `name` is what people see there.
    pub(super) fn new(
        config: &BrokerConfig,
        name: String,
        body_bytes_max: usize,
    ) -> Result<Option<Self>, String> {
        let Some(broker) = config.broker.clone() else { return Ok(None) };
        let encryption = broker.tls.then(|| encryption(config, &broker.host)).transpose()?;
        Ok(Some(Self { config: config.clone(), broker, encryption, name, body_bytes_max }))
    }

    /// The broker's name for people.
    pub(super) fn broker_name(&self) -> String {
        self.broker.name()
    }

    /// A connection that is logged in.
    pub(super) async fn connection(&self) -> Result<Connection, Closed> {
        self.answered("connecting", self.connect()).await
    }

    /// What the broker answers, if it does in the time that connecting may take: a queue without a leader leaves whoever
    /// asks about it waiting for ever, on a connection that is well.
    pub(super) async fn answered<T>(
        &self,
        what: &str,
        asked: impl Future<Output = Result<T, Closed>>,
    ) -> Result<T, Closed> {
        match tokio::time::timeout(self.config.connect_timeout, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(Closed::Broken(format!("{what} took too long").into())),
        }
    }

    /// The same with a channel, and with these queues there. One that does not answer keeps nobody from the others.
    pub(super) async fn channel(&self, queues: &[Short]) -> Result<(Connection, Channel), Closed> {
        let connection = self.connection().await?;
        // Whatever the queues do, there is time left for the channel.
        let each = self.config.connect_timeout / (queues.len() as u32 + 1);
        let opened = async {
            for queue in queues {
                match tokio::time::timeout(each, declare::ensure(&connection, queue)).await {
                    Ok(made) => drop(made?),
                    Err(_) => tracing::warn!(
                        event = "queue.silent",
                        "the queue {} of {} does not answer: going on without it",
                        queue.as_str(),
                        self.broker_name()
                    ),
                }
            }
            connection.channel().await
        };
        let channel = self.answered("opening a channel", opened).await?;
        Ok((connection, channel))
    }

    async fn connect(&self) -> Result<Connection, Closed> {
        let socket = TcpStream::connect((self.broker.host.as_str(), self.broker.port)).await?;
        // A word that waits for company is a word that comes late.
        socket.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match &self.encryption {
            Some((connector, server)) => Box::new(connector.connect(server.clone(), socket).await?),
            None => Box::new(socket),
        };
        let options = Options {
            user: self.broker.user.clone(),
            password: self.broker.password.reveal().to_owned(),
            virtual_host: self.broker.virtual_host.clone(),
            name: self.name.clone(),
            heartbeat: self.config.heartbeat,
            body_bytes_max: self.body_bytes_max,
        };
        Connection::open(stream, &options).await
    }
}

/// Whether the broker does not let us in, which nothing but another login will change.
pub(super) fn is_login_refused(closed: &Closed) -> bool {
    closed.code() == Some(code::ACCESS_REFUSED)
}

fn encryption(config: &BrokerConfig, host: &str) -> Result<(TlsConnector, ServerName<'static>), String> {
    let connector = connector(config.ca_file.as_deref())?;
    let server =
        ServerName::try_from(host.to_owned()).map_err(|_| "the host is no name of one".to_owned())?;
    Ok((connector, server))
}
