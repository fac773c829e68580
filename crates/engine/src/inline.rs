//! Inline first: takes a message over and has it tried at once, before the caller's eyes. It is stored as claimed, and
//! handed to the route's own work; what the try comes to is written down like any other, and then told to the caller.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redeliver_core::accept::{NewMessage, Taker, admit};
use redeliver_core::change::NewRow;
use redeliver_core::content::ContentSource;
use redeliver_core::outcome::Until;
use redeliver_core::{Content, Message, MessageId, Outcome, State};
use tokio::sync::oneshot;

use crate::apply::{Settled, apply};
use crate::attempt::Came;
use crate::claim::Asked;
use crate::engine::{Engine, Line};
use crate::intake::Accepted;
use crate::store::StoreError;

/// Waits for what the first try of one message comes to.
#[derive(Debug)]
pub struct Waiter(oneshot::Receiver<Message>);

impl Waiter {
    /// The message as it stands after its first try; `None` if this engine ends before that, or somebody else has the
    /// message by now. Giving up waiting changes nothing about the try.
    pub async fn settled(self) -> Option<Message> {
        self.0.await.ok()
    }
}

/// A message that was stored as claimed and is yet to be tried.
pub(crate) struct Taken {
    pub(crate) message: Message,
    pub(crate) content: Content,
    /// When it was claimed.
    pub(crate) asked: Asked,
}

/// The messages of a route that callers wait for.
#[derive(Default)]
pub(crate) struct Inline(Mutex<Desk>);

#[derive(Default)]
struct Desk {
    /// Whether somebody works the route and takes what is put here.
    open: bool,
    taken: VecDeque<Taken>,
    waiters: HashMap<MessageId, oneshot::Sender<Message>>,
}

/// Ends a route's desk when its work ends, in whatever way.
pub(crate) struct Ending<'a>(pub(crate) &'a Inline);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Inline {
    /// Somebody begins to work the route.
    pub(crate) fn open(&self) {
        self.desk().open = true;
    }

    /// Whether somebody works the route.
    pub(crate) fn is_open(&self) -> bool {
        self.desk().open
    }

    /// Nobody works the route from now on; what was put here and not taken yet is given back.
    pub(crate) fn close(&self) -> VecDeque<Taken> {
        let mut desk = self.desk();
        desk.open = false;
        std::mem::take(&mut desk.taken)
    }

    /// Nobody will try what is still here, nor tell anybody.
    fn end(&self) {
        *self.desk() = Desk::default();
    }

    /// What was put here since the last look.
    pub(crate) fn take(&self) -> VecDeque<Taken> {
        std::mem::take(&mut self.desk().taken)
    }

    /// Tells whoever waits for this message how it stands now.
    pub(crate) fn tell(&self, message: &Message) {
        let waiter = self.desk().waiters.remove(&message.id);
        if let Some(waiter) = waiter {
            // Whoever gave up waiting needs no answer.
            let _ = waiter.send(message.clone());
        }
    }

    fn has_room(&self, count_max: usize) -> bool {
        let desk = self.desk();
        desk.open && desk.waiters.len() < count_max
    }

    fn wait(&self, id: &MessageId) -> Waiter {
        let (sender, receiver) = oneshot::channel();
        self.desk().waiters.insert(id.clone(), sender);
        Waiter(receiver)
    }

    /// Lets whoever waits for this message know that it won't be told.
    pub(crate) fn give_up(&self, id: &MessageId) {
        self.desk().waiters.remove(id);
    }

    /// Puts a message here to be tried; it comes back if nobody will.
    fn put(&self, taken: Taken) -> Result<(), Box<Taken>> {
        let mut desk = self.desk();
        if !desk.open {
            return Err(Box::new(taken));
        }
        desk.taken.push_back(taken);
        Ok(())
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Takes a message over and has it tried at once, where its route is worked here and has room. The answer means
    /// that it is durable, whatever the try comes to; with the waiter, the caller may wait for that. This itself is to
    /// be run to its end: dropped halfway, it may leave a message claimed until its lease is over.
    pub async fn accept_now(&self, new: NewMessage) -> Result<(Accepted, Option<Waiter>), StoreError> {
        let Some(line) = self.lines.get(&new.route) else { return Ok((Accepted::NoRoute, None)) };
        let asked = Asked::now(self);
        let now = asked.at;
        let source = new.source;
        let id = self.clock.message_id(now);
        let mut row = admit(new, &line.route, id.clone(), self.taker(line, asked.uptime), now);
        let is_claimed = matches!(row.message.state, State::Claimed(_));
        if is_claimed && line.transport(row.message.lane).carries_emails() {
            row.message.first_sent_at = Some(now);
        }
        let NewRow { message, content: ContentSource::Given(content), .. } = row.clone() else {
            return Err(StoreError::Unfit("a new message has its own content".to_owned()));
        };
        if !is_claimed {
            return Ok((self.accept_row(row, source, now).await?, None));
        }
        // Before it is stored, because whoever is told to cancel it may be quicker than we are.
        let waiter = line.inline.wait(&id);
        let accepted = self.accept_row(row, source, now).await;
        if !matches!(accepted, Ok(Accepted::New(_))) {
            line.inline.give_up(&id);
            return accepted.map(|accepted| (accepted, None));
        }
        let taken = Taken { message, content: Arc::unwrap_or_clone(content), asked };
        if let Err(taken) = line.inline.put(taken) {
            self.give_back(line, &taken).await;
        }
        line.wake.only();
        accepted.map(|accepted| (accepted, Some(waiter)))
    }

    /// This instance as one who takes a message at once, if it may: what is claimed by one who may be judged dead is
    /// taken away again.
    fn taker(&self, line: &Line, uptime: Duration) -> Option<Taker> {
        let is_fresh = self.life.is_fresh(uptime, line.route.send_timeout);
        (is_fresh && line.inline.has_room(line.route.concurrency_max))
            .then(|| Taker { instance: self.instance, until_at: self.clock.now().plus(line.route.lease) })
    }

    /// Lets a message wait that was taken to be tried at once, and then was not.
    pub(crate) async fn give_back(&self, line: &Line, taken: &Taken) {
        let until = Until::At(self.clock.now());
        let reason: Arc<str> = "the engine was stopping".into();
        let came = Came::of_nothing(Outcome::Deferred { until, reason });
        let settled = Settled::new(self, line, &taken.message, came, Some(taken.asked.at));
        apply(self, line, vec![settled]).await;
    }
}
