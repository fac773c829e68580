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
            "The config has no route {}: the message is kept and goes out once there is one.",
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

/// Whether a gate is closed now and open before a message that keeps its first time comes to it: nobody waits for that.
fn is_over_in_time(view: &GateView, message: &Message) -> bool {
    let is_as_planned = message.attempts == 0 && message.due_at == message.scheduled_for;
    &*view.gate != "due" && is_as_planned && view.until.is_some_and(|until| until <= message.due_at)
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
            format!("{what} is {paused} since {since}, and goes on when a person resumes it")
        }
        Closed::Suppressed => {
            "whoever it is for wants no more, and it goes out once a person takes them off the list"
                .to_owned()
        }
        Closed::Held { probe_at: Some(at) } => format!(
            "{what} is held since {since}, because {reason}; one message finds out at {at} whether that is over, or a person resumes it"
        ),
        Closed::Held { probe_at: None } => {
            format!("{what} is held since {since}, because {reason}, and goes on when a person resumes it")
        }
        Closed::Throttled(until) => format!("{what} is left alone until {until}, because {reason}"),
        Closed::Breaker(BreakerState::Open { probe_at, .. }) => format!(
            "{what} can't be reached since {since}, and one message finds out at {probe_at} whether it answers again"
        ),
        Closed::Breaker(BreakerState::Probing { .. }) => {
            format!(
                "{what} can't be reached since {since}, and one message is finding out whether it answers again"
            )
        }
        Closed::Breaker(BreakerState::Recovering { .. }) => {
            format!("{what} answers again, and takes a few more each second")
        }
    }
}

/// Why a message is still parked for a gate that nothing closes.
fn released(key: &GateKey) -> String {
    match key.parts() {
        ("limit", scope, name) => format!("{scope} {name} has as much as it takes at once"),
        _ => "it is let go with others, a few at a time".to_owned(),
    }
}

fn waits_because(message: &Message) -> &'static str {
    match message.attempts {
        0 => "it was to go out later",
        _ => "it waits for its next try",
    }
}

