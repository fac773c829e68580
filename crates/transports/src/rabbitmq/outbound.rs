//! Publishes messages, hundreds at once over one channel, and believes nothing but the broker's word on each.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::outcome::Until;
use redeliver_core::{Failure, Message, MessageId, Name, Outcome};
use redeliver_engine::clock::Clock;
use redeliver_engine::transport::{Envelope, Transport};

use super::amqp::wire::Short;
use super::amqp::{Channel, Closed, Confirm, Connection};
use super::classify;
use super::config::{OnConfirm, RabbitmqConfig};
use super::dial::Dial;
use super::nack::{Inquiry, Standing};
use super::parcel::Parcel;
use super::{labels, retry_message};

/// What a transport without a broker lacks.
pub const UNCONFIGURED: &str = "no broker is configured: set RABBITMQ_URL, or url of the transport";

/// How long a message waits where nothing but a config can help.
const UNCONFIGURED_WAIT: Duration = Duration::from_secs(60);
/// How long a message waits for a broker that could not be reached; doubles with each failure.
const AWAY_WAIT: Duration = Duration::from_millis(500);
/// The longest of these waits.
const AWAY_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long a message waits for a connection that was just lost, or for one that is full.
const SHORT_WAIT: Duration = Duration::from_millis(200);
/// How long a message waits while the broker takes nothing.
const BLOCKED_WAIT: Duration = Duration::from_secs(2);
/// How long a broker that was gone may say no to what it will take soon: a queue may have no leader yet.
const RECOVERY: Duration = Duration::from_secs(30);
const RECOVERING: &str = "the broker was gone a moment ago and does not take it yet";
/// How long a connection is kept, at least, that was made because the one before it was of no use.
const LEAVE_PAUSE: Duration = Duration::from_secs(1);
/// What is kept back, at most, for saying what came of a carrying before others give it up.
const RESERVE: Duration = Duration::from_millis(500);
/// Messages without a word from the broker, at most: more would only be lost with it.
const UNCONFIRMED_MAX: usize = 10_000;
/// Suspects that are remembered.
const SUSPECTS_MAX: usize = 10_000;

/// Publishes to the queues of one broker.
pub struct RabbitmqTransport {
    name: Name,
    config: RabbitmqConfig,
    clock: Arc<dyn Clock>,
    exchange: Short,
    queues: Vec<Short>,
    dial: Option<Dial>,
    link: tokio::sync::Mutex<Link>,
    inquiry: Inquiry,
    /// Messages that were under way when the broker refused one of them: each goes alone, so that its word is its own.
    suspects: Mutex<HashSet<Arc<str>>>,
    /// The queues of messages that were carried and are not yet written down: they count when they are.
    uncounted: Mutex<HashMap<MessageId, String>>,
}

/// The connection that all messages share, or how it stands with getting one.
#[derive(Default)]
struct Link {
    open: Option<Arc<Open>>,
    /// How often in a row the broker could not be reached.
    failures: u32,
    /// Uptime when that was found last, and why: whoever came before then shares it instead of knocking again.
    failed: Option<(Duration, Closed)>,
    /// Uptime when the broker was last found to be gone, or out of reach.
    lost_at: Option<Duration>,
    /// Uptime when a connection was left that was open.
    left_at: Option<Duration>,
}

struct Open {
    // Before the connection, so that it is dropped first.
    channel: Channel,
    connection: Connection,
    /// Uptime until which a no may be that of a broker that is putting itself together again.
    recovers_until: Duration,
}

impl Open {
    /// Why the broker takes nothing for now, if it doesn't.
    fn blocked(&self) -> Option<String> {
        let reason = self.connection.blocked().filter(|_| self.connection.closed().is_none())?;
        Some(format!("the broker takes nothing for now: {reason}"))
    }
}

impl RabbitmqTransport {
    /// A transport to the broker of this config. Nothing is connected yet; an error says what is wrong with the config.
    pub fn new(name: impl Into<Name>, config: RabbitmqConfig, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let name = name.into();
        let short = |text: &String| Short::new(text).ok_or_else(|| format!("{text} is too long for a name"));
        let exchange = short(&config.exchange)?;
        let queues = config.queues.iter().map(short).collect::<Result<_, _>>()?;
        let dial = Dial::new(&config.broker, format!("redeliver transport {name}"), 0)?;
        let (link, suspects, uncounted) = Default::default();
        let inquiry = Inquiry::new(Arc::clone(&clock));
        Ok(Self { name, config, clock, exchange, queues, dial, link, inquiry, suspects, uncounted })
    }

