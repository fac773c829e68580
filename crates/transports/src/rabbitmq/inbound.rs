//! Takes what comes to a queue: a batch at a time into the store, acknowledged when the store has it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{FuturesOrdered, FuturesUnordered};
use redeliver_core::accept::{NewMessage, Source};
use redeliver_core::{Content, Failure, Name, Timestamp, identity};
use redeliver_engine::aside;
use redeliver_engine::clock::Clock;
use redeliver_engine::intake::{Accepted, Intake, IntakeError, Sink};
use redeliver_engine::parts::{Part, Parts};
use redeliver_engine::stop::Stop;
use redeliver_engine::store::StoreError;
use tokio::sync::mpsc::UnboundedReceiver;

use super::amqp::wire::Short;
use super::amqp::{Channel, Closed, Delivery, Flow};
use super::config::BrokerConfig;
use super::dial::Dial;
use super::{labels, retry_message};

/// What comes to a queue, and how it is brought to the sink.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Failed messages that are to go back to their queues: a batch for each commit.
    RetryMessages,
    /// Word of messages that were handed off: each for itself, so that none waits for another's acknowledgement.
    HandOffs,
}

/// How a queue is taken from.
#[derive(Clone, Debug, PartialEq)]
pub struct RabbitmqIntakeConfig {
    /// The broker.
    pub broker: BrokerConfig,
    /// The queue.
    pub queue: String,
    /// What comes to it.
    pub takes: Takes,
    /// The route that its messages take.
    pub route: Name,
    /// The route on which input is kept, as dead, that nobody can make a message of.
    pub rejects: Name,
    /// Messages on their way to us that we have not acknowledged.
    pub prefetch: u16,
    /// Messages that are committed at once.
    pub batch_max: usize,
    /// The largest message.
    pub message_bytes_max: usize,
    /// Bytes of messages that are on their way into the store; beyond that nothing more is read.
    pub in_hand_bytes_max: usize,
    /// How often a message is retried that doesn't say so itself.
    pub max_retries: u32,
    /// Whether the queue is made where it is missing.
    pub declare: bool,
    /// Other queues that are made where they are missing, before anything is taken.
    pub queues: Vec<String>,
}

impl Default for RabbitmqIntakeConfig {
    fn default() -> Self {
        Self {
            broker: BrokerConfig::default(),
            queue: String::new(),
            takes: Takes::RetryMessages,
            route: "".into(),
            rejects: "".into(),
            prefetch: 4_000,
            batch_max: 1_000,
            message_bytes_max: 16 * 1_048_576,
            in_hand_bytes_max: 64 * 1_048_576,
            max_retries: 3,
            declare: true,
            queues: Vec::new(),
        }
    }
}

/// What has come and is not committed yet.
#[derive(Default)]
struct Batch {
    deliveries: Vec<Delivery>,
    /// What each of them became.
    messages: Vec<NewMessage>,
    /// The queue that each of them waits to go back to, if it does.
    queues: Vec<Option<Name>>,
}

/// What came of bringing a message.
enum Brought {
    /// The sink has it.
    Taken(Accepted),
    /// The sink has word of it, as it could not take the message itself.
    SetAside,
}

/// Batches that are brought to the sink at once, at most: the store never waits for the next one, while a broker takes its time to
/// hear of an acknowledgement and to send more.
const BATCHES_MAX: usize = 3;
/// How long a broker, or a store, is left alone after it failed; doubles with each failure.
const AWAY_WAIT: Duration = Duration::from_millis(100);
/// The longest that either is left alone.
const AWAY_WAIT_MAX: Duration = Duration::from_secs(5);

/// Takes what comes to one queue.
pub struct RabbitmqIntake {
    name: Name,
    config: RabbitmqIntakeConfig,
    clock: Arc<dyn Clock>,
    queue: Short,
    /// Those that are made where they are missing.
    ours: Vec<Short>,
    dial: Option<Dial>,
}

impl RabbitmqIntake {
    /// An intake from the queue of this config. Nothing is connected yet; an error says what is wrong with the config.
    pub fn new(
        name: impl Into<Name>,
        config: RabbitmqIntakeConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let name = name.into();
        let short = |text: &String| Short::new(text).ok_or_else(|| format!("{text} is too long for a name"));
        let queue = short(&config.queue)?;
        let mut ours = config.queues.iter().map(short).collect::<Result<Vec<_>, _>>()?;
        if config.declare {
            ours.push(queue.clone());
        }
        let dial = Dial::new(&config.broker, format!("redeliver intake {name}"), config.message_bytes_max)?;
        let config = RabbitmqIntakeConfig { batch_max: config.batch_max.max(1), ..config };
        Ok(Self { name, config, clock, queue, ours, dial })
    }

