//! `/admin`: whether all is well, in a few numbers.

use std::time::Duration;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use redeliver_core::{InstanceId, Timestamp};
use redeliver_engine::store::Living;

use super::chart::Charts;
use super::emails::visible;
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::moment::Moment;
use super::page::{Answer, page};
use super::queue::Show;
use super::routes::{Stopped, stops};
use super::standing::{self, Row};
use super::tally::{Open, Tally};
use super::{Console, link};

/// How late the longest due may be before somebody should know.
const LATE_AFTER: Duration = Duration::from_secs(60);

/// Whether a number is good news.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Mood {
    /// Nothing to do.
    Muted,
    /// It goes on by itself, but not all has arrived yet.
    Warning,
    /// Somebody has to look.
    Alarm,
}

impl Mood {
    fn class(self) -> &'static str {
        match self {
            Self::Muted => "muted",
            Self::Warning => "warning",
            Self::Alarm => "alarm",
        }
    }
}

struct Card {
    name: &'static str,
    mood: &'static str,
    number: String,
    since: Option<Moment>,
    /// What the number means for whoever reads it, so that colour alone says nothing.
    meaning: &'static str,
    href: String,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    frame: Frame,
    cards: Vec<Card>,
    rows: Vec<Row>,
    stopped: Vec<Stopped>,
    charts: Option<Charts>,
    instances: Vec<Instance>,
    may_act: bool,
    csrf: String,
}

/// One that lives, as people see it.
struct Instance {
    name: String,
    version: String,
    id: String,
    started: Option<Moment>,
    beat: Option<Moment>,
    leases: u64,
    is_this: bool,
}

impl Instance {
    fn of(living: &Living, this: InstanceId, now: Timestamp) -> Self {
        let about = living.about.as_ref();
        Self {
            name: about.map_or_else(|| "unnamed".to_owned(), |about| visible(&about.name)),
            version: about.map(|about| visible(&about.version)).unwrap_or_default(),
            id: living.id.to_string(),
            started: about.map(|about| Moment::from_now(about.started_at, now)),
            beat: living.beat_at.map(|at| Moment::from_now(at, now)),
            leases: living.leases,
            is_this: living.id == this,
        }
    }
}

/// `GET /admin`
pub(super) async fn show(State(console): State<Console>, Extension(visitor): Extension<Visitor>) -> Answer {
    let tally = Tally::take(&console.server.engine, visitor.caller.workspace.as_ref()).await?;
    let cards = cards(&tally, console.server.engine.clock().now());
    let (mut rows, mut stopped, mut charts) = (Vec::new(), Vec::new(), None);
    let mut instances = Vec::new();
    // The store counts all workspaces together, and a destination's name may be anybody's address.
    if visitor.caller.workspace.is_none() {
        let (engine, now) = (&console.server.engine, console.server.engine.clock().now());
        rows = standing::rows(engine, &engine.store().counts(now).await?, now).await?;
        stopped = stops(&engine.store().gates().await?);
        charts = Some(Charts::of(&engine.pulse().minutes(now)));
        let living = engine.store().living(now).await?;
        instances = living.iter().map(|one| Instance::of(one, engine.instance(), now)).collect();
    }
    let frame = Frame::around(&console, &visitor, Place::Overview);
    let (may_act, csrf) = (visitor.may_act(), visitor.csrf.clone());
    page(&Page { frame, cards, rows, stopped, charts, instances, may_act, csrf })
}

