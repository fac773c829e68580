//! Sends that nobody can answer for: the bytes have left, and the answer is late, cut off, or lost in a panic.
//!
//! Such a send may have arrived, so it is lost, and never failed; each uses up the budget of unconfirmed sends.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Content, DeadReason, Message, Name, Outcome, Policy, Route, State, Timestamp};
use redeliver_engine::clock::WallClock;
use redeliver_engine::emit::Silence;
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::store::Store;
use redeliver_engine::transport::{Envelope, Transport};
use redeliver_engine::{Engine, Line, Settings};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::carry::{BRIEFLY, carry, carry_within, claimed};
use super::{Manner, TransportRig};
use crate::make::*;

/// Unconfirmed sends that a message may have here.
const UNCONFIRMED_MAX: u32 = 2;
/// How long the engine waits for an answer: a slow machine can connect again within it, and it ends long before a late answer.
const SEND_TIMEOUT: Duration = Duration::from_secs(3);
/// How often the story looks whether a message has come to its end.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The peer has the message, and says so after everybody has given up.
pub async fn an_answer_after_the_time_out_is_lost(rig: &dyn TransportRig) {
    connect(rig).await;
    rig.behave(Manner::AnswersLate).await;
    assert_unknown(carry_within(rig, &claimed(1), BRIEFLY).await);
}

/// Each answer belongs to one send: a yes that comes late is no answer to what was sent after it.
pub async fn a_late_answer_is_not_taken_for_the_next(rig: &dyn TransportRig) {
    connect(rig).await;
    rig.behave(Manner::AnswersLate).await;
    assert_unknown(carry_within(rig, &claimed(1), BRIEFLY).await);
    rig.behave(Manner::Refuses).await;
    let next = carry_within(rig, &claimed(2), crate::RULE_WITHIN / 2).await;
    let is_taken = matches!(next, Some(Outcome::Delivered { .. } | Outcome::HandedOff));
    assert!(!is_taken, "the peer refused it, but: {next:?}");
}

/// The peer has read the message when the connection ends.
pub async fn a_connection_cut_after_the_bytes_left_is_lost(rig: &dyn TransportRig) {
    connect(rig).await;
    rig.behave(Manner::CutsOff).await;
    assert_unknown(carry_within(rig, &claimed(1), BRIEFLY * 4).await);
}

/// Under an engine, a peer that always answers late gets a message as often as the budget allows.
pub async fn late_answers_use_up_the_budget_of_unconfirmed_sends(rig: &dyn TransportRig) {
    connect(rig).await;
    rig.behave(Manner::AnswersLate).await;
    assert_uncertain(&under_engine(rig, Ending::Returns).await);
}

/// The same with a peer that always cuts the connection off.
pub async fn cut_connections_use_up_the_budget_of_unconfirmed_sends(rig: &dyn TransportRig) {
    connect(rig).await;
    rig.behave(Manner::CutsOff).await;
    assert_uncertain(&under_engine(rig, Ending::Returns).await);
}

/// The peer took it, and then the transport panicked before it could say so.
pub async fn a_panic_after_the_bytes_left_is_lost(rig: &dyn TransportRig) {
    connect(rig).await;
    let before = rig.seen().await.len();
    assert_uncertain(&under_engine(rig, Ending::Panics).await);
    let sends = rig.seen().await.len() - before;
    assert_eq!(sends, UNCONFIRMED_MAX as usize, "sends of a message whose transport always panics");
}

/// Sends one message that arrives, so that the others find an open connection.
async fn connect(rig: &dyn TransportRig) {
    rig.behave(Manner::Takes).await;
    let outcome = carry(rig, &claimed(9)).await;
    assert!(matches!(outcome, Outcome::Delivered { .. } | Outcome::HandedOff), "{outcome:?}");
}

/// No outcome in time is a loss too: the engine gives it up.
fn assert_unknown(outcome: Option<Outcome>) {
    let is_unknown = matches!(outcome, None | Some(Outcome::Lost { .. }));
    assert!(is_unknown, "it may have arrived, but: {outcome:?}");
}

