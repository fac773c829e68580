//! Says in plain words why a message is where it is, what it waits for, and when it can move.

use std::sync::Arc;
use std::time::Duration;

use crate::breaker::BreakerState;
use crate::content::Content;
use crate::gate::{Closed, GateKey, GateRecord, Verdict, on_the_way};
use crate::message::{DeadReason, Message, State};
use crate::outcome::Until;
use crate::route::{OnLost, Route};
use crate::time::{Timestamp, tell_span};

/// Why a message is where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The whole of it in a sentence or two.
    pub sentence: String,
    /// The earliest time at which it can go out, if it can at all and that is known.
    pub earliest_at: Option<Timestamp>,
    /// What stands before its next try, in the order in which it is asked.
    pub gates: Vec<GateView>,
}

/// One gate, as it concerns one message.
#[derive(Clone, Debug, PartialEq)]
pub struct GateView {
    /// Which gate: a gate's key, `due`, `transport`, the name of one of the route's own; or, before a mail of a campaign,
    /// `campaign`, `prospect`, `suppression`, `step`, `window`, `spacing` and `quota`.
    pub gate: Arc<str>,
    /// Whether it lets the message pass now.
    pub open: bool,
    /// Since when it is closed.
    pub since: Option<Timestamp>,
    /// Until when it is closed, if that is known.
    pub until: Option<Timestamp>,
    /// Why it is closed.
    pub reason: Option<Arc<str>>,
    /// The same as a part of a sentence, with when it opens.
    clause: Option<String>,
}

/// The way that a message would go.
#[derive(Debug)]
pub struct Way<'a> {
    /// Its route.
    pub route: &'a Route,
    /// Where to, as breakers, holds and limits know it.
    pub destination: &'a str,
    /// What its transport lacks to carry anything at all.
    pub lacks: Option<Arc<str>>,
    /// The route's own gates, as far as they know without asking anybody.
    pub own: Vec<GateView>,
}

impl GateView {
    /// A gate that is open.
    pub fn open(gate: &str) -> Self {
        Self { gate: gate.into(), open: true, since: None, until: None, reason: None, clause: None }
    }

    /// A gate that is closed, until when if that is known, and why.
    pub fn closed(gate: &str, until: Option<Timestamp>, reason: impl Into<Arc<str>>) -> Self {
        let reason = reason.into();
        let clause = match until {
            Some(until) => format!("{reason}: not before {until}"),
            None => reason.to_string(),
        };
        let (reason, clause) = (Some(reason), Some(clause));
        Self { gate: gate.into(), open: false, since: None, until, reason, clause }
    }

    /// One of a route's own gates, by what it is known to say.
    pub fn of(name: &str, verdict: Option<Verdict>, now: Timestamp) -> Self {
        match verdict {
            None | Some(Verdict::Pass) => Self::open(name),
            Some(Verdict::Defer { until: Until::At(at), .. }) if at <= now => Self::open(name),
            Some(Verdict::Defer { until: Until::At(at), reason }) => Self::closed(name, Some(at), reason),
            Some(Verdict::Defer { until: Until::Opens(_), reason }) => Self::closed(name, None, reason),
            Some(Verdict::Skip { reason }) => Self::closed(name, None, reason),
            Some(Verdict::Refuse(failure)) => Self::closed(name, None, failure.text),
        }
    }

    /// One that the whole fleet shares, and that lets nothing through.
    fn shared(record: &GateRecord) -> Self {
        Self {
            gate: record.key.as_str().into(),
            open: false,
            since: Some(record.since),
            until: ends_at(record),
            reason: Some(record.reason.clone()),
            clause: Some(words(record)),
        }
    }
}

