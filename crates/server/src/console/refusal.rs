//! A problem as people see it: a page that says what is wrong and where to go on.

use askama::Template;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};

use super::frame::Frame;
use super::link;
use crate::problem::Problem;

/// Why there is no page.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) Problem);

impl<E: Into<Problem>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

#[derive(Template)]
#[template(path = "refusal.html")]
struct Page {
    frame: Frame,
    title: String,
    detail: String,
    status: u16,
    overview: &'static str,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self(problem) = self;
        let status = problem.status();
        let page = Page {
            frame: Frame::bare(),
            title: problem.title.clone(),
            detail: sentence(&problem.detail),
            status: problem.status,
            overview: link::OVERVIEW,
        };
        // The API's answer knows what else belongs to such a problem.
        let api = problem.into_response();
        match page.render() {
            Ok(html) => {
                let mut response = (status, Html(html)).into_response();
                if let Some(value) = api.headers().get(header::RETRY_AFTER) {
                    response.headers_mut().insert(header::RETRY_AFTER, value.clone());
                }
                response
            }
            Err(_) => api,
        }
    }
}

/// What the API says in passing, as a sentence of its own.
fn sentence(detail: &str) -> String {
    let mut rest = detail.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest).chain(['.']).collect()
}
