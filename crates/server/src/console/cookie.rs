//! The cookies of the console: out of reach of scripts and of other sites.

use std::time::Duration;

use axum::http::header::{HeaderMap, HeaderName, SET_COOKIE};

/// When a cookie may only travel by TLS.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Secure {
    /// When the request came by TLS, as whoever ends the TLS before us says in `X-Forwarded-Proto`.
    #[default]
    WhenTls,
    /// Always: for a server that people reach by TLS only.
    Always,
}

impl Secure {
    /// Whether the answer to a request with these headers sets its cookies for TLS only.
    ///
    /// The header can be made up, but by making it up nobody gets more than a cookie that is sent less often.
    fn applies(self, headers: &HeaderMap) -> bool {
        let came_by_tls = || headers.get("x-forwarded-proto").is_some_and(|value| value == "https");
        self == Self::Always || came_by_tls()
    }

    /// The header that sets a cookie, for so long. Its value is ours, and has no character that needs quoting.
    pub(super) fn set(
        self,
        headers: &HeaderMap,
        name: &str,
        value: &str,
        age: Duration,
    ) -> (HeaderName, String) {
        let secure = if self.applies(headers) { "; Secure" } else { "" };
        let age_s = age.as_secs();
        let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age_s}{secure}");
        (SET_COOKIE, cookie)
    }

    /// The header that takes a cookie back.
    pub(super) fn clear(self, headers: &HeaderMap, name: &str) -> (HeaderName, String) {
        self.set(headers, name, "", Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_for_tls_only_where_the_request_came_by_it_or_the_config_says_so() {
        let said = |secure: Secure, proto: &'static str| {
            let headers = HeaderMap::from_iter([(
                HeaderName::from_static("x-forwarded-proto"),
                axum::http::HeaderValue::from_static(proto),
            )]);
            secure.set(&headers, "a", "b", Duration::from_secs(60)).1
        };
        let plain = "a=b; Path=/; HttpOnly; SameSite=Strict; Max-Age=60";
        assert_eq!(said(Secure::WhenTls, "http"), plain);
        assert_eq!(said(Secure::WhenTls, "https"), format!("{plain}; Secure"));
        assert_eq!(said(Secure::Always, "http"), format!("{plain}; Secure"));
    }
}
