//! `/admin/campaigns/{campaign}`: how far a campaign has come, its calendar, what stands in its way, who could not be planned,
//! its mails, and one prospect who is looked up. It is launched, paused, resumed and ended here.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use redeliver_core::campaign::{CampaignState, Interval, Settings, WrittenRampUp};
use redeliver_core::gate::{GateKey, Scope};
use redeliver_core::status::Status;
use redeliver_core::time::{parse_span, tell_span};
use redeliver_core::{State as Standing, Timestamp};
use redeliver_engine::Engine;
use redeliver_engine::campaign::{Place as Behind, ScheduledMail};
use redeliver_engine::campaigns::CampaignRecord;

use super::calendar::Drawing;
use super::campaigns::state_class;
use super::emails::visible;
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::moment::{Moment, Piece, pieces};
use super::page::{Answer, page};
use super::progress::Progress;
use super::prospect::{LookedUp, look_up};
use super::queue::{status_class, status_words};
use super::refusal::Refusal;
use super::routes::Stopped;
use super::{Console, link};
use crate::api::campaigns::{act, find, forecast, place};
use crate::input::{Pair, Params, Segment};
use crate::problem::Problem;

/// Mails of one page.
const PAGE_LEN: usize = 20;

/// Prospects that are planned for a forecast while somebody waits for the page.
const FORECAST_PROSPECTS_MAX: u64 = 5_000;

