//! Finds out what a nack means. A broker gives no reason with it: a queue that is full sends one, and so does a broker that has
//! lost a queue with the message in its hands.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redeliver_engine::clock::Clock;

use super::amqp::wire::Short;
use super::amqp::{Closed, Connection};
use super::declare;

/// How long a queue has to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// Queues that are remembered.
const QUEUES_MAX: usize = 1_000;

/// How a queue stands from which a nack came.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It holds messages: it is full, and has not taken this one.
    Full,
    /// It does not answer: a quorum queue without a leader, which was never given the message.
    Silent,
    /// It holds nothing, so that it was not full. It may have died with the message, or been emptied since.
    Empty,
    /// It is not there, or the broker can't be asked: the node that had it is gone, and may have the message.
    Gone,
}

/// Asks queues how they stand.
pub(super) struct Inquiry {
    clock: Arc<dyn Clock>,
    /// What each queue said last, and the uptime when it was asked.
    said: tokio::sync::Mutex<HashMap<String, (Duration, Standing)>>,
}

impl Inquiry {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, said: tokio::sync::Mutex::default() }
    }

    /// How a queue stands after a nack that has just come. Nacks that come while a queue is asked share the next answer.
    pub(super) async fn standing(&self, connection: &Connection, queue: &Short) -> Standing {
        let nacked_at = self.clock.uptime();
        let mut said = self.said.lock().await;
        if let Some((_, standing)) = said.get(queue.as_str()).filter(|(asked_at, _)| *asked_at >= nacked_at) {
            return *standing;
        }
        let asked_at = self.clock.uptime();
        let asked = tokio::time::timeout(ANSWER_WITHIN, declare::depth(connection, queue));
        let standing = understood(asked.await.ok());
        if said.len() >= QUEUES_MAX {
            said.clear();
        }
        said.insert(queue.as_str().to_owned(), (asked_at, standing));
        standing
    }
}

/// What a queue's answer means, if there is one.
fn understood(answer: Option<Result<Option<u32>, Closed>>) -> Standing {
    match answer {
        None => Standing::Silent,
        Some(Ok(Some(0))) => Standing::Empty,
        Some(Ok(Some(_))) => Standing::Full,
        Some(Ok(None) | Err(_)) => Standing::Gone,
    }
}