/// Explains a message, given the way that it would go, if the config has one, and every gate that isn't simply open.
pub fn explain(
    message: &Message,
    content: &Content,
    way: Option<&Way<'_>>,
    closed: &[GateRecord],
    now: Timestamp,
) -> Explanation {
    let gates = match message.state {
        State::Waiting { .. } => views(message, content, way, closed, now),
        _ => Vec::new(),
    };
    let shut: Vec<&GateView> =
        gates.iter().filter(|view| !view.open && !is_over_in_time(view, message)).collect();
    let earliest_at = match message.state {
        State::Waiting { .. } if shut.iter().all(|view| view.until.is_some()) && way.is_some() => {
            Some(shut.iter().filter_map(|view| view.until).fold(message.due_at.max(now), Timestamp::max))
        }
        _ => None,
    };
    let sentence = match way {
        None => format!(
            "The config has no route {}: the message is kept, and is sent once there is one.",
            message.route
        ),
        Some(way) => sentence(message, way.route, &shut, now),
    };
    Explanation { sentence, earliest_at, gates }
}

/// What stands before the next try: the clock, whatever it is parked for, and the gates of its surroundings.
fn views(
    message: &Message,
    content: &Content,
    way: Option<&Way<'_>>,
    closed: &[GateRecord],
    now: Timestamp,
) -> Vec<GateView> {
    let is_due = message.due_at <= now;
    let due = match is_due {
        true => GateView::open("due"),
        false => GateView {
            clause: Some(format!("it is due at {}", message.due_at)),
            ..GateView::closed("due", Some(message.due_at), waits_because(message))
        },
    };
    let mut views = vec![due];
    let parked_for = match &message.state {
        State::Waiting { parked_for } => parked_for.as_ref(),
        _ => None,
    };
    let mut keys = on_the_way(message, content, way.map(|way| way.destination));
    if let Some(way) = way {
        keys.push(GateKey::throttle(way.destination));
        keys.extend(way.route.breaker.is_some().then(|| GateKey::breaker(way.destination)));
    }
    // Holds that nothing closes are of no interest to anybody.
    keys.retain(|key| !key.is_hold() || closed.iter().any(|record| record.key == *key));
    if let Some(key) = parked_for.filter(|key| !keys.contains(key)) {
        keys.push(key.clone());
    }
    if let Some(lacks) = way.and_then(|way| way.lacks.clone()) {
        views.push(GateView::closed("transport", None, lacks));
    }
    for key in keys {
        let record = closed.iter().find(|record| record.key == key && record.is_shut(now));
        views.push(match record {
            Some(record) => GateView::shared(record),
            None if parked_for == Some(&key) => GateView::closed(key.as_str(), None, released(&key)),
            None => GateView::open(key.as_str()),
        });
    }
    views.extend(way.into_iter().flat_map(|way| way.own.iter().cloned()));
    views
}

/// Whether a gate is closed now and open before a message comes to it that keeps its first time, or waits for its next try
/// longer than for whatever its sender has just sent, which may have been itself: nobody waits for that.
fn is_over_in_time(view: &GateView, message: &Message) -> bool {
    let is_as_planned = message.attempts == 0 && message.due_at == message.scheduled_for;
    let is_its_own = message.attempts > 0 && &*view.gate == "spacing";
    &*view.gate != "due"
        && (is_as_planned || is_its_own)
        && view.until.is_some_and(|until| until <= message.due_at)
}

fn ends_at(record: &GateRecord) -> Option<Timestamp> {
    match record.closed {
        Closed::Throttled(until) => Some(until),
        Closed::Paused | Closed::Suppressed | Closed::Held { .. } | Closed::Breaker(_) => None,
    }
}

/// What a closed gate means for whoever waits before it, and who opens it when.
fn words(record: &GateRecord) -> String {
    let (_, scope, name) = record.key.parts();
    // A prospect is called by their own id: their mail says which campaign it is of.
    let name = if record.key.is_prospect() { name.split_once(':').map_or(name, |(_, id)| id) } else { name };
    let (what, since, reason) = (format!("{scope} {name}"), record.since, &record.reason);
    match &record.closed {
        Closed::Paused => {
            let paused =
                if reason.starts_with("paused") { reason.to_string() } else { format!("paused ({reason})") };
            format!("{what} is {paused} since {since} until an operator resumes it")
        }
        Closed::Suppressed => {
            "recipient is suppressed; it is sent once an operator removes the address from the list"
                .to_owned()
        }
        Closed::Held { probe_at: Some(at) } => format!(
            "{what} is held since {since}, because {reason}; one message is tried at {at}, or an operator resumes it"
        ),
        Closed::Held { probe_at: None } => {
            format!("{what} is held since {since} until an operator resumes it, because {reason}")
        }
        Closed::Throttled(until) => format!("{what} is throttled until {until}, because {reason}"),
        Closed::Breaker(BreakerState::Open { probe_at, .. }) => {
            format!("{what} has been unreachable since {since}; one message is tried at {probe_at}")
        }
        Closed::Breaker(BreakerState::Probing { .. }) => {
            format!("{what} has been unreachable since {since}; one message is being tried")
        }
        Closed::Breaker(BreakerState::Recovering { .. }) => {
            format!("{what} answers again; its rate increases every second")
        }
    }
}