    /// Takes what comes until the connection or the queue is gone.
    async fn take(
        &self,
        dial: &Dial,
        sink: &dyn Sink,
        stop: &Stop,
        failures: &mut u32,
    ) -> Result<(), Closed> {
        let (connection, channel) = dial.channel(&self.ours).await?;
        let flow = Flow { prefetch: self.config.prefetch, in_hand_bytes_max: self.config.in_hand_bytes_max };
        let asked = channel.consume(&self.queue, flow);
        let mut coming = dial.answered("asking for what comes to the queue", asked).await?;
        *failures = 0;
        tracing::info!(
            event = "intake.started",
            intake = %self.name,
            "taking what comes to the queue {} of {}", self.config.queue, dial.broker_name()
        );
        match self.config.takes {
            Takes::RetryMessages => self.take_batches(sink, &mut coming, &channel).await,
            Takes::HandOffs => {
                self.take_each(sink, &mut coming, &channel, stop).await;
                if stop.is_stopped() {
                    // What nobody takes any more is let go of, so that the broker's answer behind it is read.
                    drop(coming);
                    // What is acknowledged must be heard, or it comes again.
                    let _ = tokio::time::timeout(AWAY_WAIT_MAX, connection.close()).await;
                    return Ok(());
                }
            }
        }
        let gone = || Closed::Broken("the queue is gone".into());
        Err(channel.closed().or_else(|| connection.closed()).unwrap_or_else(gone))
    }

    /// Brings what comes to the sink, as much as fits into one commit. While the store writes one batch, the next one is read,
    /// and made ready for it once it is full.
    async fn take_batches(
        &self,
        sink: &dyn Sink,
        coming: &mut UnboundedReceiver<Delivery>,
        channel: &Channel,
    ) {
        let mut next = Batch::default();
        // In the order in which they came: an acknowledgement speaks for everything before it.
        let mut begun = FuturesOrdered::new();
        let mut has_more = true;
        while has_more || !begun.is_empty() {
            let is_full = next.deliveries.len() >= self.config.batch_max;
            tokio::select! {
                biased;
                Some(tag) = begun.next() => channel.ack_up_to(tag),
                more = self.gather(coming, &mut next), if has_more && !is_full => has_more = more,
            }
            let is_full = next.deliveries.len() >= self.config.batch_max;
            let may_begin = begun.is_empty() || is_full && begun.len() < BATCHES_MAX;
            if may_begin && !next.deliveries.is_empty() {
                begun.push_back(self.accept(sink, std::mem::take(&mut next)));
            }
        }
    }