/// Holidays and the like that are named.
const LISTED_MAX: usize = 12;

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
    sentence: String,
    can_launch: bool,
    can_pause: bool,
    can_resume: bool,
    can_cancel: bool,
    prospects: u64,
    planned: u64,
    scheduled: u64,
    sent: u64,
    left: u64,
    dead: u64,
    dead_href: String,
    cancelled: u64,
    progress: Progress,
    suppressed: String,
    last: Option<Moment>,
    sender: String,
    stopped: Vec<Stopped>,
    can_let_go: bool,
    forecast: Vec<Piece>,
    /// Where it is found out when all will be planned, if that takes long.
    forecast_href: Option<String>,
    /// How many could not be planned; who and why, of the first of them.
    unplanned: u64,
    unplanned_told: Vec<String>,
    unplanned_are_more: bool,
    can_plan_again: bool,
    prospect: Option<LookedUp>,
    calendar: Option<Drawing>,
    steps: Vec<Step>,
    not_before: Option<Moment>,
    facts: Vec<(&'static str, String)>,
    /// What its own settings say, and what those of its workspace do.
    settings: Vec<(&'static str, String)>,
    allowed: Vec<(&'static str, String)>,
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
    let asked = params.text("prospect");
    params.finish()?;
    let engine = &console.server.engine;
    let record = find(&console.server, &visitor.caller, &id).await?;
    let is_first = after.is_none() && asked.is_none();
    let (prospect, mails, next) = match &asked {
        Some(asked) => {
            let (prospect, mails) = look_up(engine, &record, asked, visitor.may_act()).await?;
            (Some(prospect), mails, None)
        }
        None => {
            let (mails, next) = engine.schedule_of(&record, after.unwrap_or_default(), PAGE_LEN).await?;
            (None, mails, next)
        }
    };
    let calendar = engine.campaign_calendar(&id).await?;
    let sender = record.definition.from.as_ref().map_or("", |from| from.address.as_str());
    let stopped = stopped(engine, sender).await?;
    let suppressed = engine.suppressions(&record.workspace, "", SUPPRESSED_COUNTED_MAX + 1).await?.len();
    let (sent, now) = (calendar.sent(), engine.clock().now());
    let allowed = engine.workspace_settings(&record.workspace).await?;
    let (may_act, state, href) = (visitor.may_act(), record.state, link::campaign(&record.id));
    let (ends, unplanned) = (record.ends, &record.ledger.unplanned);
    let unforeseen = takes_long_to_foresee(&record).then(|| format!("{href}/forecast"));
    let is_open = matches!(state, CampaignState::Draft | CampaignState::Running | CampaignState::Paused);
    page(&Page {
        frame: Frame::around(&console, &visitor, Place::Campaigns),
        name: visible(&record.definition.name),
        state: state.name(),
        class: state_class(state),
        sentence: match (state, &record.paused_for) {
            (CampaignState::Paused, Some(reason)) => format!("Paused automatically: {reason}."),
            _ => sentence(state).to_owned(),
        },
        can_launch: may_act && state == CampaignState::Draft,
        can_pause: may_act && state == CampaignState::Running,
        can_resume: may_act && state == CampaignState::Paused,
        can_cancel: may_act && is_open,
        prospects: record.prospects,
        planned: record.ledger.plan.after.min(record.prospects),
        scheduled: record.scheduled,
        sent,
        left: match is_open {
            true => record.scheduled.saturating_sub(sent + ends.dead + ends.dismissed + ends.cancelled),
            false => 0,
        },
        dead: ends.dead,
        dead_href: link::with(
            link::MESSAGES,
            &[("status", "dead"), ("route", &record.definition.route), ("workspace", &record.workspace)],
        ),
        cancelled: ends.cancelled,
        progress: Progress::of(sent, record.scheduled),
        suppressed: match suppressed {
            count if count > SUPPRESSED_COUNTED_MAX => format!("{SUPPRESSED_COUNTED_MAX} +"),
            count => count.to_string(),
        },
        last: record.last_at.map(Moment::clock),
        sender: visible(sender),
        can_let_go: may_act && visitor.caller.workspace.is_none() && !stopped.is_empty(),
        stopped,
        forecast: if is_open { pieces(&foresee(engine, &record).await?) } else { Vec::new() },
        forecast_href: unforeseen,
        unplanned: unplanned.count,
        unplanned_told: unplanned.told.iter().map(|told| visible(told)).collect(),
        unplanned_are_more: unplanned.count > unplanned.told.len() as u64,
        can_plan_again: may_act && matches!(state, CampaignState::Running | CampaignState::Done),
        prospect,
        calendar: Drawing::of(&calendar),
        steps: steps(&record),
        not_before: record.definition.start_at.map(Moment::clock),
        facts: facts(&record),
        settings: told(record.definition.settings.as_ref().unwrap_or(&Settings::default())),
        allowed: told(&allowed),
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
    Pair(id, word): Pair,
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
        _ => return Err(Problem::not_found("no page at this address").into()),
    }
    Ok(Redirect::to(&link::campaign(&id)).into_response())
}

/// What keeps a sender from sending.
async fn stopped(engine: &Engine, sender: &str) -> Result<Vec<Stopped>, Problem> {
    let keys = [GateKey::pause(Scope::Sender, sender), GateKey::hold(Scope::Sender, sender)];
    let gates = engine.store().gates().await?;
    Ok(gates.iter().filter(|gate| keys.contains(&gate.key)).map(Stopped::of).collect())
}

/// Whether so many are still to be planned that a forecast is found out only where somebody asks for it.
fn takes_long_to_foresee(record: &CampaignRecord) -> bool {
    let ended = matches!(record.state, CampaignState::Cancelled | CampaignState::Done);
    !ended && record.prospects.saturating_sub(record.ledger.plan.after) > FORECAST_PROSPECTS_MAX
}

/// What is to come, in a sentence: what is still to be planned, where it doesn't take long to find out, or when the last goes out.
async fn foresee(engine: &Engine, record: &CampaignRecord) -> Result<String, Problem> {
    match record.prospects.saturating_sub(record.ledger.plan.after) {
        0 => Ok(match record.last_at.filter(|at| *at > engine.clock().now()) {
            Some(at) => {
                format!("Fully planned: the last e-mail is sent at {at}, retries aside.")
            }
            None => String::new(),
        }),
        1..=FORECAST_PROSPECTS_MAX => {
            let forecast = engine.forecast_campaign(&record.id).await?;
            Ok(format!("Forecast: {}.", forecast::sentence(&forecast)))
        }
        left => Ok(format!("{left} prospects are not planned yet.")),
    }
}

fn sentence(state: CampaignState) -> &'static str {
    match state {
        CampaignState::Draft => "Draft: nothing is sent before the launch.",
        CampaignState::Running => "Running: its e-mails are sent at their times.",
        CampaignState::Paused => "Paused by an operator: its e-mails wait, which costs no attempt.",
        CampaignState::Cancelled => "Cancelled by an operator: no more of its e-mails are sent.",
        CampaignState::Done => "Done: all its e-mails have ended.",
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

fn facts(record: &CampaignRecord) -> Vec<(&'static str, String)> {
    let definition = &record.definition;
    vec![
        ("Route", visible(&definition.route)),
        ("Sequence", visible(&definition.sequence_id)),
        ("Workspace", visible(&record.workspace)),
        ("Id", visible(&record.id)),
    ]
}

/// When, how many and how far apart, as settings say; nothing of what they leave open.
fn told(settings: &Settings) -> Vec<(&'static str, String)> {
    let Settings {
        days,
        start,
        end,
        intervals,
        zone,
        holidays,
        blackouts,
        daily_quota,
        sender_quota,
        quota_period,
        ramp_up,
        urgent_share,
        spacing,
    } = settings;
    let hours = start.as_ref().zip(end.as_ref()).map(|(start, end)| format!("{start} to {end}"));
    let interval = |one: &Interval| match &one.days {
        Some(days) => format!("{} {} to {}", days.join(" "), one.start, one.end),
        None => format!("{} to {}", one.start, one.end),
    };
    let ramp_up = ramp_up.as_ref().map(|ramp_up| match ramp_up {
        WrittenRampUp::Linear { start, step } => format!("{start} on the first day, {step} more each day"),
        WrittenRampUp::Geometric { start, factor } => {
            format!("{start} on the first day, then {factor} times as many")
        }
        WrittenRampUp::Table(days) => days.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    });
    let period = quota_period.as_ref().map(|period| match period.as_str() {
        "rolling" => "any 24 hours".to_owned(),
        _ => "a day".to_owned(),
    });
    let facts = [
        ("Days", days.as_ref().map(|days| days.join(", "))),
        ("Hours", hours),
        ("Intervals", listed(intervals.iter().map(interval).collect())),
        ("Zone", zone.clone()),
        ("Holidays", listed(holidays.clone())),
        ("Blackouts", listed(blackouts.clone())),
        ("E-mails per day", daily_quota.map(|quota| quota.to_string())),
        ("Per sender", sender_quota.map(|quota| quota.to_string())),
        ("Period", period),
        ("Ramp-up", ramp_up),
        ("Urgent share", urgent_share.clone()),
        ("Spacing", spacing.as_ref().map(|(min, max)| format!("{} to {}", span(min), span(max)))),
    ];
    facts.into_iter().filter_map(|(name, text)| Some((name, visible(&text?)))).collect()
}

/// The first of a list, and how many more there are.
fn listed(all: Vec<String>) -> Option<String> {
    let more = match all.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!all.is_empty()).then(|| format!("{}{more}", all[..all.len().min(LISTED_MAX)].join(", ")))
}

/// A span as the console tells it, whatever way it was written.
fn span(written: &str) -> String {
    parse_span(written).map_or_else(|_| written.to_owned(), tell_span)
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
        return "recipient is suppressed".to_owned();
    }
    for (start, words) in [
        ("pause:campaign:", "campaign is paused"),
        ("pause:prospect:", "prospect is paused"),
        ("pause:sender:", "sender is paused"),
        ("hold:sender:", "sender is held"),
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
    fn settings_are_told_in_full_and_long_lists_in_part() {
        let days: Vec<String> = (1..=15).map(|day| format!("2026-12-{day:02}")).collect();
        let settings = serde_json::json!({ "days": ["mon"], "zone": "Europe/Paris", "holidays": days, "quota_period": "rolling",
            "intervals": [{ "start": "09:00", "end": "12:00" }, { "days": ["tue"], "start": "14:00", "end": "17:00" }],
            "blackouts": ["2026-12-24..2027-01-01"], "spacing": ["30s", "90s"] });
        let told = told(&serde_json::from_value(settings).unwrap());
        let said = |name: &str| told.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str());
        assert_eq!(said("Intervals"), Some("09:00 to 12:00, tue 14:00 to 17:00"));
        assert!(said("Holidays").is_some_and(|text| text.ends_with("2026-12-12 and 3 more")), "{told:?}");
        assert_eq!(said("Period"), Some("any 24 hours"));
        assert_eq!(said("Blackouts"), Some("2026-12-24..2027-01-01"));
        assert_eq!(said("Spacing"), Some("30 s to 1 min 30 s"));
        assert_eq!(said("Hours"), None);
    }

    #[test]
    fn what_a_mail_waits_for_is_said_in_words() {
        for (key, words) in [
            (GateKey::suppression("w"), "recipient is suppressed"),
            (GateKey::pause(Scope::Campaign, "c"), "campaign is paused"),
            (GateKey::prospect("c", "p-1"), "prospect is paused"),
            (GateKey::hold(Scope::Sender, "ada@example.org"), "sender is held"),
            (GateKey::pause(Scope::Sender, "ada@example.org"), "sender is paused"),
            (GateKey::pause(Scope::Route, "email"), "pause:route:email"),
        ] {
            assert_eq!(waits_for(&key), words);
        }
    }
}
