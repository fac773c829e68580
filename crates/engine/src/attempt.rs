//! One try: gates, lease, carrying. Comes to an outcome, whatever happens.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use redeliver_core::attempt::history;
use redeliver_core::classify::in_common_codes;
use redeliver_core::outcome::Until;
use redeliver_core::planted::{self, Bug};
use redeliver_core::{Content, Message, Name, Outcome, State, Timestamp};
use tokio::sync::SemaphorePermit;
use tracing::Instrument;

use crate::claim::Asked;
use crate::engine::{Engine, Line};
use crate::life::LeaseSpan;
use crate::limits::{Hold, Permit, used_up};
use crate::span;
use crate::store::ClaimRef;
use crate::transport::Envelope;

/// A claim as its worker holds it: which one, and how long it is still good for.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) claim: ClaimRef,
    /// When the claim was asked for.
    asked: Asked,
    /// Uptime in milliseconds at which the lease ends; moved on by renewals, 0 once it is known to be lost.
    until_ms: Arc<AtomicU64>,
}

impl Held {
    pub(crate) fn new(message: &Message, asked: Asked, lease: Duration) -> Self {
        let claim = match &message.state {
            State::Claimed(lease) => lease.claim,
            _ => message.fence,
        };
        let until_ms = Arc::new(AtomicU64::new((asked.uptime + lease).as_millis() as u64));
        Self { claim: ClaimRef { id: message.id.clone(), claim }, asked, until_ms }
    }

    pub(crate) fn until(&self) -> Duration {
        Duration::from_millis(self.until_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn set_until(&self, until: Duration) {
        self.until_ms.store(until.as_millis() as u64, Ordering::Relaxed);
    }
}

/// A try that has come to its end.
pub(crate) struct Tried<'a> {
    pub(crate) message: Message,
    pub(crate) came: Came,
    /// When the message was claimed for it.
    pub(crate) claimed_at: Timestamp,
    pub(crate) alone: Option<SemaphorePermit<'a>>,
}

/// What came of a try.
pub(crate) struct Came {
    pub(crate) outcome: Outcome,
    /// When it was sent, if anything was.
    pub(crate) sent_at: Option<Timestamp>,
    /// What it said, where that was written for this try.
    pub(crate) written: Option<Content>,
}

impl Came {
    /// What came of a try that sent nothing.
    pub(crate) fn of_nothing(outcome: Outcome) -> Self {
        Self { outcome, sent_at: None, written: None }
    }
}

/// How soon a message is due again that could not be carried just now.
const SHORT_WAIT: Duration = Duration::from_secs(1);

/// Tries one claimed message.
pub(crate) async fn attempt<'a>(
    engine: &'a Engine,
    line: &'a Line,
    held: Held,
    message: Message,
    content: Content,
    alone: Option<SemaphorePermit<'a>>,
) -> Tried<'a> {
    let span = span::of(&message, &content);
    let came = come(engine, line, &held, &message, &content).instrument(span.clone()).await;
    span::end(&span, &came.outcome);
    Tried { message, came, claimed_at: held.asked.at, alone }
}

async fn come(engine: &Engine, line: &Line, held: &Held, message: &Message, content: &Content) -> Came {
    let now = engine.clock.now();
    if message.is_expired(now) && !planted::is(Bug::CarriesExpired) {
        return Came::of_nothing(nothing_sent(now, "expired"));
    }
    let content = with_history(engine, line, message, content).await;
    let content = content.as_ref();
    let envelope = line.envelope(message, content);
    let destination = line.transport(message.lane).destination(&envelope);
    if let Err(verdict) = engine.admit(line, message, content, &destination).await {
        return Came::of_nothing(verdict);
    }
    let prepared = match engine.prepare(message, content).await {
        Ok(prepared) => prepared,
        Err(outcome) => return Came::of_nothing(outcome),
    };
    let Some(prepared) = prepared else {
        let (outcome, sent_at) = carry(engine, line, held, &envelope, &destination).await;
        let outcome = engine.learn(line, &destination, None, outcome).await;
        return Came { outcome, sent_at, written: None };
    };
    let envelope = line.envelope(message, prepared.content.as_ref().unwrap_or(content));
    let (outcome, sent_at) = carry(engine, line, held, &envelope, &destination).await;
    engine.account(&prepared, &outcome).await;
    let outcome = in_common_codes(outcome);
    let sender = content.attributes.get("sender").map(String::as_str);
    let outcome = engine.learn(line, &destination, sender, outcome).await;
    Came { outcome, sent_at, written: prepared.content }
}

