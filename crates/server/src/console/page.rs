//! A page on its way out.

use askama::Template;
use axum::response::Html;

use super::refusal::Refusal;
use crate::problem::Problem;

/// What a handler of a page comes to.
pub(super) type Answer = Result<Html<String>, Refusal>;

/// The page of a template.
pub(super) fn page(template: &impl Template) -> Answer {
    template.render().map(Html).map_err(|error| {
        tracing::error!(event = "page.failed", error = %error, "cannot render a page");
        Problem::internal().into()
    })
}

/// There is no such page.
pub(super) async fn no_such_page() -> Refusal {
    Problem::not_found("no page at this address").into()
}
