//! `/admin/campaigns/{campaign}`: how far a campaign has come, its calendar, what stands in its way, and its mails. It is
//! launched, paused, resumed and ended here.

use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use redeliver_core::campaign::{CampaignState, Settings, WrittenRampUp};
use redeliver_core::gate::{GateKey, Scope};
use redeliver_core::status::Status;
use redeliver_core::{State as Standing, Timestamp};
use redeliver_engine::Engine;
use redeliver_engine::campaign::{Place as Behind, ScheduledMail};
use redeliver_engine::campaigns::CampaignRecord;

use super::calendar::Drawing;
use super::campaigns::state_class;
use super::emails::visible;
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::moment::Moment;
use super::page::{Answer, page};
use super::progress::Progress;
use super::queue::{status_class, status_words};
use super::refusal::Refusal;
use super::routes::Stopped;
use super::{Console, link};
use crate::api::campaigns::{act, find, forecast, place};
use crate::input::{Params, Segment};
use crate::problem::Problem;

/// Mails of one page.
const PAGE_LEN: usize = 20;

/// Prospects that are planned for a forecast while somebody waits for the page.
const FORECAST_PROSPECTS_MAX: u64 = 5_000;

/// Addresses that are counted.
const SUPPRESSED_COUNTED_MAX: usize = 500;

struct Mail {
    href: String,
    prospect: String,
    step: u32,
    status: &'static str,
    class: &'static str,
    /// What it waits for, where that isn't its time.
    waits_for: Option<String>,
    planned: Option<Moment>,
    next: Option<(Moment, Moment)>,
}

struct Step {
    order: u32,
    after: String,
    subject: String,
}

#[derive(Template)]
#[template(path = "campaign.html")]
struct Page {
    frame: Frame,
    href: String,
    name: String,
    state: &'static str,
    class: &'static str,
    sentence: &'static str,
    can_launch: bool,
    can_pause: bool,
    can_resume: bool,
    can_cancel: bool,
    prospects: u64,
    planned: u64,
    scheduled: u64,
    sent: u64,
    left: u64,
    progress: Progress,
    suppressed: String,
    last: Option<Moment>,
    sender: String,
    stopped: Vec<Stopped>,
    can_let_go: bool,
    forecast: Option<String>,
    calendar: Option<Drawing>,
    steps: Vec<Step>,
    facts: Vec<(&'static str, String)>,
    mails: Vec<Mail>,
    is_first: bool,
    more: Option<String>,
    csrf: String,
}

/// `GET /admin/campaigns/{campaign}`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Segment(id): Segment,
    params: Params,
) -> Answer {
    let mut params = params.filled();
    let after = params.get("after", place::read);
    params.finish()?;
    let engine = &console.server.engine;
    let record = find(&console.server, &visitor.caller, &id).await?;
    let is_first = after.is_none();
    let (mails, next) = engine.schedule_of(&record, after.unwrap_or_default(), PAGE_LEN).await?;
    let calendar = engine.campaign_calendar(&id).await?;
    let sender = record.definition.from.as_ref().map_or("", |from| from.address.as_str());
    let stopped = stopped(engine, sender).await?;
    let suppressed = engine.suppressions(&record.workspace, "", SUPPRESSED_COUNTED_MAX + 1).await?.len();
    let (sent, now) = (calendar.sent(), engine.clock().now());
    let (may_act, state, href) = (visitor.may_act(), record.state, link::campaign(&record.id));
    let is_open = matches!(state, CampaignState::Draft | CampaignState::Running | CampaignState::Paused);
    page(&Page {
        frame: Frame::around(&console, &visitor, Place::Campaigns),
        name: visible(&record.definition.name),
        state: state.name(),
        class: state_class(state),
        sentence: sentence(state),
        can_launch: may_act && state == CampaignState::Draft,
        can_pause: may_act && state == CampaignState::Running,
        can_resume: may_act && state == CampaignState::Paused,
        can_cancel: may_act && is_open,
        prospects: record.prospects,
        planned: record.ledger.plan.after.min(record.prospects),
        scheduled: record.scheduled,
        sent,
        left: record.scheduled.saturating_sub(sent),
        progress: Progress::of(sent, record.scheduled),
        suppressed: match suppressed {
            count if count > SUPPRESSED_COUNTED_MAX => format!("{SUPPRESSED_COUNTED_MAX} +"),
            count => count.to_string(),
        },
        last: record.last_at.map(Moment::clock),
        sender: visible(sender),
        can_let_go: may_act && visitor.caller.workspace.is_none() && !stopped.is_empty(),
        stopped,
        forecast: if is_open { foresee(engine, &record).await? } else { None },
        calendar: Drawing::of(&calendar),
        steps: steps(&record),
        facts: facts(&record),
        mails: mails.iter().map(|mail| Mail::of(mail, now)).collect(),
        is_first,
        more: next.map(|next: Behind| link::with(&href, &[("after", &place::behind(next))])),
        href,
        csrf: visitor.csrf.clone(),
    })
}

