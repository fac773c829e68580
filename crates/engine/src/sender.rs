//! The other half of a hand-off: takes what was handed off, carries it, and writes down what came of it.
//!
//! Whoever brings a hand-off is answered when its outcome is written, or when there is nothing to do. It never retries by
//! itself: what failed waits for its next hand-off, and so does, without cost, what a gate stands before.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use redeliver_core::accept::{NewMessage, Source};
use redeliver_core::event::Kind;
use redeliver_core::outcome::Until;
use redeliver_core::report::{Report, Reported, report};
use redeliver_core::{
    AttemptId, Change, Content, Event, Failure, Message, MessageId, Name, Outcome, Timestamp,
};

use crate::attempt::{Came, panicked};
use crate::claim::Asked;
use crate::engine::{Engine, Line};
use crate::intake::{Accepted, Sink, Told};
use crate::limits::{Hold, Permit, used_up};
use crate::stop::Stop;
use crate::store::{Applied, StoreError};
use crate::transport::{Envelope, Transport};

/// The port to wherever handed-off messages stand.
#[async_trait]
pub trait Desk: Send + Sync + 'static {
    /// Which message a hand-off is about; an error says why nobody can tell.
    fn read(&self, content: &Content) -> Result<Handed, String>;

    /// What the message says, as its transport takes it; what its try comes to if nothing can be sent.
    async fn content(&self, id: &MessageId) -> Result<Result<Content, Outcome>, StoreError>;

    /// Takes the message for one sender until then, if it was handed off and no other has it.
    async fn take(&self, handed: &Handed, now: Timestamp, until_at: Timestamp) -> Result<Taken, StoreError>;

    /// Writes what came of it, only if it stands as it was taken.
    async fn record(&self, change: Change) -> Result<Applied, StoreError>;
}

/// A message that was handed off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    /// Which one.
    pub id: MessageId,
    /// For which try, where that was said.
    pub attempt: Option<AttemptId>,
}

/// What came of taking a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    /// It is this sender's, as it stands now.
    Ours(Box<Message>),
    /// Another sender has it until then.
    Locked(Timestamp),
    /// There is nothing to do, for this reason.
    Idle(&'static str),
}

/// How long a sender has for one message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How long a message is locked for one sender. If it vanishes, another takes the message then.
    pub lease: Duration,
    /// How long a carrying may take.
    pub send_timeout: Duration,
}

/// Carries what was handed off.
pub struct Sender {
    engine: Arc<Engine>,
    /// The route of what was handed off.
    route: Name,
    desk: Arc<dyn Desk>,
    by: Arc<dyn Transport>,
    pace: Pace,
    stop: Stop,
    /// Uptime when the gates were last looked at.
    looked_at: Mutex<Option<Duration>>,
}

const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// How soon a message is due again while the gates can't be read.
const UNREAD_WAIT: Duration = Duration::from_secs(1);
/// How often somebody else's lock is looked at, which may end before its time.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

impl Sender {
    /// A sender of what stands on this desk, by this transport, through the gates of this engine; `None` if it has no such
    /// route. When it is told to stop it finishes what it carries.
    pub fn new(
        engine: Arc<Engine>,
        route: &str,
        (desk, by): (Arc<dyn Desk>, Arc<dyn Transport>),
        pace: Pace,
        stop: Stop,
    ) -> Option<Self> {
        let route = engine.lines.get_key_value(route)?.0.clone();
        Some(Self { engine, route, desk, by, pace, stop, looked_at: Mutex::default() })
    }

    async fn send(&self, brought: &NewMessage) -> Result<Accepted, StoreError> {
        let handed = match self.desk.read(&brought.content) {
            Ok(handed) => handed,
            Err(why) => {
                tracing::warn!(event = "input.refused", route = %self.route, "nobody can tell what to send: {why}");
                return Ok(Accepted::NoRoute);
            }
        };
        let Some(line) = self.engine.lines.get(&self.route) else { return Ok(Accepted::NoRoute) };
        let content = self.desk.content(&handed.id).await?;
        let is_redelivered = matches!(brought.source, Source::Broker { redelivered: true });
        let (message, asked) = match self.take(&handed, is_redelivered).await? {
            Ok(taken) => taken,
            Err(why) => {
                tracing::info!(
                    event = "hand_off.dropped", id = %handed.id, route = %self.route, "nothing is sent: {why}"
                );
                return Ok(Accepted::Duplicate(handed.id));
            }
        };
        let came = match content {
            Ok(content) => self.attempt(line, &message, &content, asked).await,
            Err(outcome) => Came::of_nothing(outcome),
        };
        self.record(line, &message, came, asked.at).await;
        Ok(Accepted::New(handed.id))
    }

