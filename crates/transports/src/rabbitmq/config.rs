//! The broker as it is written in a config.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::amqp::wire::SHORT_BYTES_MAX;

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

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"***\"")
    }
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
        let (user, password) = login.map_or_else(|| Ok(("guest".into(), "guest".into())), parse_login)?;
        let (host, port) = parse_address(address)?;
        if virtual_host.len() > SHORT_BYTES_MAX {
            return Err(format!("a virtual host has at most {SHORT_BYTES_MAX} bytes"));
        }
        let port = port.unwrap_or(usual_port);
        Ok(Self { host, port, tls, user, password: Secret(password), virtual_host })
    }

    /// The broker as people know it, without its login.
    pub fn name(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match self.virtual_host.as_str() {
            "/" => format!("{host}:{}", self.port),
            other => format!("{host}:{}/{other}", self.port),
        }
    }
}

fn parse_login(text: &str) -> Result<(String, String), String> {
    let wrong = || "a login is written user:password, with % and two digits for what is no letter".to_owned();
    let (user, password) = text.split_once(':').ok_or_else(wrong)?;
    let (user, password) = (unescape(user).ok_or_else(wrong)?, unescape(password).ok_or_else(wrong)?);
    match user.is_empty() || user.contains('\0') || password.contains('\0') {
        true => Err(wrong()),
        false => Ok((user, password)),
    }
}

fn parse_address(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':').or((!rest.is_empty()).then_some("?"))),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(fits) {
        return Err("the host is missing, or no name of one".to_owned());
    }
    let port = match port {
        None => None,
        Some(port) => match port.parse::<u16>() {
            Ok(port) if port > 0 => Some(port),
            _ => return Err("the port must be a number from 1 to 65535".to_owned()),
        },
    };
    Ok((host.to_owned(), port))
}

/// A text with its `%41` read as what they stand for.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let [high, low, after @ ..] = rest else { return None };
        bytes.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
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
