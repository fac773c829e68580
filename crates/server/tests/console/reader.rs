//! Somebody with a browser's manners: keeps cookies, fills in forms, and checks that every page is well made.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::html;

/// Whoever reads pages.
#[derive(Clone)]
pub struct Reader {
    router: Router,
    pub cookies: BTreeMap<String, String>,
}

/// An answer, read whole.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Reader {
    /// Somebody without cookies.
    pub fn new(router: &Router) -> Self {
        Self { router: router.clone(), cookies: BTreeMap::new() }
    }

    pub async fn log_in(&mut self, key: &str) -> Answer {
        self.post("/login", &[("key", key)]).await
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        self.ask(Request::get(path), Body::empty()).await
    }

    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.post_from(path, fields, "same-origin").await
    }

    /// Sends a form from a page that the browser knows to be of such a site.
    pub async fn post_from(&mut self, path: &str, fields: &[(&str, &str)], site: &str) -> Answer {
        let field = |(name, text): &(&str, &str)| format!("{name}={}", encoded(text));
        let body = fields.iter().map(field).collect::<Vec<_>>().join("&");
        let request = Request::post(path)
            .header("sec-fetch-site", site)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.ask(request, Body::from(body)).await
    }

    /// Presses the button behind this path, with the token that its page has.
    pub async fn press(&mut self, page: &str, path: &str, back: &str) -> Answer {
        let csrf = self.get(page).await.csrf();
        self.post(path, &[("csrf", &csrf), ("back", back)]).await
    }

    async fn ask(&mut self, request: axum::http::request::Builder, body: Body) -> Answer {
        let is_mail = request.uri_ref().is_some_and(|uri| uri.path().ends_with("/body"));
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = request.header(header::COOKIE, cookies.join("; ")).body(body).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let answer = Answer {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(bytes.into()).unwrap(),
        };
        for cookie in answer.headers.get_all(header::SET_COOKIE) {
            let (pair, attributes) = cookie.to_str().unwrap().split_once("; ").unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            match attributes.contains("Max-Age=0") {
                true => self.cookies.remove(name),
                false => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        // A mail's own HTML is as it is, behind a policy of its own.
        if is_mail {
            return answer;
        }
        if answer.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/html; charset=utf-8") {
            html::check(&answer.body);
            check_headers(&answer.headers);
        }
        answer
    }
}

impl Answer {
    /// Where it leads; empty if nowhere.
    pub fn location(&self) -> &str {
        self.headers.get(header::LOCATION).map_or("", |value| value.to_str().unwrap())
    }

    /// The token in its first form.
    pub fn csrf(&self) -> String {
        let after = self.body.split_once("name=\"csrf\" value=\"").expect("a form with a token").1;
        after.split_once('"').unwrap().0.to_owned()
    }

    /// Whether it has this text, as people see it.
    pub fn says(&self, text: &str) -> bool {
        self.body.contains(text)
    }
}

/// What every page tells the browser.
fn check_headers(headers: &HeaderMap) {
    let policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
        form-action 'self'; frame-ancestors 'none'; base-uri 'none'; connect-src 'self'; frame-src 'self'";
    for (name, value) in [
        ("content-security-policy", policy),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(headers.get(name).map(|value| value.to_str().unwrap()), Some(value), "{name}");
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
