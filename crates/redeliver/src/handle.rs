//! An open outbox: hands messages over, looks at them, and starts what carries them.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redeliver_core::accept::NewMessage;
use redeliver_core::email::EmailProblem;
use redeliver_core::explain::Explanation;
use redeliver_core::status::Status;
use redeliver_core::{Message, MessageId, Name};
use redeliver_engine::Engine;
use redeliver_engine::stop::{Stop, stop_pair};
use redeliver_stores::{Durability, Postgres, Role};
use rusqlite::Transaction;
use tokio::runtime::Handle;

use crate::builder::RedeliverBuilder;
use crate::error::{Error, no_runtime};
use crate::outgoing::Outgoing;
use crate::sending::Sending;
use crate::sent::Kept;
use crate::store::StoreUrl;
use crate::transaction;
use crate::worker::Worker;

/// An open outbox. Clones are the same one; the store is closed when the last of them and its worker are gone.
#[derive(Clone)]
pub struct Redeliver {
    outbox: Arc<Outbox>,
}

pub(crate) struct Outbox {
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: StoreUrl,
    /// The store itself, where it is a database.
    pub(crate) postgres: Option<Arc<Postgres>>,
    pub(crate) role: Role,
    pub(crate) durability: Durability,
    pub(crate) wait_max: Duration,
    /// The routes on which a mail must say itself who writes it.
    pub(crate) senderless: Vec<Name>,
    /// There once it was started; says whether it was stopped since.
    pub(crate) started: OnceLock<Stop>,
}

impl Redeliver {
    /// An outbox in this store: `sqlite:PATH` or `postgres://…`, which may well be the application's own database, or
    /// `memory:` for tests.
    pub fn builder(store: impl Into<String>) -> RedeliverBuilder {
        RedeliverBuilder::new(store.into())
    }

    pub(crate) fn new(outbox: Outbox) -> Self {
        Self { outbox: Arc::new(outbox) }
    }

    /// Starts carrying messages out, on tasks of the runtime that this is called in. Once for each open outbox.
    pub fn start(&self) -> Result<Worker, Error> {
        if self.outbox.role == Role::Client {
            return Err(Error::Misused(
                "this outbox was opened to accept only; the process that carries messages out of it is another"
                    .to_owned(),
            ));
        }
        let runtime = Handle::try_current().map_err(no_runtime)?;
        let (stopper, stop) = stop_pair();
        if self.outbox.started.set(stop.clone()).is_err() {
            return Err(Error::Misused(
                "this outbox was started before; open it again to start it again".to_owned(),
            ));
        }
        Ok(Worker::start(&runtime, Arc::clone(&self.outbox.engine), stopper, stop))
    }

    /// Stores a message and has it tried at once; what can't be delivered now is delivered later. Await it: an error
    /// means that it was not stored, and never that the other side is down.
    pub fn send_or_queue(&self, outgoing: impl Into<Outgoing>) -> Sending {
        let message = self.ready(outgoing.into());
        Sending::new(Arc::clone(&self.outbox), message)
    }

    /// Stores a message inside a transaction of the application's own, on its own connection to the same file. If it
    /// commits, the message is accepted, and goes out within a moment; if it is rolled back, there never was one.
    ///
    /// The connection's `synchronous` must be `FULL`, unless the outbox was opened with [`Durability::Relaxed`].
    pub fn accept_in(
        &self,
        transaction: &Transaction<'_>,
        outgoing: impl Into<Outgoing>,
    ) -> Result<Kept, Error> {
        if !matches!(self.outbox.store, StoreUrl::Sqlite(_)) {
            return Err(Error::Misused(
                "this store shares no transaction of SQLite's; open sqlite:PATH, or see accept_in_postgres"
                    .to_owned(),
            ));
        }
        let message = self.ready(outgoing.into())?;
        transaction::accept_in(&self.outbox.engine, transaction, message, self.outbox.durability)
    }

    /// Stores a message inside a transaction of the application's own, on its own connection to the same PostgreSQL
    /// database. If it commits, the message is accepted; if it is rolled back, there never was one.
    ///
    /// Engines find it within `Settings::poll_interval`, and at once if [`Redeliver::committed`] is called after the
    /// commit. The connection's `synchronous_commit` must not be `off`, unless the outbox was opened with
    /// [`Durability::Relaxed`].
    pub async fn accept_in_postgres(
        &self,
        transaction: &tokio_postgres::Transaction<'_>,
        outgoing: impl Into<Outgoing>,
    ) -> Result<Kept, Error> {
        if self.outbox.postgres.is_none() {
            return Err(Error::Misused(
                "this store shares no transaction of PostgreSQL's; open postgres://…, or see accept_in"
                    .to_owned(),
            ));
        }
        let message = self.ready(outgoing.into())?;
        transaction::accept_in_postgres(&self.outbox.engine, transaction, message, self.outbox.durability)
            .await
    }

    /// Says that a transaction with [`Redeliver::accept_in_postgres`] in it has committed: everybody looks at once.
    pub fn committed(&self) {
        if let Some(postgres) = &self.outbox.postgres {
            postgres.ring();
        }
    }

    /// One message; `None` if there is none, or no longer.
    pub async fn message(&self, id: &MessageId) -> Result<Option<Message>, Error> {
        Ok(self.outbox.engine.store().get(id.clone()).await?)
    }

    /// How a message stands, in a person's words.
    pub async fn status(&self, id: &MessageId) -> Result<Option<Status>, Error> {
        let message = self.message(id).await?;
        Ok(message.map(|message| Status::of(&message, self.outbox.engine.clock().now())))
    }

    /// Why a message is where it is, what it waits for, and when it can move.
    pub async fn explain(&self, id: &MessageId) -> Result<Option<Explanation>, Error> {
        Ok(self.outbox.engine.explain(id).await?)
    }

    /// The engine itself, for whatever has no shorter word here: listing, retrying, cancelling, pausing.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.outbox.engine
    }

    /// The message, if nothing speaks against accepting it.
    fn ready(&self, outgoing: Outgoing) -> Result<NewMessage, Error> {
        let nobody_writes = outgoing.email().is_some_and(|email| email.from.is_none());
        let message = outgoing.into_message()?;
        if nobody_writes && self.outbox.senderless.contains(&message.route) {
            return Err(Error::Unsendable(vec![EmailProblem {
                field: "from".to_owned(),
                problem: "is missing, and the outbox was opened without one".to_owned(),
            }]));
        }
        Ok(message)
    }
}

impl Outbox {
    /// Whether somebody here carries messages out.
    pub(crate) fn is_carrying(&self) -> bool {
        self.started.get().is_some_and(|stop| !stop.is_stopped())
    }
}

impl fmt::Debug for Redeliver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outbox { engine, store, role, .. } = &*self.outbox;
        let routes: Vec<&str> = engine.routes().map(|route| &*route.name).collect();
        f.debug_struct("Redeliver")
            .field("store", store)
            .field("role", role)
            .field("routes", &routes)
            .finish_non_exhaustive()
    }
}

/// The message names a route that this outbox doesn't have.
pub(crate) fn no_route(name: &str) -> Error {
    Error::Misused(format!("there is no route {name}; add it when the outbox is opened"))
}