/// One failed try would have ended it otherwise.
fn assert_uncertain(message: &Message) {
    assert!(matches!(message.state, State::Dead { reason: DeadReason::Uncertain, .. }), "{message:?}");
    let counts = (message.attempts, message.unconfirmed, message.possible_duplicates);
    assert_eq!(counts, (0, UNCONFIRMED_MAX, UNCONFIRMED_MAX), "attempts, unconfirmed, possible duplicates");
}

/// How a send ends, once the transport under test has an outcome.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Ending {
    Returns,
    Panics,
}

/// A send that the engine wants, and where its outcome goes.
struct Asked {
    message: Message,
    content: Content,
    within: Duration,
    outcome: oneshot::Sender<Outcome>,
}

/// The transport under test as an engine has it, which wants to own it.
struct Forwarding {
    asked: mpsc::UnboundedSender<Asked>,
    ending: Ending,
}

#[async_trait]
impl Transport for Forwarding {
    async fn carry(&self, envelope: &Envelope<'_>, within: Duration) -> Outcome {
        let (outcome, answer) = oneshot::channel();
        let (message, content) = (envelope.message.clone(), envelope.content.clone());
        let _ = self.asked.send(Asked { message, content, within, outcome });
        let outcome = answer.await.expect("the rule serves every send");
        assert!(self.ending == Ending::Returns, "a bug in this transport, as the rule wants it");
        outcome
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "peer".into()
    }
}

/// Has a real engine send one message until it is dead. A failed try would end it at once.
async fn under_engine(rig: &dyn TransportRig, ending: Ending) -> Message {
    let policy = Policy {
        backoff: Backoff::Table(vec![Duration::from_millis(10)]),
        jitter: Jitter::None,
        max_attempts: 1,
        expires_after: None,
    };
    // A send that ends by itself gets all the time that it takes.
    let send_timeout = if ending == Ending::Panics { Duration::from_secs(20) } else { SEND_TIMEOUT };
    let route =
        Route { send_timeout, unconfirmed_max: UNCONFIRMED_MAX, ..Route::new("mail", "under test", policy) };
    let (asked, mut sends) = mpsc::unbounded_channel::<Asked>();
    let transport: Arc<dyn Transport> = Arc::new(Forwarding { asked, ending });
    let line = Line::new(route, &HashMap::from([("under test".into(), transport)]), Vec::new());
    let store = Arc::new(MemoryStore::new());
    let past = Timestamp::from_ms(1_000);
    let due = Message { due_at: past, scheduled_for: past, created_at: past, ..message(1) };
    store.insert(vec![row_with(due, rig.content(1))]).await.expect("a store in memory");
    let clock = WallClock::new(Timestamp::default());
    let lines = vec![line.expect("its transport is there")];
    let engine = Engine::new(store.clone(), clock, Arc::new(Silence), Settings::default(), lines);
    let (_stopper, stop) = stop_pair();
    let mut parts = JoinSet::new();
    Arc::new(engine).parts(stop).await.into_iter().for_each(|part| drop(parts.spawn(part)));
    let serving = async {
        while let Some(mut asked) = sends.recv().await {
            let target = asked.content.target.clone();
            let envelope =
                Envelope { message: &asked.message, content: &asked.content, target: target.as_deref() };
            let given_up = asked.outcome.closed();
            let outcome = tokio::select! {
                outcome = rig.transport().carry(&envelope, asked.within) => outcome,
                () = given_up => continue,
            };
            // If it was given up in the meantime, nobody asks.
            let _ = asked.outcome.send(outcome);
        }
    };
    let ended = async {
        loop {
            let message = store.get(id(1)).await.expect("a store in memory").expect("it was inserted");
            if matches!(message.state, State::Dead { .. } | State::Delivered { .. }) {
                return message;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    };
    tokio::select! {
        message = ended => message,
        () = serving => panic!("the engine has ended"),
    }
}
