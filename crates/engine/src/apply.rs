//! Writes down what tries came to, many at once, until the store has it.

use std::sync::Arc;
use std::time::Duration;

use redeliver_core::attempt::{AttemptRecord, Verdict};
use redeliver_core::event::Kind;
use redeliver_core::planted::{self, Bug};
use redeliver_core::settle::settle;
use redeliver_core::{Change, Event, Lane, Message, MessageId, Outcome, State, Timestamp};

use crate::attempt::Came;
use crate::engine::{Engine, Line};
use crate::store::{Applied, StoreError};

/// A try's outcome with the change that it makes.
pub(crate) struct Settled {
    pub(crate) lane: Lane,
    pub(crate) outcome: Outcome,
    pub(crate) change: Change,
    /// When the message was due for the try.
    due_at: Timestamp,
    /// When it was claimed for it, if that is known.
    claimed_at: Option<Timestamp>,
    /// When it was sent, if anything was.
    sent_at: Option<Timestamp>,
}

/// What is left of a settled try once it is written.
pub(crate) struct Done {
    pub(crate) lane: Lane,
    pub(crate) id: MessageId,
}

const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

impl Settled {
    /// Settles a try. What was written for it is kept, unless nothing was sent.
    pub(crate) fn new(
        engine: &Engine,
        line: &Line,
        message: &Message,
        came: Came,
        claimed_at: Option<Timestamp>,
    ) -> Self {
        let Came { outcome, sent_at, written } = came;
        let mut change = settle(message, &outcome, &line.route, engine.clock.now());
        change.content = written.filter(|_| !matches!(outcome, Outcome::Deferred { .. })).map(Arc::new);
        let is_unsent =
            sent_at.is_none() || matches!(outcome, Outcome::Deferred { .. } | Outcome::Skipped { .. });
        if let Some(at) = claimed_at
            && is_unsent
        {
            change.message.forget_first_send(at);
        }
        if let Some(record) = &mut change.attempt {
            (record.claimed_at, record.sent_at) = (claimed_at, sent_at);
        }
        Self { lane: message.lane, outcome, change, due_at: message.due_at, claimed_at, sent_at }
    }
}

/// Writes a batch of settled tries. Ends only when the store has answered for each of them.
pub(crate) async fn apply(engine: &Engine, line: &Line, batch: Vec<Settled>) -> Vec<Done> {
    let mut done = Vec::with_capacity(batch.len());
    let mut pending = batch;
    while !pending.is_empty() {
        let answers = insist(engine, pending.iter().map(|settled| settled.change.clone()).collect()).await;
        let mut again = Vec::new();
        for (settled, answer) in pending.into_iter().zip(answers) {
            match written(engine, line, settled, answer).await {
                Ok(finished) => done.push(finished),
                Err(unsettled) => again.push(*unsettled),
            }
        }
        pending = again;
    }
    done
}

/// What follows from the store's answer: the event, or another look at a message that changed meanwhile.
async fn written(
    engine: &Engine,
    line: &Line,
    settled: Settled,
    answer: Applied,
) -> Result<Done, Box<Settled>> {
    let change = &settled.change;
    let done = || Done { lane: settled.lane, id: change.message.id.clone() };
    match answer {
        Applied::AlreadyMine if planted::is(Bug::OwnAnswerTakenForSuperseded) => {
            late(engine, &settled).await;
            Ok(done())
        }
        Applied::Applied | Applied::AlreadyMine => {
            engine.observer.observe(&change.event);
            engine.observer.tried(&change.message, &settled.outcome);
            line.transport(settled.lane).settled(&change.message, &settled.outcome);
            line.inline.tell(&change.message);
            if let Some(letter) = &change.spawn {
                engine.observer.observe(&Event::of(&letter.message, Kind::Accepted, change.event.at));
                engine.wake_for(&letter.message);
            }
            line.wake.for_message(&change.message);
            Ok(done())
        }
        Applied::Superseded(Some(current)) if holds(&current, change) => {
            let Settled { outcome, change, claimed_at, sent_at, .. } = settled;
            let came = Came { outcome, sent_at, written: change.content.map(Arc::unwrap_or_clone) };
            Err(Box::new(Settled::new(engine, line, &current, came, claimed_at)))
        }
        Applied::Superseded(_) => {
            line.inline.give_up(&change.message.id);
            line.transport(settled.lane).settled(&change.message, &settled.outcome);
            late(engine, &settled).await;
            Ok(done())
        }
    }
}

/// Whether the message, though changed, is still under the claim that the change settles.
fn holds(current: &Message, change: &Change) -> bool {
    matches!(&current.state, State::Claimed(lease) if Some(lease.claim) == change.settles)
}

/// Keeps word of a result that came after somebody else had decided.
async fn late(engine: &Engine, settled: &Settled) {
    let Settled { outcome, change, .. } = settled;
    engine.observer.observe(&Event { kind: Kind::AttemptLate, ..change.event.clone() });
    engine.observer.tried(&change.message, outcome);
    let (verdict, failure) = match outcome {
        Outcome::Deferred { .. } | Outcome::Skipped { .. } | Outcome::HandedOff => return,
        Outcome::Failed(failure) | Outcome::Refused(failure) => (Verdict::Late, Some(failure.clone())),
        Outcome::Delivered { .. } | Outcome::Partial(_) | Outcome::Lost { .. } => (Verdict::Late, None),
    };
    let record = AttemptRecord {
        generation: change.message.generation,
        attempt: change.message.attempts.max(1),
        verdict,
        at: change.event.at,
        due_at: Some(settled.due_at),
        claimed_at: settled.claimed_at,
        sent_at: settled.sent_at,
        instance: Some(engine.instance),
        failure,
    };
    if let Err(error) = engine.store.note(change.message.id.clone(), record).await {
        engine.observer.store_failed("noting a late result", &error);
    }
}

/// Asks the store until it answers. Results are never dropped: their leases keep others away meanwhile, and the
/// fence keeps us from overwriting them if they don't.
pub(crate) async fn insist(engine: &Engine, changes: Vec<Change>) -> Vec<Applied> {
    let mut wait = RETRY_FIRST;
    loop {
        match engine.store.apply(changes.clone()).await {
            Ok(answers) => return answers,
            Err(error) => {
                engine.observer.store_failed("writing the results of attempts", &error);
                if !error.is_passing() && changes.len() > 1 {
                    return one_by_one(engine, changes).await;
                }
            }
        }
        engine.clock.sleep(wait).await;
        wait = (wait * 2).min(RETRY_MAX);
    }
}

/// A batch that the store can't take may hold one change that it can't take: the others must not wait for it.
async fn one_by_one(engine: &Engine, changes: Vec<Change>) -> Vec<Applied> {
    let mut answers = Vec::with_capacity(changes.len());
    for change in changes {
        let answer: Result<Vec<Applied>, StoreError> = engine.store.apply(vec![change.clone()]).await;
        answers.push(match answer {
            Ok(mut one) => one.pop().unwrap_or(Applied::Superseded(None)),
            Err(_) => Box::pin(insist(engine, vec![change])).await.pop().unwrap_or(Applied::Superseded(None)),
        });
    }
    answers
}