/// Why a message is still parked for a gate that nothing closes.
fn released(key: &GateKey) -> String {
    match key.parts() {
        ("limit", scope, name) => format!("{scope} {name} is at its limit"),
        _ => "it is released with others, a few at a time".to_owned(),
    }
}

fn waits_because(message: &Message) -> &'static str {
    match message.attempts {
        0 => "it is scheduled for later",
        _ => "it waits for its next attempt",
    }
}

fn sentence(message: &Message, route: &Route, shut: &[&GateView], now: Timestamp) -> String {
    let tries = || {
        let max = route.max_attempts(message);
        format!("{} of {max} attempts made{}", message.attempts, last_error(message))
    };
    match &message.state {
        State::Waiting { .. } => match shut {
            [] => format!("It is due now and is sent as soon as a worker is free; {}.", tries()),
            [only] if &*only.gate == "due" => {
                let what = match message.attempts {
                    0 => "It is sent",
                    _ => "It failed and is retried",
                };
                let left = tell_span(in_seconds(message.due_at.since(now)));
                format!("{what} in {left}, at {}; {}.", message.due_at, tries())
            }
            several => {
                let gates: Vec<&str> = several.iter().filter_map(|view| view.clause.as_deref()).collect();
                format!("It waits: {}; {}.", gates.join("; "), tries())
            }
        },
        State::Claimed(lease) => format!(
            "It is being sent by instance {}, whose lease ends at {}; {}.",
            lease.instance,
            lease.until_at,
            tries()
        ),
        State::HandedOff { report_by: Some(by), .. } => {
            format!("An outside worker has it and must report by {by}; {}.", tries())
        }
        State::HandedOff { report_by: None, .. } => {
            format!("An outside worker has it and will report; {}.", tries())
        }
        State::Delivered { at, receipt } => match receipt {
            Some(receipt) => format!("It was delivered at {at}; receipt: {receipt}"),
            None => format!("It was delivered at {at}."),
        },
        State::Dead { at, reason, .. } => {
            format!("It died at {at}: {}{}.", dead_because(*reason, route), last_error(message))
        }
        State::Cancelled { at, reason } if &**reason == "operator" => {
            format!("It was cancelled at {at} by an operator.")
        }
        State::Cancelled { at, reason } if &**reason == "ineligible" => {
            format!("It was cancelled at {at}: ineligible, because the recipient is not active.")
        }
        State::Cancelled { at, reason } => format!("It was cancelled at {at}: {reason}."),
    }
}

fn dead_because(reason: DeadReason, route: &Route) -> &'static str {
    match reason {
        DeadReason::AttemptsExhausted => "every attempt failed",
        DeadReason::Refused => "the receiver refused it",
        DeadReason::Expired => "it expired",
        DeadReason::Uncertain => match route.on_lost {
            OnLost::Hold => "it may have been delivered, and the route does not send twice",
            OnLost::Retry => "no send of it was confirmed; it may already have been delivered",
        },
        DeadReason::Poison => "its worker crashed repeatedly",
    }
}

/// Nobody waits for parts of a second.
fn in_seconds(span: Duration) -> Duration {
    Duration::from_secs(span.as_secs() + u64::from(span.subsec_nanos() > 0))
}

fn last_error(message: &Message) -> String {
    match &message.last_error {
        None => String::new(),
        Some(error) => format!(", last error: {}", error.said()),
    }
}

#[cfg(test)]
mod tests;
