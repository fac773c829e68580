//! `/admin/audit`: what people did, newest first.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use redeliver_core::MessageId;
use redeliver_core::change::Audit;

use super::emails::visible;
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::moment::Moment;
use super::page::{Answer, page};
use super::{Console, link};
use crate::input::Params;
use crate::limits::PAGE_LEN_MAX;

struct Row {
    at: Moment,
    distance: Moment,
    actor: String,
    what: String,
    subject: String,
    detail: Option<String>,
    href: Option<String>,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Page {
    frame: Frame,
    rows: Vec<Row>,
    is_full: bool,
}

/// `GET /admin/audit`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    params: Params,
) -> Answer {
    params.finish()?;
    visitor.caller.reaches_all()?;
    let engine = &console.server.engine;
    let (deeds, now) = (engine.store().audit(PAGE_LEN_MAX).await?, engine.clock().now());
    let row = |deed: &Audit| Row {
        at: Moment::clock(deed.at),
        distance: Moment::from_now(deed.at, now),
        actor: visible(&deed.actor),
        what: deed.action.replace('_', " "),
        subject: visible(&deed.subject),
        detail: deed.detail.as_deref().map(visible),
        href: href(&deed.subject),
    };
    page(&Page {
        frame: Frame::around(&console, &visitor, Place::Audit),
        is_full: deeds.len() == PAGE_LEN_MAX,
        rows: deeds.iter().map(row).collect(),
    })
}

/// Where the subject of a deed is looked at, if it has a page.
fn href(subject: &str) -> Option<String> {
    if subject.starts_with("route:") {
        return Some(link::ROUTES.to_owned());
    }
    if let Some(id) = subject.strip_prefix("bulk:") {
        return Some(format!("{}/{}", link::BULK, link::segment(id)));
    }
    if let Some(campaign) = subject.strip_prefix("campaign:") {
        return Some(link::campaign(campaign.split(':').next().unwrap_or_default()));
    }
    match subject.parse() {
        Ok(id @ MessageId::Own(_)) => Some(link::message(&id)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_and_a_route_have_pages_and_anything_else_has_none() {
        let id = MessageId::own(7);
        assert_eq!(href(&id.to_string()), Some(link::message(&id)));
        assert_eq!(href("route:email").as_deref(), Some("/admin/routes"));
        assert_eq!(href("bulk:1").as_deref(), Some("/admin/bulk/1"));
        assert_eq!(href("campaign:7").as_deref(), Some("/admin/campaigns/7"));
        assert_eq!(href("campaign:7:p-1").as_deref(), Some("/admin/campaigns/7"));
        for subject in ["", "rdk_1", "javascript:alert(1)", "destination:mx"] {
            assert_eq!(href(subject), None, "{subject}");
        }
    }
}
