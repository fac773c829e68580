//! Carries messages as the script says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::outcome::{Blame, Until};
use redeliver_core::{AttemptId, Failure, MessageId, Name, Outcome, Timestamp};
use redeliver_engine::clock::Clock;
use redeliver_engine::transport::{Envelope, Transport};

use super::config::{Reply, ScriptedConfig, Step};

/// A transport that does what its script says. Each message goes through the script on its own: tries, losses and
/// deferrals each move it one step on, and an operator's retry starts it over.
pub struct ScriptedTransport {
    name: Name,
    config: ScriptedConfig,
    clock: Arc<dyn Clock>,
    recorder: Option<Recorder>,
    /// How often each message was put off: the one thing that the message itself doesn't remember.
    deferrals: Mutex<HashMap<MessageId, usize>>,
}

/// Is told of every carrying when it begins.
pub type Recorder = Arc<dyn Fn(&Carrying) + Send + Sync>;

/// One carrying, as a recorder sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Carrying {
    /// Which try of which message.
    pub attempt_id: AttemptId,
    /// Where to.
    pub destination: Name,
    /// What it will come to.
    pub step: Step,
    /// When it began.
    pub at: Timestamp,
}

/// The most messages whose deferrals are remembered; beyond it, a put-off message stays on its step.
const DEFERRALS_MAX: usize = 100_000;

impl ScriptedTransport {
    /// A transport with this name, which is also its destination for messages without a target.
    pub fn new(name: impl Into<Name>, config: ScriptedConfig, clock: Arc<dyn Clock>) -> Self {
        Self { name: name.into(), config, clock, recorder: None, deferrals: Mutex::default() }
    }

    /// The same, telling `recorder` of every carrying.
    pub fn with_recorder(self, recorder: Recorder) -> Self {
        Self { recorder: Some(recorder), ..self }
    }

    fn next_step(&self, envelope: &Envelope<'_>) -> Step {
        let message = envelope.message;
        let mut deferrals = self.deferrals.lock().unwrap_or_else(PoisonError::into_inner);
        let deferred = deferrals.get(&message.id).copied().unwrap_or(0);
        let counted = message.attempts as usize + message.losses as usize + message.unconfirmed as usize;
        let step = self.config.script.step(counted + deferred);
        match step {
            Step::Defer(_) if deferrals.len() < DEFERRALS_MAX || deferred > 0 => {
                deferrals.insert(message.id.clone(), deferred + 1);
            }
            Step::Deliver(_) | Step::Refuse(_) => {
                deferrals.remove(&message.id);
            }
            Step::Defer(_)
            | Step::HandOff
            | Step::Fail(_)
            | Step::Throttle(_)
            | Step::RefuseLogin(_)
            | Step::Unreachable
            | Step::Lose
            | Step::Hang
            | Step::Panic => {}
        }
        step.clone()
    }

    async fn perform(&self, step: Step) -> Outcome {
        match step {
            Step::Deliver(receipt) => Outcome::Delivered { receipt },
            Step::HandOff => Outcome::HandedOff,
            Step::Fail(reply) => Outcome::Failed(failure(&reply)),
            Step::Refuse(reply) => Outcome::Refused(failure(&reply)),
            Step::Throttle(span) => {
                let failure = Failure::new("slow down").with_code("RATE_LIMIT_EXCEEDED");
                Outcome::Failed(failure.blaming(Blame::Throttle).with_retry_after(span))
            }
            Step::RefuseLogin(reply) => Outcome::Failed(failure(&reply).blaming(Blame::Credential)),
            Step::Unreachable => {
                let failure = Failure::new("connection refused").with_code("ECONNREFUSED");
                Outcome::Failed(failure.blaming(Blame::Connection))
            }
            Step::Defer(span) => Outcome::Deferred {
                until: Until::At(self.clock.now().plus(span)),
                reason: "put off by the script".into(),
            },
            Step::Lose => Outcome::Lost { reason: "lost by the script".into() },
            Step::Hang => std::future::pending().await,
            Step::Panic => fall_over(),
        }
    }
}

#[async_trait]
impl Transport for ScriptedTransport {
    async fn carry(&self, envelope: &Envelope<'_>, _within: Duration) -> Outcome {
        let step = self.next_step(envelope);
        if let Some(recorder) = &self.recorder {
            recorder(&Carrying {
                attempt_id: envelope.attempt_id(),
                destination: self.destination(envelope),
                step: step.clone(),
                at: self.clock.now(),
            });
        }
        if !self.config.latency.is_zero() {
            self.clock.sleep(self.config.latency).await;
        }
        self.perform(step).await
    }

    fn destination(&self, envelope: &Envelope<'_>) -> Name {
        envelope.target.map_or_else(|| self.name.clone(), Into::into)
    }
}

fn failure(reply: &Reply) -> Failure {
    Failure::new(&reply.text).with_code(&reply.code)
}

