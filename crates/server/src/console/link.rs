//! Where pages are.

use std::fmt::Write;

use redeliver_core::MessageId;

/// The overview.
pub(super) const OVERVIEW: &str = "/admin";
/// The e-mail queue.
pub(super) const QUEUE: &str = "/admin/email-queue";
/// Where people log in.
pub(super) const LOGIN: &str = "/login";

/// The page of a message.
pub(super) fn message(id: &MessageId) -> String {
    format!("/admin/messages/{}", segment(&id.to_string()))
}

/// A text as one segment of a path.
fn segment(text: &str) -> String {
    let mut path = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => path.push(byte.into()),
            _ => write!(path, "%{byte:02X}").unwrap_or_default(),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_another_table_stays_one_segment() {
        assert_eq!(
            message(&MessageId::Row("log:a/b?c#d é".into())),
            "/admin/messages/log%3Aa%2Fb%3Fc%23d%20%C3%A9"
        );
    }
}
