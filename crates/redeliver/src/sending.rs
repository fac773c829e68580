//! Hands one message over, and waits for its first try as long as the caller wants.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redeliver_core::accept::NewMessage;
use redeliver_core::status::Status;
use redeliver_core::{Message, MessageId, State, Timestamp};
use redeliver_engine::Engine;
use redeliver_engine::inline::Waiter;
use redeliver_engine::intake::{Accepted, Sink};
use redeliver_engine::store::StoreError;
use tokio::runtime::Handle;

use crate::error::{Error, no_runtime};
use crate::handle::{Outbox, no_route};
use crate::sent::Sent;

/// A message on its way into the outbox: await it. Nothing happens before; from then on it is accepted and tried
/// even if the caller goes away.
#[must_use = "nothing is sent before this is awaited"]
pub struct Sending {
    outbox: Arc<Outbox>,
    message: Result<NewMessage, Error>,
    wait: Option<Duration>,
}

/// How often a message is looked at that is tried without our being told.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

impl Sending {
    pub(crate) fn new(outbox: Arc<Outbox>, message: Result<NewMessage, Error>) -> Self {
        let wait = Some(outbox.wait_max);
        Self { outbox, message, wait }
    }

    /// Answers as soon as the message is stored. It is tried all the same.
    pub fn without_waiting(self) -> Self {
        Self { wait: None, ..self }
    }

    /// Waits no longer than this for the first try. The try goes on when the wait is over.
    pub fn waiting_at_most(self, span: Duration) -> Self {
        Self { wait: Some(span), ..self }
    }

    async fn send(self) -> Result<Sent, Error> {
        let Self { outbox, message, wait } = self;
        let engine = &outbox.engine;
        let message = message?;
        let route = message.route.clone();
        let due_at = message.due_at;
        let runtime = Handle::try_current().map_err(no_runtime)?;
        // On a task of its own: a caller who goes away leaves nothing half done.
        let accepting = {
            let engine = Arc::clone(engine);
            // Where nobody carries, nobody may claim: a worker that failed has left its desk as it was.
            let is_carrying = outbox.is_carrying();
            runtime.spawn(async move {
                match is_carrying {
                    true => engine.accept_now(message).await,
                    false => {
                        let accepted = engine.accept(vec![message]).await?.pop();
                        Ok((accepted.unwrap_or(Accepted::NoRoute), None))
                    }
                }
            })
        };
        let (accepted, waiter) = accepting.await.map_err(|error| Error::WorkerEnded(error.to_string()))??;
        match accepted {
            Accepted::New(id) | Accepted::Reentered(id) => {
                let due_at = due_at.unwrap_or_else(|| engine.clock().now());
                Ok(first_try(&outbox, id, due_at, waiter, wait).await)
            }
            Accepted::Duplicate(id) => {
                let first = look(engine, &id).await;
                let status = first.map(|message| Status::of(&message, engine.clock().now()));
                Ok(Sent::Duplicate { id, status })
            }
            Accepted::Conflict(id) => Err(Error::Conflict(id)),
            Accepted::NoRoute => Err(no_route(&route)),
        }
    }
}

impl IntoFuture for Sending {
    type Output = Result<Sent, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// What the first try came to, as far as it is known when the wait is over. The message is accepted by now, so
/// that nothing here is an error.
async fn first_try(
    outbox: &Outbox,
    id: MessageId,
    due_at: Timestamp,
    waiter: Option<Waiter>,
    wait: Option<Duration>,
) -> Sent {
    let engine = &outbox.engine;
    let queued = Sent::Queued { id: id.clone(), due_at, last_error: None };
    let Some(wait) = wait else {
        return match waiter {
            Some(_) => queued,
            // What came too late may have ended on arrival.
            None => look(engine, &id).await.map_or(queued, Sent::of),
        };
    };
    let settled = async {
        match waiter {
            Some(waiter) => match waiter.settled().await {
                Some(message) => Ok(Some(message)),
                None => engine.store().get(id.clone()).await,
            },
            None => tried(outbox, &id).await,
        }
    };
    let settled = tokio::select! {
        biased;
        settled = settled => Some(settled),
        () = engine.clock().sleep(wait) => None,
    };
    match settled {
        Some(Ok(Some(message))) => Sent::of(message),
        // Every end can be seen for longer than we look away: one that is gone all the same has gone out most likely, on
        // a route that keeps nothing of it, while the store let us wait.
        Some(Ok(None)) => Sent::Delivered { id, receipt: None },
        Some(Err(_)) | None => queued,
    }
}

/// A message that is not tried before our eyes, because the worker has only just been started or has its hands full,
/// once it was tried; at once, if nobody here will try it now. Nothing, if it is gone.
async fn tried(outbox: &Outbox, id: &MessageId) -> Result<Option<Message>, StoreError> {
    loop {
        let Some(message) = outbox.engine.store().get(id.clone()).await? else { return Ok(None) };
        let is_next = match &message.state {
            State::Waiting { parked_for: None } => message.due_at <= outbox.engine.clock().now(),
            State::Claimed(_) => true,
            State::Waiting { parked_for: Some(_) }
            | State::HandedOff { .. }
            | State::Delivered { .. }
            | State::Dead { .. }
            | State::Cancelled { .. } => false,
        };
        let was_tried = message.attempts > message.attempts_before;
        if !is_next || was_tried || !outbox.is_carrying() {
            return Ok(Some(message));
        }
        outbox.engine.clock().sleep(LOOK_INTERVAL).await;
    }
}

async fn look(engine: &Engine, id: &MessageId) -> Option<Message> {
    engine.store().get(id.clone()).await.ok().flatten()
}