    /// The open connection, made if there is none.
    async fn open(&self, dial: &Dial) -> Result<Arc<Open>, Closed> {
        let came_at = self.clock.uptime();
        let mut link = self.link.lock().await;
        if let Some(open) = &link.open
            && open.connection.closed().or_else(|| open.channel.closed()).is_none()
        {
            return Ok(Arc::clone(open));
        }
        if link.open.take().is_some() {
            link.lost_at = Some(came_at);
        }
        if let Some((_, why)) = link.failed.as_ref().filter(|(at, _)| came_at <= *at) {
            return Err(why.clone());
        }
        match self.connect(dial, link.lost_at).await {
            Ok(open) => {
                let open = Arc::new(open);
                link.open = Some(Arc::clone(&open));
                (link.failures, link.failed) = (0, None);
                Ok(open)
            }
            Err(why) => {
                let now = self.clock.uptime();
                link.failures += 1;
                (link.failed, link.lost_at) = (Some((now, why.clone())), Some(now));
                Err(why)
            }
        }
    }

    async fn connect(&self, dial: &Dial, lost_at: Option<Duration>) -> Result<Open, Closed> {
        let recovers_until = lost_at.map_or(Duration::ZERO, |at| at + RECOVERY);
        let (connection, channel) = dial.channel(&self.queues).await?;
        dial.answered("asking for confirms", channel.confirm()).await?;
        Ok(Open { channel, connection, recovers_until })
    }

    fn put_off(&self, wait: Duration, reason: &str) -> Outcome {
        Outcome::Deferred { until: Until::At(self.clock.now().plus(wait)), reason: reason.into() }
    }

    /// A broker out of reach costs no try; one that knows us and lets us not in holds everything that goes there.
    async fn away(&self, why: &Closed) -> Outcome {
        if let Some(failure) = classify::login(why) {
            return Outcome::Failed(failure);
        }
        let failures = self.link.lock().await.failures;
        let wait = AWAY_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(AWAY_WAIT_MAX);
        self.put_off(wait, &out_of_reach(why))
    }

    /// Publishes on an open channel and waits for the broker's word.
    async fn publish(&self, open: &Arc<Open>, parcel: &Parcel, within: Duration) -> Outcome {
        if let Some(reason) = open.blocked() {
            return self.put_off(BLOCKED_WAIT, &reason);
        }
        if open.channel.unconfirmed() >= UNCONFIRMED_MAX {
            return self.put_off(SHORT_WAIT, "the broker has confirmed nothing for too long");
        }
        if parcel.head.len() > open.channel.head_bytes_max() {
            let text = format!("its headers have {} bytes, more than the broker takes", parcel.head.len());
            return Outcome::Refused(Failure::new(text).with_code(classify::INVALID));
        }
        let name = Arc::clone(&parcel.name);
        let end = self.clock.uptime() + within;
        let told = match open.channel.publish(&parcel.address, name, &parcel.head, &parcel.body) {
            Ok(told) => told,
            Err(why) => return self.put_off(SHORT_WAIT, &format!("the connection was lost: {why}")),
        };
        match tokio::time::timeout(within.min(self.config.confirm_timeout), told).await {
            Ok(Ok(Confirm::Taken)) => match self.config.on_confirm {
                OnConfirm::Delivered => Outcome::Delivered { receipt: None },
                OnConfirm::HandedOff => Outcome::HandedOff,
            },
            Ok(Ok(Confirm::NotTaken)) => {
                self.leave(open);
                self.nacked(open, parcel, end.saturating_sub(self.clock.uptime())).await
            }
            Ok(Ok(Confirm::Returned { code, text })) => {
                Outcome::Failed(classify::unroutable(&parcel.address, code, &text))
            }
            Ok(Err(_)) => self.lost(open, &parcel.name),
            Err(_) => {
                self.leave(open);
                Outcome::Lost { reason: "the broker did not confirm in time".into() }
            }
        }
    }

    /// The broker sent a nack, which says that it doesn't answer for the message, and not whether any queue has it.
    async fn nacked(&self, open: &Open, parcel: &Parcel, within: Duration) -> Outcome {
        let lost = |reason: &str| Outcome::Lost { reason: reason.into() };
        if parcel.may_have_copies {
            return lost("the broker could not take it, but another queue may have it");
        }
        let recovers = self.clock.uptime() < open.recovers_until;
        let asked = self.inquiry.standing(&open.connection, &parcel.address.routing_key);
        match tokio::time::timeout(within, asked).await {
            Ok(Standing::Full | Standing::Silent | Standing::Empty) if recovers => {
                self.put_off(SHORT_WAIT, RECOVERING)
            }
            Ok(Standing::Full | Standing::Silent) => Outcome::Failed(classify::nack()),
            Ok(Standing::Empty) => lost("the broker could not take it, though its queue is not full"),
            Ok(Standing::Gone) => lost("the broker could not take it, and its queue is gone"),
            Err(_) => lost("the broker could not take it, and there was no time to ask why"),
        }
    }