/// What a message carries; word of a death tells what the dead one has been through.
async fn with_history<'a>(
    engine: &Engine,
    line: &Line,
    message: &Message,
    content: &'a Content,
) -> Cow<'a, Content> {
    let tells = message.is_dead_letter && line.transport(message.lane).tells_history();
    let dead = content.attributes.get("dead_message").filter(|_| tells);
    let Some(id) = dead.and_then(|id| id.parse().ok()) else { return Cow::Borrowed(content) };
    match engine.store.attempts(id).await {
        Ok(records) => {
            let mut content = content.clone();
            content.attributes.insert("dead_history".to_owned(), history(&records));
            Cow::Owned(content)
        }
        // The word itself matters more.
        Err(error) => {
            engine.observer.store_failed("reading what a dead message has been through", &error);
            Cow::Borrowed(content)
        }
    }
}

/// The outcome of a try that sent nothing: due again at this time, no attempt counted.
fn nothing_sent(until: Timestamp, reason: &str) -> Outcome {
    Outcome::Deferred { until: Until::At(until), reason: reason.into() }
}

/// The carrying itself, if the claim is surely still ours for as long as it may take; and when it was begun, if it was.
async fn carry(
    engine: &Engine,
    line: &Line,
    held: &Held,
    envelope: &Envelope<'_>,
    destination: &Name,
) -> (Outcome, Option<Timestamp>) {
    let unsent = |until, reason| (nothing_sent(until, reason), None);
    let within = line.route.send_timeout;
    if line.route.records_start(envelope.message) && !planted::is(Bug::StartNotRecorded) {
        match engine.store.start(held.claim.clone(), engine.clock.now()).await {
            Ok(true) => {}
            // A person cancelled it, or somebody else has it: what is written next will find out which.
            Ok(false) => return unsent(engine.clock.now(), "the claim is not as it was"),
            Err(error) => {
                engine.observer.store_failed("recording the start of an attempt", &error);
                return unsent(engine.clock.now().plus(SHORT_WAIT), "the store does not answer");
            }
        }
    }
    let mut permit = match engine.permit(&line.route, destination, Hold::Heartbeat).await {
        Ok(permit) => permit,
        Err(outcome) => return (outcome, None),
    };
    let (now, uptime) = (engine.clock.now(), engine.clock.uptime());
    if permit.as_ref().is_some_and(|permit| permit.is_late(now)) {
        return (used_up(destination), None);
    }
    let lease = LeaseSpan { from: held.asked.uptime, until: held.until(), length: line.route.lease };
    if !engine.life.may_start(lease, uptime, within) {
        return unsent(now.plus(SHORT_WAIT), "the lease had too little left");
    }
    // While it waited for its destination's limits the clock may have been set forward, and the lease is over by it.
    if permit.is_some() && now.since(held.asked.at) > uptime.saturating_sub(held.asked.uptime) + SHORT_WAIT {
        return unsent(now, "the clock was set forward");
    }
    if envelope.message.is_expired(now) && !planted::is(Bug::CarriesExpired) {
        return unsent(now, "expired");
    }
    permit.iter_mut().for_each(Permit::start);
    engine.observer.carrying(envelope.message, now.since(envelope.message.due_at));
    let carrying =
        AssertUnwindSafe(line.transport(envelope.message.lane).carry(envelope, within)).catch_unwind();
    let outcome = tokio::select! {
        biased;
        result = carrying => result.unwrap_or_else(|_| panicked()),
        reason = given_up(engine, held, uptime + within) => Outcome::Lost { reason: reason.into() },
    };
    drop(permit);
    (outcome, Some(now))
}

/// The outcome of a send whose transport panicked: some of it may have left before.
pub(crate) fn panicked() -> Outcome {
    Outcome::Lost { reason: "the transport panicked; this is a bug in it".into() }
}

/// Ends at this uptime, or when others may soon take the message: the lease was not renewed in time, or they no longer
/// hear of this instance. Says why.
async fn given_up(engine: &Engine, held: &Held, at: Duration) -> &'static str {
    loop {
        let uptime = engine.clock.uptime();
        if uptime >= at {
            return "no answer in time";
        }
        let lease_until = if planted::is(Bug::NoSelfFence) { at } else { held.until() };
        if lease_until <= uptime {
            return "the lease ran out before the answer came";
        }
        let until = engine.life.carry_until(held.asked.uptime, at);
        if until <= uptime {
            return "the store has not heard of this instance for too long";
        }
        engine.clock.sleep(until.min(lease_until).min(at) - uptime).await;
    }
}
