//! `/admin/audit`: what people did, newest first, by who did it, what it was and to what.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use redeliver_core::{MessageId, Name};
use redeliver_engine::store::Deed;

use super::emails::visible;
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::moment::Moment;
use super::page::{Answer, page};
use super::{Console, link};
use crate::api::audit;
use crate::input::Params;

/// Deeds of one page.
const PAGE_LEN: usize = 50;

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
    /// What was asked for, as it was written.
    actor: String,
    action: String,
    subject: String,
    is_filtered: bool,
    is_first: bool,
    newest: String,
    older: Option<String>,
}

/// `GET /admin/audit`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    params: Params,
) -> Answer {
    let mut params = params.filled();
    let mut filter = audit::wanted(&mut params, PAGE_LEN);
    params.finish()?;
    visitor.caller.reaches_all()?;
    // People write it as they read it.
    filter.action = filter.action.map(|action| action.trim().replace(' ', "_").into());
    let engine = &console.server.engine;
    let [actor, action, subject] = [&filter.actor, &filter.action, &filter.subject]
        .map(|text| text.as_deref().unwrap_or_default().to_owned());
    let asked = [("actor", actor.as_str()), ("action", &action), ("subject", &subject)];
    let to = |after: &str| link::with(link::AUDIT, &[&asked[..], &[("after", after)]].concat());
    let is_first = filter.after.is_none();
    let (deeds, next) = audit::page(engine, filter).await?;
    let tables: Vec<Name> = engine.routes().filter_map(|route| route.table.clone()).collect();
    let now = engine.clock().now();
    let row = |Deed { audit: deed, .. }: &Deed| Row {
        at: Moment::clock(deed.at),
        distance: Moment::from_now(deed.at, now),
        actor: visible(&deed.actor),
        what: deed.action.replace('_', " "),
        subject: visible(&deed.subject),
        detail: deed.detail.as_deref().map(visible),
        href: href(&deed.subject, &tables),
    };
    let (newest, older) = (to(""), next.map(|next| to(&next)));
    let is_filtered = asked.iter().any(|(_, text)| !text.is_empty());
    page(&Page {
        frame: Frame::around(&console, &visitor, Place::Audit),
        rows: deeds.iter().map(row).collect(),
        is_filtered,
        is_first,
        newest,
        older,
        action: action.replace('_', " "),
        actor,
        subject,
    })
}

/// Where the subject of a deed is looked at, if it has a page: rows of these tables have theirs.
fn href(subject: &str, tables: &[Name]) -> Option<String> {
    if subject.starts_with("route:") {
        return Some(link::ROUTES.to_owned());
    }
    if let Some(id) = subject.strip_prefix("bulk:") {
        return Some(format!("{}/{}", link::BULK, link::segment(id)));
    }
    if let Some(campaign) = subject.strip_prefix("campaign:") {
        return Some(link::campaign(campaign.split(':').next().unwrap_or_default()));
    }
    let is_row = |text: &str| {
        text.split_once(':').is_some_and(|(table, _)| tables.iter().any(|known| **known == *table))
    };
    match subject.parse().ok()? {
        id @ MessageId::Own(_) => Some(link::message(&id)),
        MessageId::Row(text) => is_row(&text).then(|| link::message(&MessageId::Row(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_and_a_route_have_pages_and_anything_else_has_none() {
        let href = |subject: &str| href(subject, &["log".into()]);
        assert_eq!(href("log:17").as_deref(), Some("/admin/messages/log%3A17"));
        let id = MessageId::own(7);
        assert_eq!(href(&id.to_string()), Some(link::message(&id)));
        assert_eq!(href("route:email").as_deref(), Some("/admin/routes"));
        assert_eq!(href("bulk:1").as_deref(), Some("/admin/bulk/1"));
        assert_eq!(href("campaign:7").as_deref(), Some("/admin/campaigns/7"));
        assert_eq!(href("campaign:7:p-1").as_deref(), Some("/admin/campaigns/7"));
        for subject in ["", "rdk_1", "javascript:alert(1)", "destination:mx", "logs:17"] {
            assert_eq!(href(subject), None, "{subject}");
        }
    }
}
