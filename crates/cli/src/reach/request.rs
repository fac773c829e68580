//! A request, before it is known how it travels.

use std::fmt::Write;

use axum::http::Method;
use serde_json::Value;

/// The content type of one message, or of an array.
const JSON: &str = "application/json";

/// The content type of messages, a line each.
const NDJSON: &str = "application/x-ndjson";

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    pub(super) method: Method,
    /// The path, and what stands behind the question mark.
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Asks for what is at a path.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    /// Asks for something to be done.
    pub fn post(path: impl Into<String>) -> Self {
        Self { method: Method::POST, ..Self::get(path) }
    }

    /// Asks for something to be as it is sent.
    pub fn put(path: impl Into<String>) -> Self {
        Self { method: Method::PUT, ..Self::get(path) }
    }

    /// Asks for something to be gone.
    pub fn delete(path: impl Into<String>) -> Self {
        Self { method: Method::DELETE, ..Self::get(path) }
    }

    /// With these parameters.
    pub fn with(mut self, params: &[(&str, &str)]) -> Self {
        for (name, value) in params {
            let between = if self.path.contains('?') { '&' } else { '?' };
            self.path.push(between);
            self.path.push_str(&format!("{}={}", segment(name), segment(value)));
        }
        self
    }

    /// With this header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// With this JSON.
    pub fn json(self, value: &Value) -> Self {
        Self { body: value.to_string().into_bytes(), ..self }.header("content-type", JSON)
    }

    /// With this CSV.
    pub fn csv(self, text: Vec<u8>) -> Self {
        Self { body: text, ..self }.header("content-type", "text/csv")
    }

    /// With these lines of JSON.
    pub fn lines(self, lines: Vec<u8>) -> Self {
        Self { body: lines, ..self }.header("content-type", NDJSON)
    }
}

/// A text as a part of a path or a query.
pub fn segment(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            written.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(written, "%{byte:02X}");
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plain_is_escaped_in_paths_and_queries() {
        let path = format!("/v1/messages/{}", segment("log:a b/ü"));
        let request = Request::get(path).with(&[("key", "a&b=c+d"), ("limit", "2")]);
        assert_eq!(request.path, "/v1/messages/log%3Aa%20b%2F%C3%BC?key=a%26b%3Dc%2Bd&limit=2");
    }
}