/// What is open of the e-mails, what is open of everything else, and what is due of all of it.
fn cards(tally: &Tally, now: Timestamp) -> Vec<Card> {
    let card = |name, href: String, number: String, (mood, meaning): (Mood, _)| Card {
        name,
        mood: mood.class(),
        number,
        since: None,
        meaning,
        href,
    };
    let with_status = |status| link::with(link::MESSAGES, &[("status", status)]);
    let lateness = tally.oldest_due_at.map(|at| now.since(at));
    let mut cards = Vec::new();
    if let Some(Open { pending, dead }) = tally.emails {
        let (pending_mood, dead_mood) = (pending_mood(pending.count), dead_mood(dead.count));
        cards.push(card("Pending e-mails", Show::Pending.href(), pending.to_string(), pending_mood));
        cards.push(card("Failed e-mails", Show::Failed.href(), dead.to_string(), dead_mood));
    }
    if let Some(Open { pending, dead }) = tally.others {
        let (pending_name, dead_name) = match tally.emails {
            Some(_) => ("Other messages pending", "Other messages dead"),
            None => ("Pending messages", "Dead messages"),
        };
        let (pending_mood, dead_mood) = (pending_mood(pending.count), dead_mood(dead.count));
        cards.push(card(pending_name, link::MESSAGES.to_owned(), pending.to_string(), pending_mood));
        cards.push(card(dead_name, link::DEAD.to_owned(), dead.to_string(), dead_mood));
    }
    cards.push(card("Due now", with_status("due"), tally.due.to_string(), due_mood(tally.due.count)));
    cards.push(Card {
        since: tally.oldest_due_at.map(|at| Moment::from_now(at, now)),
        ..card("Oldest due", with_status("due"), "none".to_owned(), lateness_mood(lateness))
    });
    let kept = (Mood::Muted, "kept for their retention");
    cards.push(card("Delivered", with_status("delivered"), tally.delivered.to_string(), kept));
    cards
}

fn pending_mood(count: u64) -> (Mood, &'static str) {
    match count {
        0 => (Mood::Muted, "nothing waiting"),
        _ => (Mood::Warning, "sent when due, retried automatically"),
    }
}

fn dead_mood(count: u64) -> (Mood, &'static str) {
    match count {
        0 => (Mood::Muted, "none dead"),
        _ => (Mood::Alarm, "retry or dismiss them"),
    }
}

fn due_mood(count: u64) -> (Mood, &'static str) {
    match count {
        0 => (Mood::Muted, "nothing to send now"),
        _ => (Mood::Muted, "sent as capacity allows"),
    }
}

fn lateness_mood(lateness: Option<Duration>) -> (Mood, &'static str) {
    match lateness {
        None => (Mood::Muted, "nothing due"),
        Some(late) if late <= LATE_AFTER => (Mood::Muted, "on time"),
        Some(_) => (Mood::Warning, "late: is an instance running?"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::Amount;
    use super::*;

    fn open(pending: u64, dead: u64) -> Option<Open> {
        let amount = |count| Amount { count, is_least: false };
        Some(Open { pending: amount(pending), dead: amount(dead) })
    }

    #[test]
    fn cards_are_muted_when_healthy_warn_of_the_pending_and_alarm_for_the_failed() {
        let now = Timestamp::from_ms(1_000_000_000);
        let moods = |emails: Option<Open>, others: Option<Open>, late_s: Option<u64>| {
            let oldest_due_at = late_s.map(|s| now.minus(Duration::from_secs(s)));
            let tally = Tally { emails, others, oldest_due_at, ..Tally::default() };
            cards(&tally, now).iter().map(|card| card.mood).collect::<Vec<_>>()
        };
        assert_eq!(moods(open(0, 0), None, None), ["muted"; 5]);
        assert_eq!(moods(open(3, 0), None, Some(1)), ["warning", "muted", "muted", "muted", "muted"]);
        assert_eq!(moods(open(0, 1), None, None), ["muted", "alarm", "muted", "muted", "muted"]);
        assert_eq!(moods(open(3, 1), None, Some(61)), ["warning", "alarm", "muted", "warning", "muted"]);
        assert_eq!(moods(None, open(3, 1), Some(61)), ["warning", "alarm", "muted", "warning", "muted"]);
        let both = moods(open(0, 0), open(0, 1), None);
        assert_eq!(both, ["muted", "muted", "muted", "alarm", "muted", "muted", "muted"]);
    }

    #[test]
    fn cards_are_called_e_mails_only_where_they_count_e_mails() {
        let names = |emails, others| {
            let tally = Tally { emails, others, ..Tally::default() };
            cards(&tally, Timestamp::default()).iter().map(|card| card.name).collect::<Vec<_>>()
        };
        assert_eq!(names(None, open(0, 0))[..2], ["Pending messages", "Dead messages"]);
        let both = names(open(0, 0), open(0, 0));
        assert_eq!(both[..2], ["Pending e-mails", "Failed e-mails"]);
        assert_eq!(both[2..4], ["Other messages pending", "Other messages dead"]);
    }
}