    /// Brings everything that comes to the sink, each for itself. What was begun is finished, even if nobody is left to
    /// hear of it or it is told to stop.
    async fn take_each(
        &self,
        sink: &dyn Sink,
        coming: &mut UnboundedReceiver<Delivery>,
        channel: &Channel,
        stop: &Stop,
    ) {
        let mut told = stop.clone();
        let mut begun = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = told.stopped() => break,
                Some(tag) = begun.next() => acknowledge(channel, tag),
                next = coming.recv() => match next {
                    Some(delivery) => begun.push(self.bring(sink, delivery, stop)),
                    None => break,
                },
            }
        }
        while let Some(tag) = begun.next().await {
            acknowledge(channel, tag);
        }
    }

    /// Brings one hand-off to the sink until it has it; `None` if that was given up, and it will come again.
    async fn bring(&self, sink: &dyn Sink, delivery: Delivery, stop: &Stop) -> Option<u64> {
        let mut wait = AWAY_WAIT;
        let mut told = stop.clone();
        loop {
            match sink.accept(vec![self.hand_off(&delivery)]).await {
                Ok(_) => return Some(delivery.tag),
                Err(_) if stop.is_stopped() => return None,
                Err(error) => self.tell_delayed(&error),
            }
            tokio::select! {
                () = told.stopped() => return None,
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(AWAY_WAIT_MAX),
            }
        }
    }

    /// A hand-off as it came.
    fn hand_off(&self, delivery: &Delivery) -> NewMessage {
        let headers = delivery.properties.iter().flat_map(|properties| &properties.headers);
        let headers = headers.flat_map(|headers| &headers.0);
        let content = Content {
            headers: headers.map(|(name, field)| (name.clone(), field.bytes.clone())).collect(),
            ..Content::of_bytes(delivery.body.clone())
        };
        let source = Source::Broker { redelivered: delivery.redelivered };
        NewMessage { source, ..NewMessage::new(Arc::clone(&self.config.route), content) }
    }

    fn tell_delayed(&self, error: &StoreError) {
        tracing::warn!(
            event = "intake.delayed", intake = %self.name, error = %error,
            "the store does not take what came: it is brought again"
        );
    }

    /// Adds what has come to a batch, as much as fits into one commit, and waits where there is nothing. Says whether it
    /// added anything: not where nothing more fits, or will come.
    async fn gather(&self, coming: &mut UnboundedReceiver<Delivery>, batch: &mut Batch) -> bool {
        let known = batch.deliveries.len();
        let room = self.config.batch_max.saturating_sub(known);
        let more = coming.recv_many(&mut batch.deliveries, room).await;
        let now = self.clock.now();
        let Batch { deliveries, messages, queues } = batch;
        let came = &deliveries[known..];
        aside::run(came.iter().map(|delivery| delivery.body.len()).sum(), || {
            messages.extend(came.iter().map(|delivery| self.message(delivery, now)));
        });
        queues.extend(messages[known..].iter().map(scheduled_for));
        more > 0
    }

    /// Brings a batch to the sink until it has it; the number of its last delivery. Meanwhile no more comes than was asked
    /// for.
    async fn accept(&self, sink: &dyn Sink, batch: Batch) -> u64 {
        let Batch { deliveries, messages, queues } = batch;
        let again = |range: Range<usize>| {
            deliveries[range].iter().map(|one| self.message(one, self.clock.now())).collect()
        };
        let answers = self.insist(sink, &deliveries, messages, again).await;
        let mut scheduled: HashMap<Name, u64> = HashMap::new();
        let (mut unwanted, mut theirs) = (Vec::new(), Vec::new());
        for ((delivery, queue), answer) in deliveries.iter().zip(queues).zip(answers) {
            let why = match (answer, queue) {
                (Brought::Taken(Accepted::New(_) | Accepted::Reentered(_)), Some(queue)) => {
                    *scheduled.entry(queue).or_default() += 1;
                    continue;
                }
                (Brought::Taken(Accepted::NoRoute), _) => {
                    format!("there is no route {}", self.config.route)
                }
                (Brought::Taken(Accepted::Conflict(id)), _) => {
                    format!(
                        "its original_queue and message_id are those of message {id}, which has other content or \
                         goes another way"
                    )
                }
                (Brought::Taken(_) | Brought::SetAside, _) => continue,
            };
            unwanted.push(self.unwanted(delivery, why));
            theirs.push(delivery.clone());
        }
        scheduled.iter().for_each(|(queue, count)| labels::scheduled(queue, *count));
        let again = |range: Range<usize>| unwanted[range].to_vec();
        for answer in self.insist(sink, &theirs, unwanted.clone(), again).await {
            if let Brought::Taken(answer) = answer {
                self.tell_dropped(&answer);
            }
        }
        deliveries.last().map_or(0, |delivery| delivery.tag)
    }

    /// Brings messages to the sink until it answers for them, or for word of what it can't take.
    async fn insist(
        &self,
        sink: &dyn Sink,
        deliveries: &[Delivery],
        messages: Vec<NewMessage>,
        again: impl Fn(Range<usize>) -> Vec<NewMessage>,
    ) -> Vec<Brought> {
        let mut parts = Parts::of(messages.len());
        let mut answers = Vec::with_capacity(messages.len());
        let mut first = Some(messages);
        // The store may have what comes before this: it failed without saying that the messages were at fault.
        let mut doubtful_to = 0;
        while let Some(part) = parts.next_part() {
            let (mut brought, range) = match &part {
                Part::AsItIs(range) => (first.take().unwrap_or_else(|| again(range.clone())), range.clone()),
                Part::SetAside { index, why } => {
                    (vec![self.set_aside(&deliveries[*index], why)], *index..*index + 1)
                }
            };
            if range.start < doubtful_to {
                // As if the broker had brought it again: what went out meanwhile is not to go out twice.
                brought.iter_mut().for_each(|message| message.source = Source::Broker { redelivered: true });
            }
            match (sink.accept(brought).await, part) {
                (Ok(all), Part::AsItIs(_)) => {
                    parts.taken();
                    answers.extend(all.into_iter().map(Brought::Taken));
                }
                (Ok(all), Part::SetAside { .. }) => {
                    parts.taken();
                    all.iter().for_each(|answer| self.tell_dropped(answer));
                    answers.push(Brought::SetAside);
                }
                (Err(error), part) => {
                    if !matches!(error, StoreError::Unfit(_)) {
                        doubtful_to = doubtful_to.max(range.end);
                    }
                    if let Some(wait) = parts.failed(part, &error) {
                        self.tell_delayed(&error);
                        tokio::time::sleep(wait).await;
                    }
                }
            }
        }
        answers
    }

    /// Says that what was to be kept as dead is not kept, if it isn't.
    fn tell_dropped(&self, answer: &Accepted) {
        if let Some(why) = answer.why_dropped(&self.config.rejects) {
            tracing::error!(event = "intake.dropped", intake = %self.name, "{why}: it is gone");
        }
    }

    /// What nobody takes as the message that it says is kept as dead instead.
    fn unwanted(&self, delivery: &Delivery, why: String) -> NewMessage {
        let message = self.message(delivery, self.clock.now());
        match message.is_refused {
            true => message,
            false => {
                tracing::warn!(
                    event = "input.refused", intake = %self.name, "input that goes nowhere is kept as dead: {why}"
                );
                // Whoever gets it in the end hears how often it was tried.
                let attempts = message.attempts;
                NewMessage { attempts, ..self.refused(message.content, why, delivery.redelivered) }
            }
        }
    }

    /// What the store can't take as the message that it says is kept as it came.
    fn set_aside(&self, delivery: &Delivery, why: &str) -> NewMessage {
        tracing::warn!(
            event = "input.refused", intake = %self.name,
            "input that the store cannot take is kept as dead: {why}"
        );
        let why = format!("the store cannot take it: {why}");
        self.refused(Content::of_bytes(delivery.body.clone()), why, delivery.redelivered)
    }

    fn message(&self, delivery: &Delivery, now: Timestamp) -> NewMessage {
        match retry_message::read(delivery, self.config.message_bytes_max) {
            Ok((message, properties)) => retry_message::to_new(
                message,
                properties,
                &self.config.route,
                self.config.max_retries,
                delivery.redelivered,
                now,
            ),
            Err(why) => {
                tracing::warn!(event = "input.refused", intake = %self.name, "input that nobody can read: {why}");
                self.refused(Content::of_bytes(delivery.body.clone()), why, delivery.redelivered)
            }
        }
    }

    /// Input as it is kept for people: once, if the broker brings it again.
    fn refused(&self, content: Content, why: String, redelivered: bool) -> NewMessage {
        let origin = identity::of_place("rabbitmq", &self.name, &self.config.queue);
        NewMessage {
            key: Some(identity::of_refused(&origin, &content, &self.config.rejects)),
            error: Some(Failure::new(why).with_code("BAD_INPUT")),
            is_refused: true,
            source: Source::Broker { redelivered },
            ..NewMessage::new(Arc::clone(&self.config.rejects), content)
        }
    }
}

