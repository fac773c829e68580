//! Where pages are.

use std::fmt::Write;

use redeliver_core::MessageId;

/// The overview.
pub(super) const OVERVIEW: &str = "/admin";
/// The e-mail queue.
pub(super) const QUEUE: &str = "/admin/email-queue";
/// All messages.
pub(super) const MESSAGES: &str = "/admin/messages";
/// What is done to many messages.
pub(super) const BULK: &str = "/admin/bulk";
/// What was given up.
pub(super) const DEAD: &str = "/admin/dead-letters";
/// Steps for prospects.
pub(super) const CAMPAIGNS: &str = "/admin/campaigns";
/// The routes.
pub(super) const ROUTES: &str = "/admin/routes";
/// What is stopped and can be let go.
pub(super) const STOPPED: &str = "/admin/stopped";
/// What people did.
pub(super) const AUDIT: &str = "/admin/audit";
/// Who may come in.
pub(super) const KEYS: &str = "/admin/keys";
/// Where people log in.
pub(super) const LOGIN: &str = "/login";

/// The page of a message.
pub(super) fn message(id: &MessageId) -> String {
    format!("/admin/messages/{}", segment(&id.to_string()))
}

/// A page with these parameters, without those that say nothing.
pub(super) fn with(page: &str, params: &[(&str, &str)]) -> String {
    let mut path = page.to_owned();
    for (name, text) in params.iter().filter(|(_, text)| !text.is_empty()) {
        let between = if path.contains('?') { '&' } else { '?' };
        path.push(between);
        path.push_str(&format!("{name}={}", segment(text)));
    }
    path
}

/// One campaign.
pub(super) fn campaign(id: &str) -> String {
    format!("{CAMPAIGNS}/{}", segment(id))
}

/// A text as one segment of a path.
pub(super) fn segment(text: &str) -> String {
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
