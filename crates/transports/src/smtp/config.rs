//! The SMTP server as it is written in a config.

use std::path::PathBuf;
use std::time::Duration;

use redeliver_core::email::Mailbox;

pub use crate::address::Secret;
use crate::address::{parse_address, parse_login, show_address};

/// How mails are handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmtpConfig {
    /// The server; without one, mails wait.
    pub server: Option<Server>,
    /// How the connection is encrypted, where it is not as the URL says.
    pub tls: Option<Tls>,
    /// A file of certificates (PEM) that are trusted beside the usual ones.
    pub ca_file: Option<PathBuf>,
    /// Whether a login may be sent over a connection that anybody can read.
    pub auth_without_tls: bool,
    /// Who writes, where the mail itself doesn't say.
    pub from: Mailbox,
    /// What we call ourselves; our own address if empty.
    pub helo: String,
    /// How long connecting may take, encryption included.
    pub connect_timeout: Duration,
    /// How long the server may take to answer a command.
    pub command_timeout: Duration,
    /// How long the server may take to answer the final dot, when it has the whole mail.
    pub data_timeout: Duration,
    /// How long a connection is kept that nobody uses.
    pub idle_timeout: Duration,
    /// Connections at once.
    pub connections_max: usize,
}

impl Default for SmtpConfig {
    fn default() -> Self {
        Self {
            server: None,
            tls: None,
            ca_file: None,
            auth_without_tls: false,
            from: Mailbox { address: "redeliver@localhost".to_owned(), name: None },
            helo: String::new(),
            connect_timeout: Duration::from_secs(10),
            command_timeout: Duration::from_secs(30),
            // RFC 5321, 4.5.3.2.6: who gives up earlier may send a mail twice that was taken.
            data_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(30),
            connections_max: 20,
        }
    }
}

/// An SMTP server and how to come to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name or address, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is encrypted, unless the config says otherwise.
    pub tls: Tls,
    /// Whom to log in as.
    pub login: Option<Login>,
}

/// How a connection is encrypted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Not at all.
    None,
    /// By STARTTLS if the server offers it. Without a login, nobody asks who the server is.
    Opportunistic,
    /// By STARTTLS, or not at all is not an option.
    Required,
    /// From the first byte.
    Implicit,
}

/// A name and a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The password.
    pub password: Secret,
}

impl SmtpConfig {
    /// How the connection is encrypted.
    pub fn tls(&self) -> Tls {
        self.tls.unwrap_or_else(|| self.server.as_ref().map_or(Tls::Opportunistic, |server| server.tls))
    }

    /// The time-outs that one send can use up one after another, by their keys.
    pub fn timeouts(&self) -> Vec<(&'static str, Duration)> {
        vec![
            ("connect_timeout", self.connect_timeout),
            ("command_timeout", self.command_timeout),
            ("data_timeout", self.data_timeout),
        ]
    }

    /// What can't work, whatever the server says.
    pub fn problem(&self) -> Option<String> {
        let login = self.server.as_ref().is_some_and(|server| server.login.is_some());
        (login && self.tls() == Tls::None && !self.auth_without_tls).then(|| {
            "a login without encryption can be read by anybody: use smtps:// or smtp+starttls://, \
             or say auth_without_tls = true"
                .to_owned()
        })
    }
}

impl Tls {
    /// The words of the config.
    pub const WORDS: [(&str, Self); 4] = [
        ("none", Self::None),
        ("opportunistic", Self::Opportunistic),
        ("required", Self::Required),
        ("implicit", Self::Implicit),
    ];
}