/// `POST /admin/campaigns/{campaign}/{word}`
pub(super) async fn tell(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Path((id, word)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let record = find(&console.server, &visitor.caller, &id).await?;
    let (engine, actor) = (&console.server.engine, &visitor.caller.name);
    match word.as_str() {
        "launch" => act::begin(engine, &id, actor).await.map(drop)?,
        "pause" => engine.pause_campaign(&id, actor).await.map(drop)?,
        "resume" => engine.resume_campaign(&id, actor).await.map(drop)?,
        "cancel" => engine.cancel_campaign(&id, actor).await.map(drop)?,
        "let-go" => {
            // A sender may write for other workspaces, too.
            visitor.caller.reaches_all()?;
            let sender = record.definition.from.as_ref().map_or("", |from| from.address.as_str());
            engine.resume(Scope::Sender, sender, actor).await?;
        }
        _ => return Err(Problem::not_found("there is no page at this address").into()),
    }
    Ok(Redirect::to(&link::campaign(&id)).into_response())
}

/// What keeps a sender from sending.
async fn stopped(engine: &Engine, sender: &str) -> Result<Vec<Stopped>, Problem> {
    let keys = [GateKey::pause(Scope::Sender, sender), GateKey::hold(Scope::Sender, sender)];
    let gates = engine.store().gates().await?;
    Ok(gates.iter().filter(|gate| keys.contains(&gate.key)).map(Stopped::of).collect())
}

/// What is still to be planned, in a sentence, where it doesn't take long to find out.
async fn foresee(engine: &Engine, record: &CampaignRecord) -> Result<Option<String>, Problem> {
    let left = record.prospects.saturating_sub(record.ledger.plan.after);
    if left == 0 || left > FORECAST_PROSPECTS_MAX {
        return Ok(None);
    }
    Ok(Some(forecast::sentence(&engine.forecast_campaign(&record.id).await?)))
}

fn sentence(state: CampaignState) -> &'static str {
    match state {
        CampaignState::Draft => "It is a draft: nothing goes out before it is launched.",
        CampaignState::Running => "Its mails go out at their times.",
        CampaignState::Paused => "A person paused it: its mails wait, and it costs them no try.",
        CampaignState::Cancelled => "A person ended it: nothing more of it goes out.",
        CampaignState::Done => "All of its mails have come to their ends.",
    }
}

fn steps(record: &CampaignRecord) -> Vec<Step> {
    let step = |step: &redeliver_core::campaign::Step| Step {
        order: step.order,
        after: match (step.order, step.delay_days) {
            (1, 0) => "at the start".to_owned(),
            (1, 1) => "a day after the start".to_owned(),
            (1, days) => format!("{days} days after the start"),
            (_, 0) => "on the same day as the step before".to_owned(),
            (_, 1) => "a day after the step before".to_owned(),
            (_, days) => format!("{days} days after the step before"),
        },
        subject: visible(&step.subject),
    };
    record.definition.in_order().into_iter().map(step).collect()
}

/// When and how many, as its own settings say.
fn facts(record: &CampaignRecord) -> Vec<(&'static str, String)> {
    let definition = &record.definition;
    let own = definition.settings.clone().unwrap_or_default();
    let Settings { days, start, end, zone, daily_quota, sender_quota, ramp_up, spacing, .. } = own;
    let hours = start.zip(end).map(|(start, end)| format!("{start} to {end}"));
    let ramp_up = ramp_up.map(|ramp_up| match ramp_up {
        WrittenRampUp::Linear { start, step } => format!("{start} on the first day, {step} more on each"),
        WrittenRampUp::Geometric { start, factor } => {
            format!("{start} on the first day, then {factor} times as many")
        }
        WrittenRampUp::Table(days) => days.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    });
    let facts = [
        ("Days", days.map(|days| days.join(", "))),
        ("Hours", hours),
        ("Zone", zone),
        ("Mails a day", daily_quota.map(|quota| quota.to_string())),
        ("Of each sender", sender_quota.map(|quota| quota.to_string())),
        ("Ramp-up", ramp_up),
        ("Between two mails", spacing.map(|(min, max)| format!("{min} to {max}"))),
        ("Not before", definition.start_at.map(|at| at.to_string())),
        ("Route", Some(definition.route.clone())),
        ("Sequence", Some(definition.sequence_id.clone())),
        ("Workspace", Some(record.workspace.to_string())),
        ("Id", Some(record.id.to_string())),
    ];
    facts.into_iter().filter_map(|(name, text)| Some((name, visible(&text?)))).collect()
}

impl Mail {
    fn of(mail: &ScheduledMail, now: Timestamp) -> Self {
        let message = mail.message.as_ref();
        let status = message.map(|message| Status::of(message, now));
        let parked_for = message.and_then(|message| match &message.state {
            Standing::Waiting { parked_for } => parked_for.as_ref(),
            _ => None,
        });
        let waits = message.filter(|message| matches!(message.state, Standing::Waiting { .. }));
        Self {
            href: link::message(&mail.id),
            prospect: visible(&mail.prospect),
            step: mail.step,
            status: status.map_or("ended", status_words),
            class: status.map_or("muted", status_class),
            waits_for: parked_for.map(waits_for),
            planned: message.map(|message| Moment::clock(message.scheduled_for)),
            next: waits.map(|message| (Moment::from_now(message.due_at, now), Moment::clock(message.due_at))),
        }
    }
}

/// What a mail waits for, in words.
fn waits_for(key: &GateKey) -> String {
    let text = key.as_str();
    if key.is_suppression() {
        return "whoever it is for wants no more".to_owned();
    }
    for (start, words) in [
        ("pause:campaign:", "the campaign is paused"),
        ("pause:sender:", "its sender is paused"),
        ("hold:sender:", "its sender is held"),
    ] {
        if text.starts_with(start) {
            return words.to_owned();
        }
    }
    visible(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_mail_waits_for_is_said_in_words() {
        for (key, words) in [
            (GateKey::suppression("w"), "whoever it is for wants no more"),
            (GateKey::pause(Scope::Campaign, "c"), "the campaign is paused"),
            (GateKey::hold(Scope::Sender, "ada@example.org"), "its sender is held"),
            (GateKey::pause(Scope::Sender, "ada@example.org"), "its sender is paused"),
            (GateKey::pause(Scope::Route, "email"), "pause:route:email"),
        ] {
            assert_eq!(waits_for(&key), words);
        }
    }
}
