//! A mail as a third party's parser reads it.

use std::io::Write;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{python, root};

/// A mail, read.
#[derive(Debug)]
pub struct Read {
    headers: Vec<(String, String)>,
    pub parts: Vec<Part>,
}

/// One part of it.
#[derive(Debug)]
pub struct Part {
    pub content_type: String,
    pub name: Option<String>,
    pub method: Option<String>,
    pub bytes: Vec<u8>,
}

impl Read {
    /// Reads a mail; it must have no defects.
    pub fn of(data: &[u8]) -> Self {
        let mut child = Command::new(python())
            .arg(root().join("tests/peers/parse_mail.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(data).unwrap();
        let output = child.wait_with_output().unwrap();
        let read: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(read["defects"], Value::Array(Vec::new()));
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let part = |part: &Value| Part {
            content_type: text(&part["type"]).unwrap(),
            name: text(&part["name"]),
            method: text(&part["method"]),
            bytes: STANDARD.decode(part["base64"].as_str().unwrap()).unwrap(),
        };
        let header = |header: &Value| (text(&header[0]).unwrap(), text(&header[1]).unwrap());
        Self {
            headers: read["headers"].as_array().unwrap().iter().map(header).collect(),
            parts: read["parts"].as_array().unwrap().iter().map(part).collect(),
        }
    }

    /// A header's value; there must not be two.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let (first, second) = (found.next(), found.next());
        assert!(second.is_none(), "two headers {name}");
        first.map(|(_, value)| value.as_str())
    }

    /// The first part of this type.
    pub fn part(&self, content_type: &str) -> &Part {
        let found = self.parts.iter().find(|part| part.content_type == content_type);
        found.unwrap_or_else(|| panic!("no {content_type} in {:?}", self.parts))
    }
}
