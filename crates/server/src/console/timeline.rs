//! What happened to one message, try by try, and what comes next.

use std::collections::BTreeMap;

use redeliver_core::attempt::{AttemptRecord, Verdict};
use redeliver_core::edit::EditRecord;
use redeliver_core::time::tell_span;
use redeliver_core::{InstanceId, Message, State as Standing, Timestamp};
use redeliver_engine::Engine;
use redeliver_engine::store::StoreError;

use super::emails::{said, visible};
use super::guard::Visitor;
use super::moment::Moment;

/// Tries that are drawn ahead, at most, and the last.
const AHEAD_MAX: usize = 8;

/// One thing that happened, or will.
pub(super) struct Step {
    pub(super) class: &'static str,
    pub(super) what: String,
    pub(super) detail: Option<String>,
    /// Which instance did it, where that is known.
    pub(super) by: Option<String>,
    /// What the time is the time of, where it isn't that of the thing itself.
    pub(super) when: &'static str,
    /// How long ago or ahead that is, and when, if anybody knows.
    pub(super) at: Option<(Moment, Moment)>,
    /// The course that a try took to there, as far as it is known.
    pub(super) course: Vec<Point>,
}

/// One point on the course of a try: it was due then, or claimed so much later.
pub(super) struct Point {
    pub(super) word: &'static str,
    pub(super) at: Moment,
}

/// What instances are called, as far as whoever looks may know.
pub(super) struct Instances(BTreeMap<InstanceId, String>);

impl Instances {
    /// A name says where an instance runs, which is for those who see all workspaces; the others are told its id.
    pub(super) async fn living(
        engine: &Engine,
        visitor: &Visitor,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        if visitor.caller.workspace.is_some() {
            return Ok(Self(BTreeMap::new()));
        }
        let living = engine.store().living(now).await?;
        let named = living.into_iter().filter_map(|one| Some((one.id, one.about?.name.to_string())));
        Ok(Self(named.collect()))
    }

    fn called(&self, id: InstanceId) -> String {
        match self.0.get(&id) {
            Some(name) => format!("by {} ({id})", visible(name)),
            None => format!("by instance {id}"),
        }
    }
}

/// Everything that happened in the order in which it did, and what comes next.
pub(super) fn steps(
    message: &Message,
    attempts: &[AttemptRecord],
    edits: &[EditRecord],
    engine: &Engine,
    instances: &Instances,
) -> Vec<Step> {
    let now = engine.clock().now();
    let step = |class, what: String, detail: Option<String>, at| Step::at(class, what, detail, at, now);
    let before = match message.attempts_before {
        0 => None,
        n => Some(format!("after {n} attempts made elsewhere")),
    };
    let mut steps = vec![step("muted", "Accepted".to_owned(), before, message.created_at)];
    let mut happened: Vec<(Timestamp, Step)> = Vec::new();
    for record in edits {
        let fields: Vec<String> =
            record.differences.iter().map(|different| visible(&different.field)).collect();
        let what = format!("Corrected by {}, sent again", visible(&record.actor));
        happened.push((record.at, step("muted", what, Some(fields.join(", ")), record.at)));
    }
    for record in attempts {
        let (class, word) = verdict_words(record.verdict);
        let what = format!("{}: {word}", number(record.attempt, record.generation));
        let by = record.instance.map(|instance| instances.called(instance));
        let step = step(class, what, record.failure.as_ref().map(said), record.at);
        happened.push((record.at, Step { by, course: course_of(record), ..step }));
    }
    happened.sort_by_key(|(at, _)| *at);
    steps.extend(happened.into_iter().map(|(_, step)| step));
    steps.extend(present(message, instances, now));
    if matches!(message.state, Standing::Waiting { .. }) {
        steps.extend(ahead(message, engine, now));
    }
    steps
}

