//! A call on its way to a thread that owns a connection, and its answer on the way back.

use redeliver_engine::store::StoreError;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::errors::Fault;

/// What is to be done with a connection. It may be done more than once; the last result counts.
pub trait Work<T>: Fn(&Connection) -> Result<T, Fault> + Send + 'static {}

impl<T, F: Fn(&Connection) -> Result<T, Fault> + Send + 'static> Work<T> for F {}

/// A call of any kind.
pub(super) trait Call: Send {
    /// How many rows it is about.
    fn rows(&self) -> usize;

    /// Does it, and keeps the result to itself.
    fn execute(&mut self, db: &Connection) -> Result<(), Fault>;

    /// Gives the caller the result, or tells why there is none.
    fn answer(self: Box<Self>, done: Result<(), StoreError>);
}

/// What came of work, and the work itself with all that it had in its hands.
type Answer<T, W> = (Result<T, StoreError>, W);

/// A call, and where its answer is awaited.
pub(super) fn call<T: Send + 'static, W: Work<T>>(
    rows: usize,
    work: W,
) -> (Box<dyn Call>, oneshot::Receiver<Answer<T, W>>) {
    let (reply, answer) = oneshot::channel();
    (Box::new(Pending { rows, work, result: None, reply }), answer)
}

struct Pending<T, W> {
    rows: usize,
    work: W,
    result: Option<T>,
    reply: oneshot::Sender<Answer<T, W>>,
}

impl<T: Send, W: Work<T>> Call for Pending<T, W> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn execute(&mut self, db: &Connection) -> Result<(), Fault> {
        self.result = Some((self.work)(db)?);
        Ok(())
    }

    fn answer(self: Box<Self>, done: Result<(), StoreError>) {
        let Self { result, reply, work, .. } = *self;
        let answer = done.and_then(|()| result.ok_or_else(stopped));
        // A caller that went away doesn't hear it. What the work had in its hands is for whoever brought it to clear away: others
        // wait for this thread.
        let _ = reply.send((answer, work));
    }
}

/// Gives all callers their results, or tells them all why there are none.
pub(super) fn answer_all(calls: Vec<Box<dyn Call>>, done: &Result<(), StoreError>) {
    calls.into_iter().for_each(|call| call.answer(done.clone()));
}

/// Does work in one transaction, all of it or nothing.
pub(super) fn in_transaction<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    let result = work(&transaction)?;
    transaction.commit()?;
    Ok(result)
}

/// What a caller is told whose call nobody takes any more.
pub(super) fn stopped() -> StoreError {
    StoreError::Unavailable("it is closed".to_owned())
}