#[allow(clippy::panic, reason = "the script asks for it, to show that the engine survives")]
fn fall_over() -> Outcome {
    panic!("the script says panic")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Script;
    use futures_util::FutureExt;
    use redeliver_core::accept::{NewMessage, admit};
    use redeliver_core::policy::{Backoff, Jitter};
    use redeliver_core::{Content, Message, Policy, Route};
    use redeliver_engine::clock::Sleep;

    /// A clock that stands still, and whose sleepers never wake.
    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::from_ms(1_000)
        }
        fn uptime(&self) -> Duration {
            Duration::ZERO
        }
        fn sleep(&self, _: Duration) -> Sleep {
            Box::pin(std::future::pending())
        }
        fn bits(&self) -> u128 {
            0
        }
    }

    fn transport(steps: &[&str], latency: Duration) -> ScriptedTransport {
        let steps = steps.iter().map(|step| Step::parse(step).unwrap()).collect();
        let config = ScriptedConfig { script: Script::new(steps).unwrap(), latency };
        ScriptedTransport::new("script", config, Arc::new(Still))
    }

    fn message() -> Message {
        let backoff = Backoff::Table(vec![Duration::from_secs(1)]);
        let policy = Policy { backoff, jitter: Jitter::None, max_attempts: 9, expires_after: None };
        let route = Route::new("email", "script", policy);
        let new = NewMessage::new("email", Content::default());
        admit(new, &route, MessageId::own(1), None, Timestamp::from_ms(0)).message
    }

    /// What the carrying comes to, or `None` if it doesn't end by itself.
    fn carry(transport: &ScriptedTransport, message: &Message, target: Option<&str>) -> Option<Outcome> {
        let content = Content::default();
        let envelope = Envelope { message, content: &content, target };
        transport.carry(&envelope, Duration::from_secs(1)).now_or_never()
    }

    #[test]
    fn each_step_comes_to_its_outcome() {
        let check = |step: &str, outcome: Outcome| {
            assert_eq!(carry(&transport(&[step], Duration::ZERO), &message(), None), Some(outcome), "{step}");
        };
        let failure = |code, text| Failure::new(text).with_code(code);
        check("deliver", Outcome::Delivered { receipt: None });
        check("deliver 250 ok", Outcome::Delivered { receipt: Some("250 ok".into()) });
        check("hand_off", Outcome::HandedOff);
        check("fail 451 try later", Outcome::Failed(failure("451", "try later")));
        check("refuse 550 no such user", Outcome::Refused(failure("550", "no such user")));
        check("refuse_login 535 no", Outcome::Failed(failure("535", "no").blaming(Blame::Credential)));
        check(
            "throttle 30s",
            Outcome::Failed(
                failure("RATE_LIMIT_EXCEEDED", "slow down")
                    .blaming(Blame::Throttle)
                    .with_retry_after(Duration::from_secs(30)),
            ),
        );
        check(
            "unreachable",
            Outcome::Failed(failure("ECONNREFUSED", "connection refused").blaming(Blame::Connection)),
        );
        check(
            "defer 30s",
            Outcome::Deferred {
                until: Until::At(Timestamp::from_ms(31_000)),
                reason: "put off by the script".into(),
            },
        );
        check("lose", Outcome::Lost { reason: "lost by the script".into() });
    }

    #[test]
    fn a_message_has_its_own_storyline() {
        let transport = transport(&["fail 451 later", "lose", "unreachable", "deliver"], Duration::ZERO);
        let name = |attempts, losses, unconfirmed| {
            let message = Message { attempts, losses, unconfirmed, ..message() };
            match carry(&transport, &message, None) {
                Some(Outcome::Delivered { .. }) => "delivered",
                Some(Outcome::Failed(failure)) if failure.blame == Blame::Connection => "unreachable",
                Some(Outcome::Failed(_)) => "failed",
                Some(Outcome::Lost { .. }) => "lost",
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(name(0, 0, 0), "failed");
        assert_eq!(name(1, 0, 0), "lost");
        assert_eq!(name(1, 0, 1), "unreachable");
        assert_eq!(name(1, 1, 0), "unreachable");
        assert_eq!(name(2, 0, 1), "delivered");
        assert_eq!(name(8, 0, 0), "delivered");
    }

    #[test]
    fn a_message_that_was_put_off_goes_on_with_the_next_step() {
        let transport = transport(&["defer 1s", "defer 2s", "deliver"], Duration::ZERO);
        let outcome = || carry(&transport, &message(), None);
        assert!(matches!(outcome(), Some(Outcome::Deferred { .. })));
        assert!(matches!(outcome(), Some(Outcome::Deferred { .. })));
        assert!(matches!(outcome(), Some(Outcome::Delivered { .. })));
        assert!(transport.deferrals.lock().unwrap().is_empty());
    }

    #[test]
    fn a_hanging_carrying_never_ends_by_itself() {
        assert_eq!(carry(&transport(&["hang"], Duration::ZERO), &message(), None), None);
        assert_eq!(carry(&transport(&["deliver"], Duration::from_secs(1)), &message(), None), None);
    }

    #[test]
    #[should_panic(expected = "the script says panic")]
    fn a_panic_is_a_panic() {
        carry(&transport(&["panic"], Duration::ZERO), &message(), None);
    }

    #[test]
    fn the_recorder_hears_of_every_carrying_and_where_it_went() {
        let seen: Arc<Mutex<Vec<(String, Name, String)>>> = Arc::default();
        let writer = seen.clone();
        let transport = transport(&["hang"], Duration::ZERO).with_recorder(Arc::new(move |carrying| {
            let line = (carrying.attempt_id.to_string(), carrying.destination.clone(), carrying.step.show());
            writer.lock().unwrap().push(line);
        }));
        carry(&transport, &message(), None);
        carry(&transport, &Message { attempts: 1, ..message() }, Some("queue"));
        let id = MessageId::own(1);
        assert_eq!(
            *seen.lock().unwrap(),
            [
                (format!("{id}.0.1"), "script".into(), "hang".to_owned()),
                (format!("{id}.0.2"), "queue".into(), "hang".to_owned()),
            ]
        );
    }
}