fn sentence(message: &Message, route: &Route, shut: &[&GateView], now: Timestamp) -> String {
    let tries = || {
        let max = route.max_attempts(message);
        format!("{} of {max} tries made{}", message.attempts, last_error(message))
    };
    match &message.state {
        State::Waiting { .. } => match shut {
            [] => format!("It is due now and goes out as soon as a worker has room; {}.", tries()),
            [only] if &*only.gate == "due" => {
                let what = match message.attempts {
                    0 => "It goes out",
                    _ => "It failed and is tried again",
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
            "It is being sent by instance {}, which has it until {}; {}.",
            lease.instance,
            lease.until_at,
            tries()
        ),
        State::HandedOff { report_by: Some(by), .. } => {
            format!("An outside worker has it and is to report by {by}; {}.", tries())
        }
        State::HandedOff { report_by: None, .. } => {
            format!("An outside worker has it and will report; {}.", tries())
        }
        State::Delivered { at, receipt } => match receipt {
            Some(receipt) => format!("It was delivered at {at}; the other side said: {receipt}"),
            None => format!("It was delivered at {at}."),
        },
        State::Dead { at, reason, .. } => {
            format!("It was given up at {at}: {}{}.", dead_because(*reason, route), last_error(message))
        }
        State::Cancelled { at, reason } if &**reason == "operator" => {
            format!("It was cancelled at {at} by a person.")
        }
        State::Cancelled { at, reason } if &**reason == "ineligible" => {
            format!("It was cancelled at {at}: ineligible, because whoever it is for is not active.")
        }
        State::Cancelled { at, reason } => format!("It was cancelled at {at}: {reason}."),
    }
}

fn dead_because(reason: DeadReason, route: &Route) -> &'static str {
    match reason {
        DeadReason::AttemptsExhausted => "every try failed",
        DeadReason::Refused => "the other side will never take it",
        DeadReason::Expired => "its time ran out",
        DeadReason::Uncertain => match route.on_lost {
            OnLost::Hold => "nobody knows whether it went out, and the route says: not twice",
            OnLost::Retry => "nobody knows whether it went out",
        },
        DeadReason::Poison => "its worker vanished with it again and again",
    }
}

/// Nobody waits for parts of a second.
fn in_seconds(span: Duration) -> Duration {
    Duration::from_secs(span.as_secs() + u64::from(span.subsec_nanos() > 0))
}

fn last_error(message: &Message) -> String {
    match &message.last_error {
        None => String::new(),
        Some(error) => format!(", the last error was {}", error.said()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::{NewMessage, admit};
    use crate::gate::Scope;
    use crate::message::MessageId;
    use crate::outcome::Failure;
    use crate::policy::{Backoff, Jitter, Policy};

    fn route() -> Route {
        let policy = Policy {
            backoff: Backoff::Table(vec![Duration::from_secs(30)]),
            jitter: Jitter::None,
            max_attempts: 6,
            expires_after: None,
        };
        Route::new("email", "smtp", policy)
    }

    fn message(attempts: u32, due_s: i64) -> Message {
        let new = NewMessage {
            attempts,
            due_at: Some(Timestamp::from_ms(due_s * 1_000)),
            error: (attempts > 0).then(|| Failure::new("try later").with_code("451")),
            ..NewMessage::new("email", Content::default())
        };
        admit(new, &route(), MessageId::own(1), None, Timestamp::default()).message
    }

    fn record(key: GateKey, closed: Closed) -> GateRecord {
        GateRecord { key, version: 1, since: Timestamp::default(), reason: "because".into(), closed }
    }

    fn told(message: &Message, closed: &[GateRecord]) -> Explanation {
        let route = route();
        let way = Way { route: &route, destination: "mx", lacks: None, own: Vec::new() };
        explain(message, &Content::default(), Some(&way), closed, Timestamp::default())
    }

    #[test]
    fn a_message_that_waits_for_its_next_try_says_when_and_why() {
        let said = told(&message(2, 30), &[]);
        assert_eq!(said.earliest_at, Some(Timestamp::from_ms(30_000)));
        assert_eq!(
            said.sentence,
            "It failed and is tried again in 30 s, at 1970-01-01T00:00:30.000Z; 2 of 6 tries made, the last error was 451 try later."
        );
        assert_eq!(said.gates[0].reason.as_deref(), Some("it waits for its next try"));
    }

    #[test]
    fn a_due_message_behind_a_pause_has_no_earliest_time() {
        let pause = GateRecord {
            reason: "paused by ann".into(),
            ..record(GateKey::pause(Scope::Route, "email"), Closed::Paused)
        };
        let said = told(&message(0, 0), &[pause]);
        assert_eq!(said.earliest_at, None);
        assert_eq!(
            said.sentence,
            "It waits: route email is paused by ann since 1970-01-01T00:00:00.000Z, and goes on when a person resumes it; 0 of 6 tries made."
        );
        assert!(said.gates.iter().any(|view| &*view.gate == "pause:route:email" && !view.open));
    }

    #[test]
    fn every_gate_says_in_plain_words_why_it_is_closed_and_who_opens_it() {
        let at = Timestamp::from_ms(9_000);
        let hold = || GateKey::hold(Scope::Destination, "mx");
        let breaker = |state| record(GateKey::breaker("mx"), Closed::Breaker(state));
        for (record, words) in [
            (
                record(hold(), Closed::Held { probe_at: Some(at) }),
                "destination mx is held since 1970-01-01T00:00:00.000Z, because because; one message finds out at 1970-01-01T00:00:09.000Z",
            ),
            (
                record(hold(), Closed::Held { probe_at: None }),
                "because because, and goes on when a person resumes it",
            ),
            (
                record(GateKey::throttle("mx"), Closed::Throttled(at)),
                "destination mx is left alone until 1970-01-01T00:00:09.000Z, because because",
            ),
            (
                breaker(BreakerState::Open { probe_at: at, trips: 1 }),
                "destination mx can't be reached since 1970-01-01T00:00:00.000Z, and one message finds out at 1970-01-01T00:00:09.000Z",
            ),
            (breaker(BreakerState::Probing { until: at, trips: 1 }), "is finding out"),
            (
                record(GateKey::suppression("default"), Closed::Suppressed),
                "wants no more, and it goes out once a person takes them off the list",
            ),
        ] {
            let key = record.key.clone();
            let parked = Message { state: State::Waiting { parked_for: Some(key.clone()) }, ..message(0, 0) };
            let said = told(&parked, &[record]).sentence;
            assert!(said.contains(words), "{said}");
            assert!(!said.contains(key.as_str()), "no key is for people: {said}");
        }
        let limit = GateKey::from_text("limit:destination:mx");
        let parked = Message { state: State::Waiting { parked_for: Some(limit) }, ..message(0, 0) };
        let said = told(&parked, &[]).sentence;
        assert!(said.contains("destination mx has as much as it takes at once"), "{said}");
    }

    #[test]
    fn what_is_closed_now_and_open_in_time_is_nothing_that_a_message_waits_for() {
        let route = route();
        let closed = GateView::closed("window", Some(Timestamp::from_ms(20_000)), "outside of its window");
        let said = |message: &Message| {
            let way = Way { route: &route, destination: "mx", lacks: None, own: vec![closed.clone()] };
            explain(message, &Content::default(), Some(&way), &[], Timestamp::default()).sentence
        };
        let planned = message(0, 30);
        assert!(said(&planned).starts_with("It goes out in 30 s"), "{}", said(&planned));
        let moved = Message { scheduled_for: Timestamp::from_ms(10_000), ..planned };
        assert!(said(&moved).contains("outside of its window: not before"), "{}", said(&moved));
    }

    #[test]
    fn a_throttle_moves_the_earliest_time_and_one_that_is_over_does_not() {
        let until =
            |s: i64| record(GateKey::throttle("mx"), Closed::Throttled(Timestamp::from_ms(s * 1_000)));
        assert_eq!(told(&message(0, 0), &[until(9)]).earliest_at, Some(Timestamp::from_ms(9_000)));
        assert_eq!(told(&message(0, 0), &[until(0)]).earliest_at, Some(Timestamp::default()));
    }

    #[test]
    fn a_parked_message_whose_gate_has_opened_is_about_to_be_let_go() {
        let gate = GateKey::hold(Scope::Destination, "mx");
        let parked = Message { state: State::Waiting { parked_for: Some(gate) }, ..message(0, 0) };
        let said = told(&parked, &[]);
        assert!(said.sentence.contains("let go with others"), "{}", said.sentence);
    }

    #[test]
    fn a_message_without_a_route_says_so() {
        let said = explain(&message(0, 0), &Content::default(), None, &[], Timestamp::default());
        assert!(said.sentence.starts_with("The config has no route email"), "{}", said.sentence);
        assert_eq!(said.earliest_at, None);
    }

    #[test]
    fn a_message_whose_transport_has_nowhere_to_go_says_what_is_missing() {
        let (route, message) = (route(), message(0, 0));
        let lacks = Some("no SMTP server is configured: set SMTP_URL".into());
        let way = Way { route: &route, destination: "smtp", lacks, own: Vec::new() };
        let said = explain(&message, &Content::default(), Some(&way), &[], Timestamp::default());
        assert_eq!(said.sentence, "It waits: no SMTP server is configured: set SMTP_URL; 0 of 6 tries made.");
        assert_eq!(said.earliest_at, None);
    }

    #[test]
    fn a_gate_of_the_route_that_cannot_be_asked_moves_the_earliest_time() {
        let (route, message) = (route(), message(1, 0));
        let at = Timestamp::from_ms(7_000);
        let told = |verdict, now| {
            let own = vec![GateView::of("eligibility", verdict, now)];
            let way = Way { route: &route, destination: "mx", lacks: None, own };
            explain(&message, &Content::default(), Some(&way), &[], now)
        };
        let down = || Verdict::Defer { until: Until::At(at), reason: "devices does not answer".into() };
        let said = told(Some(down()), Timestamp::default());
        assert_eq!(said.earliest_at, Some(at));
        assert!(
            said.sentence.contains("devices does not answer: not before 1970-01-01T00:00:07.000Z"),
            "{}",
            said.sentence
        );
        assert!(told(Some(down()), at).gates.iter().all(|view| view.open), "that is over");
        assert!(told(None, at).gates.iter().any(|view| &*view.gate == "eligibility" && view.open));
    }

    #[test]
    fn every_end_has_its_words() {
        let at = Timestamp::default();
        let dead = |reason| State::Dead { at, reason, dismissed_at: None };
        let ends = DeadReason::ALL.map(dead).into_iter().chain([
            State::Delivered { at, receipt: Some("250 OK".into()) },
            State::Cancelled { at, reason: "operator".into() },
            State::Cancelled { at, reason: "ineligible".into() },
        ]);
        let sentences: std::collections::BTreeSet<String> =
            ends.map(|state| told(&Message { state, ..message(1, 0) }, &[]).sentence).collect();
        assert_eq!(sentences.len(), 8, "{sentences:?}");
    }
}
