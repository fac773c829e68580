//! The port to whatever feeds messages in.

use async_trait::async_trait;
use redeliver_core::MessageId;
use redeliver_core::accept::NewMessage;
use redeliver_core::report::Report;

use crate::stop::Stop;
use crate::store::StoreError;

/// Feeds messages in, at least once each. It acknowledges to its source only what the sink has answered for, sets
/// aside what can't be understood, and never spins on it.
#[async_trait]
pub trait Intake: Send + Sync + 'static {
    /// Feeds until told to stop. Returns only then, or when its source is gone for good.
    async fn run(&self, sink: &dyn Sink, stop: Stop) -> Result<(), IntakeError>;
}

/// Takes what an intake brings. An answer means that everything in the batch is durable.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Takes a batch, with an answer for each in order.
    async fn accept(&self, batch: Vec<NewMessage>) -> Result<Vec<Accepted>, StoreError>;

    /// Takes the words of outside workers about what was handed off to them, with an answer for each in order. Saying
    /// them again changes nothing. One that can't be kept fails none of the others.
    async fn report(&self, batch: Vec<Report>) -> Result<Vec<Told>, StoreError>;
}

/// What became of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It decided the try.
    Applied,
    /// It is about another try, or came too late: it is kept in the history and changes nothing.
    Ignored,
    /// There is no such message, or none that could be reported on.
    NoMessage,
    /// The store can't keep what it says, and why.
    Unfit(String),
}

/// What became of something new.
#[derive(Clone, Debug, PartialEq)]
pub enum Accepted {
    /// It is kept, and will reach an end.
    New(MessageId),
    /// It was said before: this is the first one.
    Duplicate(MessageId),
    /// It ended before and came back.
    Reentered(MessageId),
    /// Its key is known for another content.
    Conflict(MessageId),
    /// There is no such route.
    NoRoute,
}

impl Accepted {
    /// Why what was to be kept as dead on this route is not kept, if it isn't.
    pub fn why_dropped(&self, rejects: &str) -> Option<String> {
        match self {
            Self::New(_) | Self::Reentered(_) | Self::Duplicate(_) => None,
            Self::NoRoute => Some(format!("there is no route {rejects} for what nobody can read")),
            Self::Conflict(id) => {
                Some(format!("what nobody can read has the key of a message that goes another way, {id}"))
            }
        }
    }
}

/// Why an intake ended.
#[derive(Debug, thiserror::Error)]
#[error("the intake {name} ended: {why}")]
pub struct IntakeError {
    /// Which intake.
    pub name: String,
    /// Why.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_said_to_be_and_why() {
        let why = |answer: Accepted| answer.why_dropped("unreadable");
        let id = MessageId::own(1);
        assert_eq!(why(Accepted::New(id.clone())), None);
        assert_eq!(why(Accepted::Duplicate(id.clone())), None);
        assert_eq!(why(Accepted::NoRoute).unwrap(), "there is no route unreadable for what nobody can read");
        assert!(why(Accepted::Conflict(id.clone())).unwrap().ends_with(&format!("another way, {id}")));
    }
}
