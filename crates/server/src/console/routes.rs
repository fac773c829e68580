//! `/admin/routes`: the ways that messages travel, when each tries again, and what stops them.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use redeliver_core::gate::{Closed, GateKey, GateRecord, Scope};
use redeliver_core::time::tell_span;
use redeliver_core::{Lane, Policy, Route};

use super::curve::Curve;
use super::emails::visible;
use super::frame::{Frame, Place};
use super::guard::Visitor;
use super::moment::Moment;
use super::page::{Answer, page};
use super::refusal::Refusal;
use super::{Console, link};
use crate::input::{Pair, Params, Segment};
use crate::problem::Problem;

/// How some priorities of a route travel, which is the same for all of them.
struct Way {
    priorities: String,
    transport: String,
    target: Option<String>,
    tries: u32,
    span: String,
    curve: Curve,
}

struct Card {
    name: String,
    paused: Option<(String, Moment)>,
    dead_letter: Option<String>,
    retention: String,
    ways: Vec<Way>,
    pause: String,
    resume: String,
    messages: String,
}

/// Something that is stopped, and why.
pub(super) struct Stopped {
    pub(super) what: String,
    pub(super) how: &'static str,
    pub(super) class: &'static str,
    pub(super) reason: String,
    pub(super) since: Moment,
    pub(super) until: Option<Moment>,
    /// When it goes on, where that is no known time.
    pub(super) ends: &'static str,
    /// Where a person lets it go, where that is done from here.
    pub(super) release: Option<String>,
    /// Whether a person stopped a whole route, whose own panel says so.
    is_pause_of_route: bool,
}

#[derive(Template)]
#[template(path = "routes.html")]
struct Page {
    frame: Frame,
    cards: Vec<Card>,
    stopped: Vec<Stopped>,
    may_act: bool,
    csrf: String,
}

/// `GET /admin/routes`
pub(super) async fn show(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    params: Params,
) -> Answer {
    params.finish()?;
    let engine = &console.server.engine;
    let gates = engine.store().gates().await?;
    // What is stopped for others is none of a workspace's business: a destination's name may be anybody's address.
    let is_for_all = visitor.caller.workspace.is_none();
    let mut stopped = if is_for_all { stops(&gates) } else { Vec::new() };
    stopped.retain(|gate| !gate.is_pause_of_route);
    page(&Page {
        frame: Frame::around(&console, &visitor, Place::Routes),
        cards: engine.routes().map(|route| Card::of(route, &gates)).collect(),
        stopped,
        may_act: visitor.may_act() && is_for_all,
        csrf: visitor.csrf.clone(),
    })
}

/// `POST /admin/routes/{name}/pause`
pub(super) async fn pause(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Segment(name): Segment,
) -> Result<Response, Refusal> {
    check(&console, &visitor, &name)?;
    console.server.engine.pause(Scope::Route, &name, &visitor.caller.name).await?;
    Ok(Redirect::to(link::ROUTES).into_response())
}

/// `POST /admin/routes/{name}/resume`
pub(super) async fn resume(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Segment(name): Segment,
) -> Result<Response, Refusal> {
    check(&console, &visitor, &name)?;
    console.server.engine.resume(Scope::Route, &name, &visitor.caller.name).await?;
    Ok(Redirect::to(link::ROUTES).into_response())
}

/// `POST /admin/stopped/{scope}/{name}/release`: lets a destination or a sender go.
pub(super) async fn let_go(
    State(console): State<Console>,
    Extension(visitor): Extension<Visitor>,
    Pair(scope, name): Pair,
) -> Result<Response, Refusal> {
    visitor.caller.reaches_all()?;
    let scope = released(&scope).ok_or_else(|| Problem::not_found("no page at this address"))?;
    console.server.engine.resume(scope, &name, &visitor.caller.name).await?;
    Ok(Redirect::to(link::ROUTES).into_response())
}

fn check(console: &Console, visitor: &Visitor, name: &str) -> Result<(), Problem> {
    visitor.caller.reaches_all()?;
    match console.server.engine.route(name) {
        Some(_) => Ok(()),
        None => Err(Problem::not_found("no such route")),
    }
}

/// What is stopped, of all that isn't simply open. Those who want no more are not stopped: nobody waits for them; and those who
/// are paused one by one are told of with their campaign.
pub(super) fn stops(gates: &[GateRecord]) -> Vec<Stopped> {
    let is_told = |gate: &&GateRecord| !gate.key.is_suppression() && !gate.key.is_prospect();
    gates.iter().filter(is_told).map(Stopped::of).collect()
}

impl Card {
    fn of(route: &Route, gates: &[GateRecord]) -> Self {
        let key = GateKey::pause(Scope::Route, &route.name);
        let paused = gates.iter().find(|gate| gate.key == key);
        let at = |verb: &str| format!("{}/{}/{verb}", link::ROUTES, link::segment(&route.name));
        Self {
            name: visible(&route.name),
            paused: paused.map(|gate| (visible(&gate.reason), Moment::clock(gate.since))),
            dead_letter: route.dead_letter.as_deref().map(visible),
            retention: tell_span(route.retention),
            ways: ways(route),
            pause: at("pause"),
            resume: at("resume"),
            messages: link::with(link::MESSAGES, &[("route", &route.name)]),
        }
    }
}

