//! The address of a database as people write it, password and all: shown without anything secret.

use std::fmt;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::errors::OpenError;
use super::open::{parse, place};

/// The address of a database: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Shows where it is, and nothing secret.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    text: String,
    place: String,
}

impl PostgresUrl {
    /// The beginnings by which an address is known.
    pub const SCHEMES: [&'static str; 2] = ["postgres", "postgresql"];

    /// Reads an address. The error doesn't repeat it.
    pub fn parse(text: &str) -> Result<Self, OpenError> {
        let (config, _) = parse(text)?;
        check_hosts(&config)?;
        Ok(Self { text: text.to_owned(), place: place(&config) })
    }

    /// The address with everything in it, for whoever connects.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

/// A host with an `@` is the rest of a password that has one.
fn check_hosts(config: &Config) -> Result<(), OpenError> {
    let is_odd = |host: &Host| matches!(host, Host::Tcp(name) if name.contains(['@', '?', '#']));
    if config.get_hosts().iter().any(is_odd) {
        let why = "the host has a character that none has; in a password, @ is written as %40".to_owned();
        return Err(OpenError::BadAddress { why });
    }
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(OpenError::BadAddress { why: "it names no host".to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let url = PostgresUrl::parse("postgres://ann:secret@db1,db2:6000/mail?sslmode=verify-full").unwrap();
        assert_eq!(url.to_string(), "postgres://db1:5432,db2:6000/mail");
        assert_eq!(format!("{url:?}"), "postgres://db1:5432,db2:6000/mail");
        assert!(url.expose().contains("secret"));
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said_without_it() {
        for text in [
            "postgres://ann:p@secret@db/mail",
            "postgres://ann:secret@db:port/mail",
            "postgres://ann:secret@db/mail?sslmode=maybe",
            "postgres://ann:secret@db/mail?nonsense=1",
            "postgres:///mail?password=secret",
        ] {
            let error = PostgresUrl::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{text}: {error}");
        }
    }
}