impl Server {
    /// Reads `smtp://host:port`, `smtps://user:password@host` or `smtp+starttls://user:password@host`.
    ///
    /// Errors never repeat the text: it may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wanted =
            "such as smtp://host:25, smtps://user:password@host or smtp+starttls://user:password@host";
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!("a server is written {wanted}"));
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err("nothing follows the host and its port; / ? # in a password are written %2F %3F %23"
                .to_owned());
        }
        let (login, address) = match rest.rsplit_once('@') {
            Some((login, address)) => {
                let (user, password) = parse_login(login)?;
                (Some(Login { user, password }), address)
            }
            None => (None, rest),
        };
        let (tls, usual_port) = match (scheme.to_ascii_lowercase().as_str(), &login) {
            ("smtp", None) => (Tls::Opportunistic, 25),
            ("smtp" | "smtp+starttls", Some(_)) | ("smtp+starttls", None) => (Tls::Required, 587),
            ("smtps", _) => (Tls::Implicit, 465),
            _ => return Err(format!("a server is written {wanted}, not {scheme}://")),
        };
        let (host, port) = parse_address(address)?;
        Ok(Self { host, port: port.unwrap_or(usual_port), tls, login })
    }

    /// The server as people know it, without its login.
    pub fn name(&self) -> String {
        show_address(&self.host, self.port)
    }
}

/// Reads `ada@example.org` or `Ada Lovelace <ada@example.org>`.
pub fn parse_mailbox(text: &str) -> Result<Mailbox, String> {
    Mailbox::parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where_and_how() {
        let check = |url: &str, name: &str, tls: Tls, user: Option<&str>| {
            let server = Server::parse(url).unwrap();
            assert_eq!((server.name().as_str(), server.tls), (name, tls), "{url}");
            assert_eq!(server.login.map(|login| login.user).as_deref(), user, "{url}");
        };
        check("smtp://localhost:2525", "localhost:2525", Tls::Opportunistic, None);
        check("smtp://mx.example.org/", "mx.example.org:25", Tls::Opportunistic, None);
        check("smtp://ada:x@mx.example.org", "mx.example.org:587", Tls::Required, Some("ada"));
        check("SMTPS://ada%40example.org:p%3Aw@mx", "mx:465", Tls::Implicit, Some("ada@example.org"));
        check("smtp+starttls://mx", "mx:587", Tls::Required, None);
        check("smtp://[::1]:25", "[::1]:25", Tls::Opportunistic, None);
        check("smtps://a:b@c@mx", "mx:465", Tls::Implicit, Some("a"));
    }

    #[test]
    fn a_password_is_read_and_never_shown() {
        let server = Server::parse("smtps://ada:s%C3%A9cret%2F@mx").unwrap();
        assert_eq!(server.login.as_ref().unwrap().password.reveal(), "sécret/");
        assert!(!format!("{server:?}").contains("cret"));
        for url in [
            "smtps://ada:secret@",
            "smtps://ada:secret%zz@mx",
            "http://ada:secret@mx",
            "smtps://ada:sec/ret@mx",
            "ada:secret@mx",
            "smtps://secret@mx",
            "smtps://ada:secret@mx:port",
            "smtps://:secret@mx",
        ] {
            let wrong = Server::parse(url).unwrap_err();
            assert!(!wrong.contains("secret"), "{url}: {wrong}");
        }
    }

    #[test]
    fn what_is_no_server_is_said_to_be_none() {
        for url in [
            "",
            "localhost",
            "smtp://",
            "smtp://:25",
            "smtp://a b",
            "smtp://mx:0",
            "smtp://mx:99999",
            "smtp://[::1]x",
            "smtp://mx?tls=no",
        ] {
            assert!(Server::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_sender_is_an_address_perhaps_with_a_name() {
        let check = |text: &str, address: &str, name: Option<&str>| {
            let mailbox = parse_mailbox(text).unwrap();
            assert_eq!((mailbox.address.as_str(), mailbox.name.as_deref()), (address, name));
        };
        check("ada@example.org", "ada@example.org", None);
        check("Ada <ada@example.org>", "ada@example.org", Some("Ada"));
        check("\"L, Ada\" <ada@example.org>", "ada@example.org", Some("L, Ada"));
        for text in ["", "ada", "Ada <ada>", "Ada <a@b", "A\nB <a@b>"] {
            assert!(parse_mailbox(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_login_over_an_open_connection_is_a_mistake_unless_it_is_meant() {
        let server = Server::parse("smtp://ada:x@mx").ok();
        let config = SmtpConfig { server, tls: Some(Tls::None), ..SmtpConfig::default() };
        assert!(config.problem().is_some());
        assert_eq!(SmtpConfig { auth_without_tls: true, ..config.clone() }.problem(), None);
        assert_eq!(SmtpConfig { tls: None, ..config }.problem(), None);
    }
}
