//! A transport and an intake with their other ends in memory, honest or with one fault.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test panics: that is how it fails")]

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use redeliver_conformance::intake::IntakeRig;
use redeliver_conformance::transport::{LATE, Manner, Seen, TransportRig};
use redeliver_core::accept::NewMessage;
use redeliver_core::outcome::Blame;
use redeliver_core::{Content, Failure, Name, Outcome};
use redeliver_engine::intake::{Accepted, Intake, IntakeError, Sink};
use redeliver_engine::stop::Stop;
use redeliver_engine::store::StoreError;
use redeliver_engine::transport::{Envelope, Transport};

/// What can be wrong with an adapter.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    RetriesByItself,
    SaysDelivered,
    DropsAttemptId,
    NamesEachMessage,
    SendsTwice,
    CallsLateFailed,
    CallsCutFailed,
    TakesLateAnswers,
    AcksEarly,
    Spins,
    EndsOnPoison,
    ReversesAnswers,
    NeverStops,
    ForgetsItsSource,
    RefusesUnderTheSameKey,
}

/// A transport whose peer is a list.
pub struct MemoryTransport {
    fault: Option<Fault>,
    manner: Mutex<Manner>,
    seen: Mutex<Vec<Seen>>,
    /// Whether a late answer is on its way.
    is_late: Mutex<bool>,
}

impl MemoryTransport {
    pub fn new(fault: Option<Fault>) -> Self {
        Self { fault, manner: Mutex::new(Manner::Takes), seen: Mutex::default(), is_late: Mutex::new(false) }
    }

    fn bring(&self, envelope: &Envelope<'_>) {
        let drops = self.fault == Some(Fault::DropsAttemptId);
        let attempt_id = (!drops).then(|| envelope.attempt_id().to_string());
        self.seen.lock().unwrap().push(Seen { attempt_id, bytes: Some(envelope.content.bytes.clone()) });
    }
}

#[async_trait]
impl Transport for MemoryTransport {
    async fn carry(&self, envelope: &Envelope<'_>, _within: Duration) -> Outcome {
        let manner = *self.manner.lock().unwrap();
        if self.fault == Some(Fault::SaysDelivered) {
            self.bring(envelope);
            return Outcome::Delivered { receipt: None };
        }
        let was_late = std::mem::replace(&mut *self.is_late.lock().unwrap(), manner == Manner::AnswersLate);
        if was_late && self.fault == Some(Fault::TakesLateAnswers) {
            return Outcome::Delivered { receipt: Some("taken".into()) };
        }
        match manner {
            Manner::Takes => {
                self.bring(envelope);
                if self.fault == Some(Fault::SendsTwice) {
                    self.bring(envelope);
                }
                Outcome::Delivered { receipt: Some("taken".into()) }
            }
            Manner::Fails => {
                self.bring(envelope);
                if self.fault == Some(Fault::RetriesByItself) {
                    self.bring(envelope);
                }
                Outcome::Failed(Failure::new("try later").with_code("451"))
            }
            Manner::Refuses => {
                self.bring(envelope);
                Outcome::Refused(Failure::new("never").with_code("550"))
            }
            Manner::Silent => std::future::pending().await,
            Manner::AnswersLate => {
                self.bring(envelope);
                if self.fault == Some(Fault::CallsLateFailed) {
                    return Outcome::Failed(Failure::new("timed out").blaming(Blame::Connection));
                }
                tokio::time::sleep(LATE).await;
                Outcome::Delivered { receipt: Some("taken".into()) }
            }
            Manner::CutsOff => {
                self.bring(envelope);
                match self.fault {
                    Some(Fault::CallsCutFailed) => {
                        Outcome::Failed(Failure::new("reset").blaming(Blame::Connection))
                    }
                    _ => Outcome::Lost { reason: "reset".into() },
                }
            }
            Manner::Away => Outcome::Failed(Failure::new("refused").blaming(Blame::Connection)),
        }
    }

    fn destination(&self, envelope: &Envelope<'_>) -> Name {
        match self.fault {
            Some(Fault::NamesEachMessage) => envelope.message.id.to_string().into(),
            _ => envelope.target.unwrap_or("memory").into(),
        }
    }
}

#[async_trait]
impl TransportRig for MemoryTransport {
    fn transport(&self) -> &dyn Transport {
        self
    }

