//! The broker as it is written in a config.

use std::path::PathBuf;
use std::time::Duration;

use super::amqp::wire::SHORT_BYTES_MAX;
pub use crate::address::Secret;
use crate::address::{parse_address, parse_login, show_address, unescape};

/// How a broker is come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerConfig {
    /// The broker; without one, messages wait.
    pub broker: Option<Broker>,
    /// A file of certificates (PEM) that are trusted beside the usual ones.
    pub ca_file: Option<PathBuf>,
    /// How long connecting may take, encryption and login included.
    pub connect_timeout: Duration,
    /// How long the broker may be silent before it counts as gone.
    pub heartbeat: Duration,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        Self {
            broker: None,
            ca_file: None,
            connect_timeout: Duration::from_secs(5),
            heartbeat: Duration::from_secs(10),
        }
    }
}

/// How messages are published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RabbitmqConfig {
    /// The broker.
    pub broker: BrokerConfig,
    /// The exchange; the default one, without a name, leads to the queue that the target names.
    pub exchange: String,
    /// How long the broker may take to confirm before a message counts as lost.
    pub confirm_timeout: Duration,
    /// What a confirm means.
    pub on_confirm: OnConfirm,
    /// Whether the queues of dead letters are made where they are missing.
    pub declare: bool,
    /// The queues that are made where they are missing.
    pub queues: Vec<String>,
}

impl RabbitmqConfig {
    /// The time-outs that one send can use up one after another, by their keys.
    pub fn timeouts(&self) -> Vec<(&'static str, Duration)> {
        vec![("connect_timeout", self.broker.connect_timeout), ("confirm_timeout", self.confirm_timeout)]
    }
}

impl Default for RabbitmqConfig {
    fn default() -> Self {
        Self {
            broker: BrokerConfig::default(),
            exchange: String::new(),
            confirm_timeout: Duration::from_secs(30),
            on_confirm: OnConfirm::Delivered,
            declare: true,
            queues: Vec::new(),
        }
    }
}

/// What a broker's confirm means for a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OnConfirm {
    /// It has arrived.
    Delivered,
    /// An outside worker has it now, and will report.
    HandedOff,
}

impl OnConfirm {
    /// The words of the config.
    pub const WORDS: [(&str, Self); 2] = [("delivered", Self::Delivered), ("handed_off", Self::HandedOff)];
}

/// A broker and how to come to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Its name or address, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Whom to log in as.
    pub user: String,
    /// The password.
    pub password: Secret,
    /// Which of the broker's worlds.
    pub virtual_host: String,
}

impl Broker {
    /// Reads `amqp://user:password@host:5672/virtual-host`, or `amqps://`. Without a login it is `guest`, as with other
    /// clients; without a virtual host it is `/`.
    ///
    /// Errors never repeat the text: it may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wanted = "such as amqp://user:password@host:5672/virtual-host, or amqps://";
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!("a broker is written {wanted}"));
        };
        let (tls, usual_port) = match scheme.to_ascii_lowercase().as_str() {
            "amqp" => (false, 5_672),
            "amqps" => (true, 5_671),
            _ => return Err(format!("a broker is written {wanted}, not {scheme}://")),
        };
        if rest.contains(['?', '#']) {
            return Err(
                "nothing follows the virtual host; ? and # in a password are written %3F %23".to_owned()
            );
        }
        let (rest, virtual_host) = match rest.rsplit_once('@') {
            // A / in a password is most likely one that should have been written %2F.
            Some((login, _)) if login.contains('/') => {
                return Err("/ in a password is written %2F".to_owned());
            }
            _ => match rest.split_once('/') {
                Some((rest, "")) => (rest, "/".to_owned()),
                Some((rest, name)) => (rest, unescape(name).ok_or("the virtual host can't be read")?),
                None => (rest, "/".to_owned()),
            },
        };
        let (login, address) = match rest.rsplit_once('@') {
            Some((login, address)) => (Some(login), address),
            None => (None, rest),
        };
        let guest = || Ok(("guest".to_owned(), Secret::new("guest")));
        let (user, password) = login.map_or_else(guest, parse_login)?;
        let (host, port) = parse_address(address)?;
        if virtual_host.len() > SHORT_BYTES_MAX {
            return Err(format!("a virtual host has at most {SHORT_BYTES_MAX} bytes"));
        }
        let port = port.unwrap_or(usual_port);
        Ok(Self { host, port, tls, user, password, virtual_host })
    }

    /// The broker as people know it, without its login.
    pub fn name(&self) -> String {
        let address = show_address(&self.host, self.port);
        match self.virtual_host.as_str() {
            "/" => address,
            other => format!("{address}/{other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where_and_as_whom() {
        let check = |url: &str, name: &str, tls: bool, user: &str| {
            let broker = Broker::parse(url).unwrap();
            assert_eq!(
                (broker.name().as_str(), broker.tls, broker.user.as_str()),
                (name, tls, user),
                "{url}"
            );
        };
        check("amqp://localhost:5672", "localhost:5672", false, "guest");
        check("amqp://localhost", "localhost:5672", false, "guest");
        check("amqps://ada:x@mq.example.org/", "mq.example.org:5671", true, "ada");
        check("AMQP://ada%40x:p%2Fw@mq:1/orders", "mq:1/orders", false, "ada@x");
        check("amqp://[::1]:5672/%2F", "[::1]:5672", false, "guest");
        assert_eq!(Broker::parse("amqp://a:p%40w@mq").unwrap().password.reveal(), "p@w");
    }

    #[test]
    fn what_is_no_broker_is_said_to_be_none_without_its_password() {
        for url in [
            "",
            "localhost",
            "http://ada:secret@mq",
            "amqp://",
            "amqp://ada:secret@",
            "amqp://ada:secret%zz@mq",
            "amqp://ada:sec/ret@mq",
            "amqp://secret@mq",
            "amqp://ada:secret@mq:none",
            "amqp://ada:secret@mq:0",
            "amqp://ada:secret@mq?heartbeat=5",
            "amqp://a b",
        ] {
            let wrong = Broker::parse(url).unwrap_err();
            assert!(!wrong.contains("secret"), "{url}: {wrong}");
        }
        assert!(!format!("{:?}", Broker::parse("amqp://ada:secret@mq")).contains("secret"));
    }
}