    /// The message with the moment at which its lock began; why not, if there is nothing to do.
    ///
    /// A lock is somebody else's who will see to the message, except where this hand-off came before or the store may
    /// have written a lock of ours without our knowing: its holder may be gone, so its end is waited for.
    async fn take(
        &self,
        handed: &Handed,
        is_redelivered: bool,
    ) -> Result<Result<(Message, Asked), &'static str>, StoreError> {
        let mut holder_may_be_gone = is_redelivered;
        let mut wait = RETRY_FIRST;
        loop {
            if self.stop.is_stopped() {
                return Err(StoreError::Unavailable("stopping".to_owned()));
            }
            let asked = Asked::now(&self.engine);
            let now = asked.at;
            match self.desk.take(handed, now, now.plus(self.pace.lease)).await {
                Ok(Taken::Ours(message)) => return Ok(Ok((*message, asked))),
                Ok(Taken::Idle(why)) => return Ok(Err(why)),
                Ok(Taken::Locked(_)) if !holder_may_be_gone => return Ok(Err("another sender has it")),
                Ok(Taken::Locked(until_at)) => {
                    self.pause(until_at.since(now).clamp(RETRY_FIRST, LOOK_INTERVAL)).await;
                }
                Err(error) => {
                    self.engine.observer.store_failed("taking a message that was handed off", &error);
                    holder_may_be_gone = true;
                    self.pause(wait).await;
                    wait = (wait * 2).min(RETRY_MAX);
                }
            }
        }
    }

    /// Waits, unless told to stop.
    async fn pause(&self, span: Duration) {
        let mut stop = self.stop.clone();
        tokio::select! {
            () = stop.stopped() => {}
            () = self.engine.clock.sleep(span) => {}
        }
    }

    /// One try: the same gates as before any other, then the carrying; the gates hear what came of it.
    async fn attempt(&self, line: &Line, message: &Message, content: &Content, asked: Asked) -> Came {
        let envelope = Envelope { message, content, target: None };
        let destination = self.by.destination(&envelope);
        let (outcome, sent_at) = loop {
            if !self.look_at_gates().await {
                let until = Until::At(self.engine.clock.now().plus(UNREAD_WAIT));
                let reason = "the store does not answer".into();
                return Came::of_nothing(Outcome::Deferred { until, reason });
            }
            let came = match self.engine.admit(line, message, content, &destination).await {
                Ok(()) => self.carry(line, &envelope, &destination, asked).await,
                Err(verdict) => (verdict, None),
            };
            match came {
                // There is room again in a moment, and a table has no place where one waits for that.
                (Outcome::Deferred { until: Until::Opens(key), .. }, None)
                    if key.is_limit() && self.has_time(asked) && !self.stop.is_stopped() =>
                {
                    self.pause(RETRY_FIRST).await;
                }
                (verdict, None) => return Came::of_nothing(verdict),
                came => break came,
            }
        };
        let outcome = self.engine.learn(line, &destination, None, outcome).await;
        Came { outcome, sent_at, written: None }
    }

    /// Whether the lock surely lasts for as long as a carrying may take.
    fn has_time(&self, asked: Asked) -> bool {
        self.engine.clock.uptime().saturating_sub(asked.uptime) + self.pace.send_timeout < self.pace.lease
    }

    /// Reads the gates, which nobody else keeps here, if that was not done just now. Says whether they are known: whoever has
    /// never read them doesn't know of a pause.
    async fn look_at_gates(&self) -> bool {
        let uptime = self.engine.clock.uptime();
        let looked_at = *self.looked_at();
        if looked_at.is_some_and(|at| uptime.saturating_sub(at) < self.engine.settings.keep_interval) {
            return true;
        }
        match self.engine.refresh_gates().await {
            Ok(()) => *self.looked_at() = Some(uptime),
            Err(error) => self.engine.observer.store_failed("reading the gates", &error),
        }
        self.looked_at().is_some()
    }

    fn looked_at(&self) -> MutexGuard<'_, Option<Duration>> {
        self.looked_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The carrying itself, if the lock surely lasts for as long as it may take; and when it was begun, if it was.
    async fn carry(
        &self,
        line: &Line,
        envelope: &Envelope<'_>,
        destination: &Name,
        asked: Asked,
    ) -> (Outcome, Option<Timestamp>) {
        let within = self.pace.send_timeout;
        let hold = Hold::SendTimeout(within);
        let mut permit = match self.engine.permit(&line.route, destination, hold).await {
            Ok(permit) => permit,
            Err(outcome) => return (outcome, None),
        };
        let now = self.engine.clock.now();
        if permit.as_ref().is_some_and(|permit| permit.is_late(now)) {
            return (used_up(destination), None);
        }
        if !self.has_time(asked) {
            let reason = "the lock had too little left".into();
            return (Outcome::Deferred { until: Until::At(now), reason }, None);
        }
        permit.iter_mut().for_each(Permit::start);
        self.engine.observer.carrying(envelope.message, now.since(envelope.message.due_at.min(now)));
        let carrying = AssertUnwindSafe(self.by.carry(envelope, within)).catch_unwind();
        let outcome = tokio::select! {
            biased;
            result = carrying => result.unwrap_or_else(|_| panicked()),
            () = self.engine.clock.sleep(within) => Outcome::Lost { reason: "no answer in time".into() },
        };
        if permit.take().is_some() {
            self.engine.give_back_spare(destination, hold).await;
        }
        (outcome, Some(now))
    }

    /// Writes what came of a carrying until the store has answered for it.
    async fn record(&self, line: &Line, message: &Message, came: Came, locked_at: Timestamp) {
        let Came { mut outcome, sent_at, .. } = came;
        // Without a name it counts while the message is handed off, which this one is.
        let change_for =
            |outcome: &Outcome| match report(message, None, outcome, &line.route, self.engine.clock.now()) {
                Reported::Applies(mut change) => {
                    if let Some(record) = &mut change.attempt {
                        (record.claimed_at, record.sent_at) = (Some(locked_at), sent_at);
                    }
                    Some(change)
                }
                Reported::Ignored(_) => None,
            };
        let Some(mut change) = change_for(&outcome) else { return };
        let mut wait = RETRY_FIRST;
        let answer = loop {
            match (self.desk.record((*change).clone()).await, &outcome) {
                (Ok(answer), _) => break answer,
                // Not every table has a word for what nobody wants sent any more; every one has one for the dead.
                (Err(StoreError::Unfit(_)), Outcome::Skipped { reason }) => {
                    outcome = Outcome::Refused(Failure::new(reason));
                    let Some(refused) = change_for(&outcome) else { return };
                    change = refused;
                    continue;
                }
                (Err(error), _) => {
                    self.engine.observer.store_failed("writing what came of a sending", &error);
                }
            }
            self.engine.clock.sleep(wait).await;
            wait = (wait * 2).min(RETRY_MAX);
        };
        match answer {
            Applied::Applied | Applied::AlreadyMine => {
                self.engine.observer.observe(&change.event);
                if let Some(letter) = &change.spawn {
                    self.engine.observer.observe(&Event::of(
                        &letter.message,
                        Kind::Accepted,
                        change.event.at,
                    ));
                }
            }
            Applied::Superseded(_) => {
                self.engine.observer.observe(&Event { kind: Kind::AttemptLate, ..change.event.clone() });
            }
        }
        self.engine.observer.tried(&change.message, &outcome);
    }
}

#[async_trait]
impl Sink for Sender {
    /// Answers when everything that was brought is written, or needs nothing.
    async fn accept(&self, batch: Vec<NewMessage>) -> Result<Vec<Accepted>, StoreError> {
        let mut answers = Vec::with_capacity(batch.len());
        for brought in &batch {
            answers.push(self.send(brought).await?);
        }
        Ok(answers)
    }

    /// What it carries it writes down itself: nobody reports to it.
    async fn report(&self, batch: Vec<Report>) -> Result<Vec<Told>, StoreError> {
        Ok(vec![Told::NoMessage; batch.len()])
    }
}