/// The ways of a route, those that are alike as one.
fn ways(route: &Route) -> Vec<Way> {
    let is_alike = |one: Lane, other: Lane| {
        let (one, other) = (route.travel(one), route.travel(other));
        (&one.transport, &one.target, &one.policy) == (&other.transport, &other.target, &other.policy)
    };
    let mut alike: Vec<Vec<Lane>> = Vec::new();
    for lane in Lane::ALL {
        match alike.iter_mut().find(|lanes| lanes.iter().all(|one| is_alike(*one, lane))) {
            Some(lanes) => lanes.push(lane),
            None => alike.push(vec![lane]),
        }
    }
    alike.iter().filter_map(|lanes| Some(Way::of(route, lanes, *lanes.first()?))).collect()
}

impl Way {
    fn of(route: &Route, lanes: &[Lane], lane: Lane) -> Self {
        let travel = route.travel(lane);
        let names: Vec<&str> = lanes.iter().map(|lane| lane.name()).collect();
        Self {
            priorities: if lanes.len() == Lane::ALL.len() {
                "all priorities".to_owned()
            } else {
                names.join(", ")
            },
            transport: visible(&travel.transport),
            target: travel.target.as_deref().map(visible),
            tries: travel.policy.max_attempts,
            span: span(&travel.policy),
            curve: Curve::of(&travel.policy),
        }
    }
}

/// How long a policy goes on, in words.
fn span(policy: &Policy) -> String {
    match policy.timetable(policy.max_attempts.min(1_000)).last() {
        None => "no retries".to_owned(),
        Some(slot) if slot.since_first.min == slot.since_first.max => {
            format!("the last {} after the first", tell_span(slot.since_first.max))
        }
        Some(slot) => format!(
            "the last {} to {} after the first",
            tell_span(slot.since_first.min),
            tell_span(slot.since_first.max)
        ),
    }
}

impl Stopped {
    /// A gate that isn't simply open.
    pub(super) fn of(gate: &GateRecord) -> Self {
        let (how, class) = match &gate.closed {
            Closed::Paused => ("paused", "warning"),
            Closed::Suppressed => ("suppressed", "muted"),
            Closed::Held { .. } => ("held", "alarm"),
            Closed::Throttled(_) => ("throttled", "warning"),
            Closed::Breaker(_) => ("breaker open", "alarm"),
        };
        let (_, scope, name) = gate.key.parts();
        Self {
            what: visible(&format!("{scope} {name}")),
            how,
            class,
            reason: visible(&gate.reason),
            since: Moment::clock(gate.since),
            until: gate.again_at().map(Moment::clock),
            ends: match &gate.closed {
                Closed::Held { .. } => "when an operator releases it",
                Closed::Suppressed => "when the address is removed from the list",
                Closed::Paused | Closed::Throttled(_) | Closed::Breaker(_) => "when an operator resumes it",
            },
            release: release(scope, name),
            is_pause_of_route: gate.key == GateKey::pause(Scope::Route, name),
        }
    }
}

/// Where a destination or a sender is let go. Routes and campaigns are resumed where they are shown.
fn release(scope: &str, name: &str) -> Option<String> {
    released(scope).map(|scope| format!("{}/{}/{}/release", link::STOPPED, scope.name(), link::segment(name)))
}

/// The scopes that are let go from here, by their words.
fn released(scope: &str) -> Option<Scope> {
    [Scope::Destination, Scope::Sender].into_iter().find(|known| known.name() == scope)
}

#[cfg(test)]
mod tests {
    use redeliver_core::Timestamp;

    use super::*;

    #[test]
    fn a_stop_without_a_known_end_says_who_ends_it_and_those_who_want_no_more_are_no_stop() {
        let gate = |key, closed| GateRecord {
            key,
            version: 1,
            since: Timestamp::default(),
            reason: "535".into(),
            closed,
        };
        let held = |at| gate(GateKey::hold(Scope::Destination, "mx"), Closed::Held { probe_at: at });
        let seen = stops(&[
            held(Some(Timestamp::from_ms(5))),
            held(None),
            gate(GateKey::pause(Scope::Sender, "ada@example.org"), Closed::Paused),
            gate(GateKey::suppression("default"), Closed::Suppressed),
            gate(GateKey::prospect("c", "p-1"), Closed::Paused),
        ]);
        let ends: Vec<(bool, &str)> = seen.iter().map(|one| (one.until.is_some(), one.ends)).collect();
        assert!(ends[0].0);
        assert_eq!(
            ends[1..],
            [(false, "when an operator releases it"), (false, "when an operator resumes it")]
        );
        assert_eq!(seen[2].what, "sender ada@example.org");
        assert_eq!(seen[1].release.as_deref(), Some("/admin/stopped/destination/mx/release"));
        assert_eq!(release("route", "email"), None);
    }
}
