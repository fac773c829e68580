//! What can go wrong between an application and its outbox. A mail server that is down is none of these.

use redeliver_core::MessageId;
use redeliver_core::email::EmailProblem;
use redeliver_engine::store::StoreError;
use redeliver_stores::OpenError;

/// Why something did not happen. The variants say what can be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Correct the program, or what it was configured with.
    #[error("{0}")]
    Misused(String),
    /// Correct the mail. It was not accepted.
    #[error("the mail cannot be sent as it is: {}", show(.0))]
    Unsendable(Vec<EmailProblem>),
    /// Use another key. Nothing new was accepted.
    #[error("the key was used before, for another content: message {0} has it")]
    Conflict(MessageId),
    /// The store could not be opened; the error says why, and what to do.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database could not be opened; the error says why, and what to do.
    #[error(transparent)]
    OpenPostgres(#[from] redeliver_stores::postgres::OpenError),
    /// Say it again with the same key: nobody knows whether it was accepted.
    #[error("not known to be accepted: {0}")]
    Store(#[from] StoreError),
    /// Open the store again. What was accepted is safe, but nothing is carried out of it any more.
    #[error("the worker ended: {0}")]
    WorkerEnded(String),
}

fn show(problems: &[EmailProblem]) -> String {
    let all: Vec<String> =
        problems.iter().map(|found| format!("{} {}", found.field, found.problem)).collect();
    all.join("; ")
}

/// There is nothing to run on.
pub(crate) fn no_runtime(error: impl std::fmt::Display) -> Error {
    Error::Misused(format!("this must be called within a tokio runtime: {error}"))
}
