//! A sink that answers as a story needs it to, and remembers what it was brought.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use redeliver_core::Outcome;
use redeliver_core::accept::NewMessage;
use redeliver_core::report::Report;
use redeliver_engine::intake::{Accepted, Sink, Told};
use redeliver_engine::store::StoreError;
use tokio::sync::watch;

use crate::make::id;

/// How a sink answers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Everything is new.
    New,
    /// Everything was said before.
    Duplicate,
    /// There is no route for what begins with this byte; the rest is new.
    NoRouteFor(u8),
    /// The key of what begins with this byte is another message's; the rest is new.
    ConflictFor(u8),
    /// The store can take nothing that begins with this byte, nor anything together with it; the rest is new.
    UnfitFor(u8),
    /// The store does not answer.
    Fails,
    /// Nothing, until it is told otherwise.
    Waits,
}

/// A sink that answers as it is told, and remembers what it was brought.
#[derive(Debug)]
pub struct ScriptedSink {
    answers: watch::Sender<Answers>,
    brought: Mutex<Vec<Bytes>>,
    /// The keys of all that was brought, and whether to be kept as dead.
    keys: Mutex<Vec<(bool, Arc<str>)>>,
    taken: Mutex<Vec<Bytes>>,
    set_aside: Mutex<Vec<Bytes>>,
    reports: Mutex<Vec<Report>>,
    calls: watch::Sender<usize>,
}

impl ScriptedSink {
    /// A sink that answers like this.
    pub fn new(answers: Answers) -> Self {
        Self {
            answers: watch::Sender::new(answers),
            brought: Mutex::default(),
            keys: Mutex::default(),
            taken: Mutex::default(),
            set_aside: Mutex::default(),
            reports: Mutex::default(),
            calls: watch::Sender::new(0),
        }
    }

    /// Answers like this from now on.
    pub fn answer(&self, answers: Answers) {
        self.answers.send_replace(answers);
    }

    /// Everything that was brought, answered for or not, repeats included.
    pub fn brought(&self) -> Vec<Bytes> {
        lock(&self.brought).clone()
    }

    /// The keys of everything that was brought as a message, answered for or not, repeats included.
    pub fn keys(&self) -> Vec<Arc<str>> {
        self.keys_of(false)
    }

    /// The keys of everything that was brought to be kept as dead.
    pub fn refused_keys(&self) -> Vec<Arc<str>> {
        self.keys_of(true)
    }

    fn keys_of(&self, refused: bool) -> Vec<Arc<str>> {
        let keys = lock(&self.keys);
        keys.iter().filter(|(is_refused, _)| *is_refused == refused).map(|(_, key)| key.clone()).collect()
    }

    /// Everything that was answered for.
    pub fn taken(&self) -> Vec<Bytes> {
        lock(&self.taken).clone()
    }

    /// What was brought to be kept as dead, because nobody can carry it.
    pub fn set_aside(&self) -> Vec<Bytes> {
        lock(&self.set_aside).clone()
    }

    /// The reports that were answered for.
    pub fn reports(&self) -> Vec<Report> {
        lock(&self.reports).clone()
    }

    /// How often anything was brought.
    pub fn calls(&self) -> usize {
        *self.calls.borrow()
    }

    /// Ends when something was brought at least this often.
    pub async fn called(&self, times: usize) {
        let mut calls = self.calls.subscribe();
        // The only error is that the sink is gone, and it is borrowed here.
        let _ = calls.wait_for(|calls| *calls >= times).await;
    }
}

#[async_trait]
impl Sink for ScriptedSink {
    async fn accept(&self, batch: Vec<NewMessage>) -> Result<Vec<Accepted>, StoreError> {
        let keyed = |new: &NewMessage| Some((new.is_refused, new.key.clone()?));
        lock(&self.keys).extend(batch.iter().filter_map(keyed));
        let batch: Vec<(bool, Bytes)> =
            batch.into_iter().map(|new| (new.is_refused, new.content.bytes)).collect();
        let good = || batch.iter().filter(|(is_refused, _)| !is_refused).map(|(_, bytes)| bytes.clone());
        let bad = || batch.iter().filter(|(is_refused, _)| *is_refused).map(|(_, bytes)| bytes.clone());
        lock(&self.brought).extend(good());
        let answers = self.answers().await;
        let answer = |(is_refused, bytes): &(bool, Bytes)| match answers {
            Answers::New => Ok(Accepted::New(id(1))),
            Answers::Duplicate => Ok(Accepted::Duplicate(id(1))),
            Answers::NoRouteFor(first) if bytes.first() == Some(&first) && !is_refused => {
                Ok(Accepted::NoRoute)
            }
            Answers::UnfitFor(first) if bytes.first() == Some(&first) && !is_refused => {
                Err(StoreError::Unfit("as the story goes".to_owned()))
            }
            Answers::ConflictFor(first) if bytes.first() == Some(&first) && !is_refused => {
                Ok(Accepted::Conflict(id(1)))
            }
            Answers::NoRouteFor(_) | Answers::UnfitFor(_) | Answers::ConflictFor(_) => {
                Ok(Accepted::New(id(1)))
            }
            Answers::Fails | Answers::Waits => Err(StoreError::Unavailable("as the story goes".to_owned())),
        };
        let all: Vec<Accepted> = batch.iter().map(answer).collect::<Result<_, _>>()?;
        lock(&self.taken).extend(good());
        lock(&self.set_aside).extend(bad());
        Ok(all)
    }

    async fn report(&self, batch: Vec<Report>) -> Result<Vec<Told>, StoreError> {
        let begins_with = |report: &Report, first: u8| match &report.outcome {
            Outcome::Failed(failure) | Outcome::Refused(failure) => {
                failure.text.as_bytes().first() == Some(&first)
            }
            Outcome::Delivered { .. }
            | Outcome::HandedOff
            | Outcome::Partial(_)
            | Outcome::Deferred { .. }
            | Outcome::Skipped { .. }
            | Outcome::Lost { .. } => false,
        };
        let answers = self.answers().await;
        let answer = |report: &Report| match answers {
            Answers::UnfitFor(first) if begins_with(report, first) => {
                Ok(Told::Unfit("as the story goes".to_owned()))
            }
            Answers::New | Answers::UnfitFor(_) | Answers::ConflictFor(_) => Ok(Told::Applied),
            Answers::Duplicate => Ok(Told::Ignored),
            Answers::NoRouteFor(_) => Ok(Told::NoMessage),
            Answers::Fails | Answers::Waits => Err(StoreError::Unavailable("as the story goes".to_owned())),
        };
        let all: Vec<Told> = batch.iter().map(answer).collect::<Result<_, _>>()?;
        let kept = batch.into_iter().zip(&all).filter(|(_, told)| !matches!(told, Told::Unfit(_)));
        lock(&self.reports).extend(kept.map(|(report, _)| report));
        Ok(all)
    }
}

impl ScriptedSink {
    /// How it answers what it is being brought.
    async fn answers(&self) -> Answers {
        self.calls.send_modify(|calls| *calls += 1);
        let mut answers = self.answers.subscribe();
        match answers.wait_for(|answers| *answers != Answers::Waits).await {
            Ok(answers) => *answers,
            Err(_) => Answers::Fails,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
