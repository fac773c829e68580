//! `/admin/campaigns/{campaign}/forecast`: when a campaign would be done. Of many prospects that takes seconds to find out, and
//! so it has a page of its own.

use askama::Template;
use axum::Extension;
use axum::extract::State;

use super::emails::visible;
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::page::{Answer, page};
use super::{Console, link};
use crate::api::campaigns::find;
use crate::api::campaigns::forecast::ForecastView;
use crate::input::{Params, Segment};

#[derive(Template)]
#[template(path = "forecast.html")]
struct Page {
    frame: Frame,
    href: String,
    name: String,
    forecast: ForecastView,
}

/// `GET /admin/campaigns/{campaign}/forecast`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Segment(id): Segment,
    params: Params,
) -> Answer {
    params.finish()?;
    let record = find(&console.server, &visitor.caller, &id).await?;
    let forecast = console.server.engine.forecast_campaign(&id).await?;
    page(&Page {
        frame: Frame::around(&console, &visitor, Place::Campaigns),
        href: link::campaign(&record.id),
        name: visible(&record.definition.name),
        forecast: ForecastView::of(&forecast),
    })
}