/// Where it stands now, and what is expected of that.
fn present(message: &Message, instances: &Instances, now: Timestamp) -> Vec<Step> {
    let step = |class, what: String, detail: Option<String>, at| Step::at(class, what, detail, at, now);
    match &message.state {
        Standing::Waiting { parked_for: None } => {
            let what = format!("Attempt {} is next", message.next_attempt());
            vec![Step { when: "due ", ..step("next", what, None, message.due_at) }]
        }
        Standing::Waiting { parked_for: Some(_) } => {
            let what = format!("Attempt {} waits for a gate", message.next_attempt());
            vec![Step { when: "due ", ..step("next", what, None, message.due_at) }]
        }
        Standing::Claimed(lease) => {
            let what = format!("Attempt {} is under way", message.next_attempt());
            let (when, at) = match lease.started_at {
                Some(at) => ("since ", at),
                None => ("claimed until ", lease.until_at),
            };
            let by = Some(instances.called(lease.instance));
            vec![Step { by, when, ..step("next", what, None, at) }]
        }
        Standing::HandedOff { since, report_by } => {
            let what = number(message.next_attempt(), message.generation);
            let handed = step("muted", format!("{what}: handed off to an outside worker"), None, *since);
            let course = course(&[("due", due(message)), ("handed off", Some(*since))]);
            let report = report_by.map(|at| {
                let what = "Waiting for the report".to_owned();
                Step { when: "by ", ..step("next", what, None, at) }
            });
            [Step { course, ..handed }].into_iter().chain(report).collect()
        }
        Standing::Delivered { at, receipt } => {
            let what = match message.attempts {
                // A row that its application sent by itself.
                0 => "Delivered".to_owned(),
                n => format!("{}: delivered", number(n, message.generation)),
            };
            let course = course(&[("due", due(message)), ("delivered", Some(*at))]);
            vec![Step { course, ..step("good", what, receipt.as_deref().map(visible), *at) }]
        }
        Standing::Dead { at, reason, .. } => {
            vec![step("alarm", "Dead".to_owned(), Some(reason.name().replace('_', " ")), *at)]
        }
        Standing::Cancelled { at, reason } => {
            vec![step("muted", "Cancelled".to_owned(), Some(visible(reason)), *at)]
        }
    }
}

impl Step {
    fn at(class: &'static str, what: String, detail: Option<String>, at: Timestamp, now: Timestamp) -> Self {
        let at = at.known().map(|at| (Moment::from_now(at, now), Moment::clock(at)));
        Self { class, what, detail, by: None, when: "", at, course: Vec::new() }
    }
}

/// Which try, of a message that may have been started over.
fn number(attempt: u32, generation: u32) -> String {
    match generation {
        0 => format!("Attempt {attempt}"),
        n => format!("Attempt {attempt}, generation {n}"),
    }
}

/// When a message was due, unless its application's row doesn't say.
fn due(message: &Message) -> Option<Timestamp> {
    (message.due_at < Timestamp::MAX).then_some(message.due_at)
}

fn course_of(record: &AttemptRecord) -> Vec<Point> {
    let end = match record.verdict {
        Verdict::Failed | Verdict::Refused | Verdict::Partial | Verdict::Late => "answered",
        Verdict::Lost => "no answer",
    };
    course(&[
        ("due", record.due_at),
        ("claimed", record.claimed_at),
        ("sent", record.sent_at),
        (end, Some(record.at)),
    ])
}

/// The first time that is known by the clock, and each other one by how long after the one before it it was; nothing where
/// only the end is known.
fn course(points: &[(&'static str, Option<Timestamp>)]) -> Vec<Point> {
    let mut before = None;
    let known = points.iter().filter_map(|(word, at)| Some((*word, (*at)?)));
    let points: Vec<Point> = known
        .map(|(word, at)| match before.replace(at) {
            None => Point { word, at: Moment::clock(at) },
            Some(before) => Point { word, at: Moment::after(at, before) },
        })
        .collect();
    if points.len() > 1 { points } else { Vec::new() }
}

/// The tries behind the next one, each with the earliest and the latest time that its policy gives it.
fn ahead(message: &Message, engine: &Engine, now: Timestamp) -> Vec<Step> {
    let Some(route) = engine.route(&message.route) else { return Vec::new() };
    let (policy, tries_max) = (route.policy(message), route.max_attempts(message));
    let (mut from, mut to) = (message.due_at, message.due_at);
    let mut steps = Vec::new();
    for n in message.next_attempt()..tries_max {
        let wait = policy.wait(n);
        (from, to) = (from.plus(wait.min), to.plus(wait.max));
        if steps.len() < AHEAD_MAX || n + 1 == tries_max {
            let room = match to.since(from) {
                room if room.is_zero() => "if that fails".to_owned(),
                room => format!("if that fails, or up to {} later", tell_span(room)),
            };
            let what = format!("Attempt {}{}", n + 1, if n + 1 == tries_max { ", the last" } else { "" });
            steps.push(Step::at("ahead", what, Some(room), from, now));
        }
    }
    steps
}

fn verdict_words(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Failed => ("warning", "failed"),
        Verdict::Refused => ("alarm", "refused"),
        Verdict::Partial => ("warning", "accepted for some recipients"),
        Verdict::Lost => ("warning", "lost: it may have been delivered"),
        Verdict::Late => ("muted", "result came too late"),
    }
}