    /// Has whoever comes next connect anew, unless somebody has just done so. A broker that lost a node goes on saying no on
    /// channels that were opened at that moment, and is well on others. Who waits for a word on this one still hears it.
    fn leave(&self, open: &Arc<Open>) {
        // Whoever is connecting has left it already.
        let Ok(mut link) = self.link.try_lock() else { return };
        let now = self.clock.uptime();
        let is_too_soon = link.left_at.is_some_and(|at| now < at + LEAVE_PAUSE);
        // One that takes nothing for now would say so again on every connection, after the first message on it.
        if !is_too_soon
            && open.blocked().is_none()
            && link.open.take_if(|current| Arc::ptr_eq(current, open)).is_some()
        {
            link.left_at = Some(now);
        }
    }

    /// The channel ended before the broker said anything about a message.
    fn lost(&self, open: &Open, name: &Arc<str>) -> Outcome {
        let why = open.channel.closed().unwrap_or(Closed::Ours);
        let refused = open.connection.closed().is_none().then(|| classify::refusal(&why)).flatten();
        match (refused, open.channel.unconfirmed()) {
            (Some(outcome), 1) => outcome,
            (Some(_), _) => {
                let mut suspects = self.suspects();
                if suspects.len() < SUSPECTS_MAX {
                    suspects.insert(Arc::clone(name));
                }
                Outcome::Lost { reason: format!("the broker refused one of many: {why}").into() }
            }
            (None, _) => Outcome::Lost { reason: format!("the connection was lost: {why}").into() },
        }
    }

    fn suspects(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        self.suspects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn uncounted(&self) -> MutexGuard<'_, HashMap<MessageId, String>> {
        self.uncounted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn out_of_reach(why: &Closed) -> String {
    format!("the broker cannot be reached: {why}")
}

/// Counts what became of a message that goes back to its queue, or to manual review.
fn count(queue: &str, message: &Message, outcome: &Outcome) {
    match (outcome, message.is_dead_letter) {
        (Outcome::Delivered { .. } | Outcome::HandedOff, true) => labels::exhausted(queue),
        (Outcome::Delivered { .. } | Outcome::HandedOff, false) => labels::executed(queue, "success"),
        (Outcome::Failed(_) | Outcome::Refused(_), false) => labels::executed(queue, "failed"),
        _ => {}
    }
}

#[async_trait]
impl Transport for RabbitmqTransport {
    async fn carry(&self, envelope: &Envelope<'_>, within: Duration) -> Outcome {
        let Some(dial) = &self.dial else { return self.put_off(UNCONFIGURED_WAIT, UNCONFIGURED) };
        let parcel = match Parcel::of(envelope, &self.exchange) {
            Ok(parcel) => parcel,
            Err(wrong) => return Outcome::Refused(Failure::new(wrong).with_code(classify::INVALID)),
        };
        if let Some(queue) = envelope.content.attributes.get(retry_message::QUEUE) {
            self.uncounted().insert(envelope.message.id.clone(), queue.clone());
        }
        let end = self.clock.uptime() + within.saturating_sub(RESERVE.min(within / 10));
        let left = || end.saturating_sub(self.clock.uptime());
        if self.suspects().remove(&parcel.name) {
            return match tokio::time::timeout(left(), self.connect(dial, None)).await {
                Ok(Ok(open)) => self.publish(&Arc::new(open), &parcel, left()).await,
                Ok(Err(why)) => self.away(&why).await,
                Err(_) => self.put_off(SHORT_WAIT, "connecting took too long"),
            };
        }
        match tokio::time::timeout(left(), self.open(dial)).await {
            Ok(Ok(open)) => self.publish(&open, &parcel, left()).await,
            Ok(Err(why)) => self.away(&why).await,
            Err(_) => self.put_off(SHORT_WAIT, "connecting took too long"),
        }
    }

    fn tells_history(&self) -> bool {
        true
    }

    fn settled(&self, message: &Message, outcome: &Outcome) {
        let queue = self.uncounted().remove(&message.id);
        if let Some(queue) = queue {
            count(&queue, message, outcome);
        }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        self.fixed_destination().unwrap_or_else(|| self.name.clone())
    }

    fn fixed_destination(&self) -> Option<Name> {
        Some(self.dial.as_ref().map_or_else(|| self.name.clone(), |dial| dial.broker_name().into()))
    }

    fn lacks(&self) -> Option<Arc<str>> {
        if self.dial.is_none() {
            return Some(UNCONFIGURED.into());
        }
        // While somebody is connecting, nobody knows.
        let link = self.link.try_lock().ok()?;
        let reason = match (&link.open, &link.failed) {
            (Some(open), _) => open.blocked(),
            // A login that is refused holds the destination, which says so itself.
            (None, Some((_, why))) => classify::login(why).is_none().then(|| out_of_reach(why)),
            (None, None) => None,
        };
        reason.map(Arc::from)
    }
}
