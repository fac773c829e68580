//! A connection as one call has it: what is said on it keeps to the limits of the database's time.
//!
//! Where the connection has brought its limits along, nothing is said about them. Behind a pooler that takes no settings
//! they are said in every transaction, and are gone with it: whoever gets the same server's end next finds his own.

use std::ops::Deref;

use tokio_postgres::{Client, Transaction};

use super::errors::Fault;

/// A connection for one call.
pub(super) struct Line<'a> {
    client: &'a mut Client,
    /// What each transaction has to say first, if anything.
    limits: Option<&'a str>,
}

impl<'a> Line<'a> {
    pub(super) fn new(client: &'a mut Client, limits: Option<&'a str>) -> Self {
        Self { client, limits }
    }

    /// Begins a transaction, which is undone unless it commits.
    pub(super) async fn begin(&mut self) -> Result<Transaction<'_>, Fault> {
        let transaction = self.client.transaction().await?;
        if let Some(limits) = self.limits {
            transaction.batch_execute(limits).await?;
        }
        Ok(transaction)
    }

    /// For what needs no transaction of its own: one statement, or questions.
    pub(super) async fn lone(&mut self) -> Result<Lone<'_>, Fault> {
        match self.limits {
            None => Ok(Lone::Bare(self.client)),
            Some(_) => Ok(Lone::Limited(self.begin().await?)),
        }
    }
}

/// What needs no transaction, in one all the same if that is how its limits are said.
pub(super) enum Lone<'a> {
    Bare(&'a Client),
    Limited(Transaction<'a>),
}

impl Lone<'_> {
    /// What was said is done.
    pub(super) async fn finish(self) -> Result<(), Fault> {
        match self {
            Self::Bare(_) => Ok(()),
            Self::Limited(transaction) => Ok(transaction.commit().await?),
        }
    }
}

impl Deref for Lone<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        match self {
            Self::Bare(client) => client,
            Self::Limited(transaction) => transaction.client(),
        }
    }
}