    async fn behave(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    async fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

const POISON: Bytes = Bytes::from_static(b"\xff poison");
const POLL: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_millis(20);

/// An intake whose source is a list.
pub struct MemoryIntake {
    name: &'static str,
    fault: Option<Fault>,
    source: Arc<Mutex<Source>>,
}

#[derive(Default)]
struct Source {
    waiting: Vec<Bytes>,
    set_aside: Vec<Bytes>,
}

impl MemoryIntake {
    pub fn new(fault: Option<Fault>) -> Self {
        Self { name: "memory", fault, source: Arc::default() }
    }

    fn source(&self) -> MutexGuard<'_, Source> {
        self.source.lock().unwrap()
    }

    /// Brings one batch; `false` if it has to wait before the next.
    async fn feed(&self, sink: &dyn Sink) -> Result<bool, IntakeError> {
        let all = self.source().waiting.clone();
        let (poison, good): (Vec<Bytes>, Vec<Bytes>) = all.into_iter().partition(|bytes| *bytes == POISON);
        if self.fault == Some(Fault::EndsOnPoison) && !poison.is_empty() {
            return Err(IntakeError { name: "memory".to_owned(), why: "poison".to_owned() });
        }
        self.source().forget(&poison);
        self.source().set_aside.extend(poison);
        if good.is_empty() {
            return Ok(false);
        }
        if self.fault == Some(Fault::AcksEarly) {
            self.source().forget(&good);
        }
        let answered = match sink.accept(good.iter().map(|bytes| self.message(bytes)).collect()).await {
            Err(StoreError::Unfit(_)) => self.one_by_one(sink, &good).await,
            answered => answered,
        };
        let Ok(mut answers) = answered else {
            return Ok(self.fault == Some(Fault::Spins));
        };
        if self.fault == Some(Fault::ReversesAnswers) {
            answers.reverse();
        }
        self.source().forget(&good);
        let is_unwanted = |answer: &Accepted| matches!(answer, Accepted::NoRoute | Accepted::Conflict(_));
        let unwanted = good.into_iter().zip(answers).filter(|(_, answer)| is_unwanted(answer));
        let unwanted: Vec<Bytes> = unwanted.map(|(bytes, _)| bytes).collect();
        if self.fault == Some(Fault::RefusesUnderTheSameKey) {
            let refused = |bytes| NewMessage { is_refused: true, ..self.message(bytes) };
            let _ = sink.accept(unwanted.iter().map(refused).collect()).await;
        } else {
            self.source().set_aside.extend(unwanted);
        }
        Ok(true)
    }

    /// Its inputs differ, so that their words are their places.
    fn message(&self, bytes: &Bytes) -> NewMessage {
        let place = String::from_utf8_lossy(bytes);
        let key = match self.fault {
            Some(Fault::ForgetsItsSource) => place.into_owned(),
            _ => format!("{}/{place}", self.name),
        };
        NewMessage { key: Some(key.into()), ..NewMessage::new("mail", Content::of_bytes(bytes.clone())) }
    }

    /// Finds out which of a batch the store can't take: that one has no way to go.
    async fn one_by_one(&self, sink: &dyn Sink, good: &[Bytes]) -> Result<Vec<Accepted>, StoreError> {
        let mut answers = Vec::new();
        for bytes in good {
            match sink.accept(vec![self.message(bytes)]).await {
                Ok(answer) => answers.extend(answer),
                Err(StoreError::Unfit(_)) => answers.push(Accepted::NoRoute),
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }
}

impl Source {
    fn forget(&mut self, inputs: &[Bytes]) {
        for input in inputs {
            if let Some(place) = self.waiting.iter().position(|bytes| bytes == input) {
                self.waiting.remove(place);
            }
        }
    }
}

#[async_trait]
impl Intake for MemoryIntake {
    async fn run(&self, sink: &dyn Sink, mut stop: Stop) -> Result<(), IntakeError> {
        loop {
            let fed = self.feed(sink).await?;
            if stop.is_stopped() && self.fault != Some(Fault::NeverStops) {
                return Ok(());
            }
            let wait = match fed {
                true => Duration::ZERO,
                false if self.source().waiting.is_empty() => POLL,
                false => PATIENCE,
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stop.stopped(), if self.fault != Some(Fault::NeverStops) => {}
            }
        }
    }
}

#[async_trait]
impl IntakeRig for MemoryIntake {
    fn intake(&self) -> &dyn Intake {
        self
    }

    async fn put(&self, bytes: Bytes) {
        self.source().waiting.push(bytes);
    }

    async fn put_poison(&self) {
        self.source().waiting.push(POISON);
    }

    async fn unacknowledged(&self) -> usize {
        self.source().waiting.len()
    }

    async fn set_aside(&self) -> Vec<Bytes> {
        self.source().set_aside.clone()
    }

    async fn twin(&self) -> Box<dyn IntakeRig> {
        Box::new(Self { name: "twin", ..Self::new(self.fault) })
    }
}
