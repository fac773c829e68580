//! A receiver that takes, refuses, stalls, and forgets to answer, as the seed has it; and the outside workers behind it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::message::{Fate, RecipientVerdict};
use redeliver_core::outcome::{Blame, Until};
use redeliver_core::{AttemptId, Failure, MessageId, Name, Outcome, Timestamp};
use redeliver_engine::clock::Clock;
use redeliver_engine::transport::{Envelope, Transport};

use crate::clock::SimHandle;
use crate::scenario::Lasting;
use crate::world::{SharedWorld, look};

/// Words of outside workers that are on their way to us: when, about what, and what they say.
pub type Mailbox = Arc<Mutex<Vec<(u64, MessageId, Option<AttemptId>, Outcome)>>>;

/// One process's way out.
pub struct SimTransport {
    /// Who sees everything.
    pub world: SharedWorld,
    /// The time.
    pub clock: SimHandle,
    /// Whose.
    pub process: usize,
    /// How often, in a thousand, something other than a delivery happens.
    pub trouble: u64,
    /// Where outside workers' reports go; `None` if this is no hand-off.
    pub reports: Option<Mailbox>,
}

impl SimTransport {
    fn trouble(&self) -> bool {
        let mut world = look(&self.world);
        !world.healed && world.rng.chance(self.trouble)
    }

    fn draw(&self, low: u64, high: u64) -> u64 {
        look(&self.world).rng.between(low, high)
    }

    fn receive(&self, id: &MessageId, recipients: &[u32]) {
        look(&self.world).received(id, recipients);
    }

    /// Several recipients, each with a fate of its own.
    fn each(&self, id: &MessageId, recipients: &[u32]) -> Outcome {
        let verdicts = recipients
            .iter()
            .map(|index| {
                let fate = match self.trouble().then(|| self.draw(0, 2)) {
                    Some(0) => Fate::Refused(Failure::new("no such user")),
                    Some(_) => Fate::Failed(Failure::new("try later")),
                    None => {
                        self.receive(id, &[*index]);
                        Fate::Delivered
                    }
                };
                RecipientVerdict { index: *index, fate }
            })
            .collect();
        Outcome::Partial(verdicts)
    }

    /// An outside worker takes it and reports, if it does, when and what it likes.
    fn hand_off(&self, envelope: &Envelope<'_>, mailbox: &Mailbox) -> Outcome {
        let id = envelope.message.id.clone();
        let attempt = envelope.attempt_id();
        let now_ms = self.clock.0.uptime_ms();
        let post = |delay_ms: u64, attempt: Option<AttemptId>, outcome: Outcome| {
            let mut letters = mailbox.lock().unwrap_or_else(PoisonError::into_inner);
            letters.push((now_ms + delay_ms, id.clone(), attempt, outcome));
        };
        let delivered = || Outcome::Delivered { receipt: None };
        let delay = self.draw(0, 3_000);
        match self.trouble().then(|| self.draw(0, 5)) {
            None => {
                self.receive(&envelope.message.id, &[0]);
                post(delay, Some(attempt), delivered());
            }
            Some(0) => post(delay, Some(attempt), Outcome::Failed(Failure::new("device offline"))),
            Some(1) => post(delay, Some(attempt), Outcome::Refused(Failure::new("unregistered"))),
            Some(2) => {}
            Some(3) => {
                self.receive(&envelope.message.id, &[0]);
                post(delay, None, delivered());
            }
            Some(_) => {
                self.receive(&envelope.message.id, &[0]);
                post(delay, Some(attempt.clone()), delivered());
                post(delay + 20_000, Some(attempt), Outcome::Failed(Failure::new("late and wrong")));
            }
        }
        Outcome::HandedOff
    }
}

/// A send under way, until it is over, given up, or its process is killed.
struct UnderWay(SharedWorld, u64);

impl UnderWay {
    fn begin(world: &SharedWorld, envelope: &Envelope<'_>, destination: &str, now: Timestamp) -> Self {
        let number = look(world).send_started(envelope.message, destination, now);
        Self(Arc::clone(world), number)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        look(&self.0).limits.ended(self.1);
    }
}

#[async_trait]
impl Transport for SimTransport {
    async fn carry(&self, envelope: &Envelope<'_>, within: Duration) -> Outcome {
        let id = &envelope.message.id;
        let count = envelope.content.attributes.get("recipients").and_then(|n| n.parse().ok()).unwrap_or(1);
        let recipients = envelope.recipients_left(count);
        let destination = self.destination(envelope);
        look(&self.world).carrying(
            self.process,
            envelope.message,
            &recipients,
            &destination,
            self.clock.now(),
        );
        let _under_way = UnderWay::begin(&self.world, envelope, &destination, self.clock.now());
        if envelope.content.attributes.contains_key("poison") {
            look(&self.world).poisoned.push(self.process);
            return std::future::pending().await;
        }
        if look(&self.world).lasting == Lasting::SilentReceivers {
            // It has the message, and its answer or report comes after everybody has given up on it.
            self.receive(id, &recipients);
            return match self.reports {
                Some(_) => Outcome::HandedOff,
                None => std::future::pending().await,
            };
        }
        if self.trouble() {
            let ms = self.draw(1, within.as_millis() as u64);
            self.clock.sleep(Duration::from_millis(ms)).await;
        }
        if let Some(mailbox) = &self.reports {
            return self.hand_off(envelope, mailbox);
        }
        if count > 1 {
            return self.each(id, &recipients);
        }
        match self.trouble().then(|| self.draw(0, 9)) {
            None => {
                self.receive(id, &[0]);
                Outcome::Delivered { receipt: Some("250 ok".into()) }
            }
            Some(0) => Outcome::Refused(Failure::new("550 no").with_code("550")),
            Some(1) => Outcome::Failed(Failure::new("no route").blaming(Blame::Connection)),
            Some(2) => {
                let wait = Duration::from_secs(self.draw(1, 10));
                Outcome::Failed(Failure::new("slow down").blaming(Blame::Throttle).with_retry_after(wait))
            }
            Some(3) => {
                look(&self.world).nothing_sent(&envelope.attempt_id());
                Outcome::Failed(Failure::new("535 who are you").blaming(Blame::Credential))
            }
            Some(4) => {
                look(&self.world).nothing_sent(&envelope.attempt_id());
                let until = Until::At(self.clock.now().plus(Duration::from_secs(2)));
                Outcome::Deferred { until, reason: "the broker is away".into() }
            }
            Some(5) => {
                self.receive(id, &[0]);
                Outcome::Lost { reason: "the answer was lost".into() }
            }
            Some(6) => {
                if self.draw(0, 1) == 1 {
                    self.receive(id, &[0]);
                }
                std::future::pending().await
            }
            Some(7) => {
                look(&self.world).nothing_sent(&envelope.attempt_id());
                Outcome::Skipped { reason: "ineligible".into() }
            }
            Some(_) => Outcome::Failed(Failure::new("451 later").with_code("451")),
        }
    }

    /// So that the time of the first send is kept.
    fn carries_emails(&self) -> bool {
        true
    }

    fn destination(&self, envelope: &Envelope<'_>) -> Name {
        envelope.target.unwrap_or("here").into()
    }
}
