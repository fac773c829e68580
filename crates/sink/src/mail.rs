//! A mail as a sink got it.

use serde::{Deserialize, Serialize};

/// A mail as a sink got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Counts from 1, and is never given twice.
    pub number: u64,
    /// When it was kept, in milliseconds since 1970; nothing if the sink has no clock.
    pub received_at: Option<i64>,
    /// The sender of the envelope; empty for bounces.
    pub from: String,
    /// The recipients of the envelope that were accepted.
    pub to: Vec<String>,
    /// Every byte, as it was before it was sent: without the dots that SMTP adds.
    pub data: Vec<u8>,
    /// Whether its sender was told that it was accepted. If not, it may well come again.
    pub answered: bool,
    /// Who had logged in.
    pub login: Option<String>,
    /// Whether it came encrypted.
    pub tls: bool,
    /// The header `Message-ID`, with its brackets.
    pub message_id: Option<String>,
}

/// A mail without its content: what is listed, and kept beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The number of the mail.
    pub number: u64,
    /// When it was kept, in milliseconds since 1970.
    pub received_at: Option<i64>,
    /// The sender of the envelope.
    pub from: String,
    /// The recipients of the envelope that were accepted.
    pub to: Vec<String>,
    /// How long the mail is.
    pub bytes: usize,
    /// The header `Subject`, as it was written.
    pub subject: Option<String>,
    /// The header `Message-ID`, with its brackets.
    pub message_id: Option<String>,
    /// Whether its sender was told that it was accepted.
    pub answered: bool,
    /// Who had logged in.
    pub login: Option<String>,
    /// Whether it came encrypted.
    pub tls: bool,
}

/// Bytes of a header that are looked at.
const HEADER_BYTES_MAX: usize = 1_000;

impl Mail {
    /// All but the content.
    pub fn listed(&self) -> Listed {
        Listed {
            number: self.number,
            received_at: self.received_at,
            from: self.from.clone(),
            to: self.to.clone(),
            bytes: self.data.len(),
            subject: header(&self.data, "subject"),
            message_id: self.message_id.clone(),
            answered: self.answered,
            login: self.login.clone(),
            tls: self.tls,
        }
    }
}

impl Listed {
    /// The mail again, with its content.
    pub(crate) fn with_data(self, data: Vec<u8>) -> Mail {
        Mail {
            number: self.number,
            received_at: self.received_at,
            from: self.from,
            to: self.to,
            data,
            answered: self.answered,
            login: self.login,
            tls: self.tls,
            message_id: self.message_id,
        }
    }
}

/// The first header with this name, its lines joined; its words stay encoded if they were.
pub(crate) fn header(data: &[u8], name: &str) -> Option<String> {
    let mut lines =
        data.split(|byte| *byte == b'\n').take_while(|line| !line.trim_ascii().is_empty()).peekable();
    while let Some(line) = lines.next() {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        if !line[..colon].trim_ascii_end().eq_ignore_ascii_case(name.as_bytes()) {
            continue;
        }
        let mut value = line[colon + 1..].trim_ascii().to_vec();
        while let Some(more) = lines.next_if(|line| line.starts_with(b" ") || line.starts_with(b"\t")) {
            value.push(b' ');
            value.extend_from_slice(more.trim_ascii());
            if value.len() > HEADER_BYTES_MAX {
                break;
            }
        }
        value.truncate(HEADER_BYTES_MAX);
        return Some(String::from_utf8_lossy(value.trim_ascii()).into_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_found_however_it_is_written() {
        let check = |data: &str, expected: Option<&str>| {
            assert_eq!(header(data.as_bytes(), "subject").as_deref(), expected, "{data:?}");
        };
        check("Subject: hello\r\n\r\nbody", Some("hello"));
        check("From: a\r\nSUBJECT :  hello \r\n there\r\n\tyou\r\nTo: b\r\n\r\n", Some("hello there you"));
        check("From: a\r\n\r\nSubject: in the body\r\n", None);
        check("X-Subject: no\r\n Subject: folded\r\n\r\n", None);
        check("Subject:\r\n\r\n", Some(""));
        check("Subject: cut", Some("cut"));
        check("", None);
        let long = format!("Subject: {}\r\n", "ä".repeat(2_000));
        assert!(header(long.as_bytes(), "subject").unwrap().len() <= HEADER_BYTES_MAX + 3);
    }
}
