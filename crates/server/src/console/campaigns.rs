//! `/admin/campaigns`: the campaigns of a workspace, and how far each has come.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use redeliver_core::campaign::CampaignState;
use redeliver_engine::campaign::CampaignError;
use redeliver_engine::campaigns::CampaignRecord;

use super::emails::visible;
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::moment::Moment;
use super::page::{Answer, page};
use super::progress::Progress;
use super::{Console, link};
use crate::api::campaigns::{read_workspace, within};
use crate::input::Params;

/// Campaigns that are listed: the newest.
const LISTED_MAX: usize = 100;

struct Row {
    href: String,
    name: String,
    sender: String,
    state: &'static str,
    class: &'static str,
    prospects: u64,
    scheduled: u64,
    sent: u64,
    progress: Progress,
    last: Option<Moment>,
}

#[derive(Template)]
#[template(path = "campaigns.html")]
struct Page {
    frame: Frame,
    rows: Vec<Row>,
    is_full: bool,
    workspace: String,
    has_workspaces: bool,
}

/// `GET /admin/campaigns`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    params: Params,
) -> Answer {
    let mut params = params.filled();
    let said = params.get("workspace", read_workspace);
    params.finish()?;
    let workspace = within(&visitor.caller, said)?;
    let engine = &console.server.engine;
    let all = match engine.campaigns_of(&workspace).await {
        Ok(all) => all,
        // A server whose store keeps none has none.
        Err(CampaignError::NoCampaign(_)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut rows = Vec::new();
    for record in all.iter().rev().take(LISTED_MAX) {
        rows.push(Row::of(record, engine.campaign_sent(record).await?));
    }
    page(&Page {
        frame: Frame::around(&console, &visitor, Place::Campaigns),
        is_full: all.len() > rows.len(),
        rows,
        workspace: visible(&workspace),
        has_workspaces: visitor.caller.workspace.is_none(),
    })
}

impl Row {
    fn of(record: &CampaignRecord, sent: u64) -> Self {
        let from = record.definition.from.as_ref();
        Self {
            href: link::campaign(&record.id),
            name: visible(&record.definition.name),
            sender: from.map_or_else(String::new, |from| visible(&from.address)),
            state: record.state.name(),
            class: state_class(record.state),
            prospects: record.prospects,
            scheduled: record.scheduled,
            sent,
            progress: Progress::of(sent, record.scheduled),
            last: record.last_at.map(Moment::clock),
        }
    }
}

/// How a campaign's state is drawn.
pub(super) fn state_class(state: CampaignState) -> &'static str {
    match state {
        CampaignState::Draft | CampaignState::Cancelled => "muted",
        CampaignState::Running => "active",
        CampaignState::Paused => "warning",
        CampaignState::Done => "good",
    }
}
