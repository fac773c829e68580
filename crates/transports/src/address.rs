//! The parts of a server's URL that are the same for every kind of server: login, host, port, and what must not be printed.
//!
//! Errors never repeat the text: it may hold a password.

use std::fmt;

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"***\"")
    }
}

/// Reads `user:password`, both with `%41` for what is no letter.
pub(crate) fn parse_login(text: &str) -> Result<(String, Secret), String> {
    let wrong = || "a login is written user:password, with % and two digits for what is no letter".to_owned();
    let (user, password) = text.split_once(':').ok_or_else(wrong)?;
    let (user, password) = (unescape(user).ok_or_else(wrong)?, unescape(password).ok_or_else(wrong)?);
    match user.is_empty() || user.contains('\0') || password.contains('\0') {
        true => Err(wrong()),
        false => Ok((user, Secret(password))),
    }
}

/// Reads `host`, `host:port` or `[::1]:port`; the host comes without brackets.
pub(crate) fn parse_address(text: &str) -> Result<(String, Option<u16>), String> {
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
pub(crate) fn unescape(text: &str) -> Option<String> {
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

/// A host and its port as people write them.
pub(crate) fn show_address(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_perhaps_a_port() {
        let check = |text: &str, host: &str, port: Option<u16>| {
            assert_eq!(parse_address(text), Ok((host.to_owned(), port)), "{text}");
        };
        check("localhost", "localhost", None);
        check("mx.example.org:25", "mx.example.org", Some(25));
        check("[::1]", "::1", None);
        check("[::1]:5672", "::1", Some(5_672));
        for text in ["", ":25", "a b", "mx:", "mx:0", "mx:99999", "mx:port", "[::1]x", "[]:1"] {
            assert!(parse_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_login_is_read_and_its_password_never_shown() {
        let (user, password) = parse_login("ada%40example.org:s%C3%A9cret%2F:").unwrap();
        assert_eq!((user.as_str(), password.reveal()), ("ada@example.org", "sécret/:"));
        assert!(!format!("{password:?}").contains("cret"));
        for text in ["secret", ":secret", "ada:secret%zz", "ada:secret%4", "ada:secret%ff", "ada%00:secret"] {
            let wrong = parse_login(text).unwrap_err();
            assert!(!wrong.contains("secret"), "{text}: {wrong}");
        }
    }

    #[test]
    fn an_address_of_colons_is_shown_in_brackets() {
        assert_eq!(show_address("::1", 25), "[::1]:25");
        assert_eq!(show_address("mx", 25), "mx:25");
    }
}