/// The queue that a message waits to go back to, if it does.
fn scheduled_for(message: &NewMessage) -> Option<Name> {
    let is_dead = message.max_attempts.is_some_and(|max| message.attempts >= max);
    let waits =
        message.content.attributes.contains_key(retry_message::QUEUE) && !is_dead && !message.is_refused;
    message.content.target.clone().filter(|_| waits)
}

fn acknowledge(channel: &Channel, tag: Option<u64>) {
    if let Some(tag) = tag {
        channel.ack(tag);
    }
}

#[async_trait]
impl Intake for RabbitmqIntake {
    async fn run(&self, sink: &dyn Sink, mut stop: Stop) -> Result<(), IntakeError> {
        let Some(dial) = &self.dial else {
            tracing::warn!(event = "intake.idle", intake = %self.name, "no broker is configured: nothing comes");
            stop.stopped().await;
            return Ok(());
        };
        let mut failures = 0;
        while !stop.is_stopped() {
            let told = stop.clone();
            let taking = self.take(dial, sink, &told, &mut failures);
            let gone = match self.config.takes {
                Takes::RetryMessages => tokio::select! {
                    biased;
                    // What was not acknowledged comes again.
                    () = stop.stopped() => break,
                    gone = taking => gone,
                },
                // What was begun can't be taken back.
                Takes::HandOffs => taking.await,
            };
            if stop.is_stopped() {
                break;
            }
            let why = gone.err().unwrap_or(Closed::Ours);
            let wait = AWAY_WAIT.saturating_mul(1 << failures.min(10)).min(AWAY_WAIT_MAX);
            failures += 1;
            tracing::warn!(
                event = "intake.interrupted", intake = %self.name,
                "the broker cannot be reached, trying again: {why}"
            );
            tokio::select! {
                biased;
                () = stop.stopped() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
