//! One try at carrying a message, and its name.

use std::fmt;
use std::str::FromStr;

use crate::message::{InstanceId, Message, MessageId};
use crate::outcome::Failure;
use crate::time::Timestamp;

/// The name of one try: `message.generation.attempt`. A carrying after a loss keeps it, so that the receiver
/// can recognise what it already has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttemptId {
    /// Which message.
    pub message: MessageId,
    /// How often an operator had started it over.
    pub generation: u32,
    /// The number of the try; the first is 1.
    pub attempt: u32,
}

impl AttemptId {
    /// The header by which it travels.
    pub const HEADER: &str = "x-redeliver-attempt-id";

    /// The name of the try that the message has before it, or is in the middle of.
    pub fn of(message: &Message) -> Self {
        Self { message: message.id.clone(), generation: message.generation, attempt: message.next_attempt() }
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.message, self.generation, self.attempt)
    }
}

impl FromStr for AttemptId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("not an attempt id (message.generation.attempt): {text:?}");
        let mut parts = text.rsplitn(3, '.');
        let attempt = parts.next().and_then(|n| n.parse().ok()).ok_or_else(bad)?;
        let generation = parts.next().and_then(|n| n.parse().ok()).ok_or_else(bad)?;
        let message = parts.next().and_then(|id| id.parse().ok()).ok_or_else(bad)?;
        Ok(Self { message, generation, attempt })
    }
}

/// What history keeps of a try that did not simply succeed.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptRecord {
    /// How often an operator had started the message over.
    pub generation: u32,
    /// The number of the try.
    pub attempt: u32,
    /// What it came to.
    pub verdict: Verdict,
    /// When that was known.
    pub at: Timestamp,
    /// When the message was due for it, if that is known.
    pub due_at: Option<Timestamp>,
    /// When it was claimed for it, if that is known.
    pub claimed_at: Option<Timestamp>,
    /// When it was sent; `None` if nothing was, or nobody knows.
    pub sent_at: Option<Timestamp>,
    /// Who tried, if it is known.
    pub instance: Option<InstanceId>,
    /// What went wrong.
    pub failure: Option<Failure>,
}

/// Tries of a history that are told, at most: the last ones.
const TOLD_MAX: usize = 20;

/// What a message has been through, for whoever gets word of its death: a JSON array of its last tries, oldest first.
pub fn history(records: &[AttemptRecord]) -> String {
    let told = |record: &AttemptRecord| {
        let mut told = serde_json::json!({
            "attempt": record.attempt,
            "outcome": record.verdict.name(),
            "at": record.at.to_string(),
        });
        if let Some(failure) = &record.failure {
            told["error"] = failure.text.as_ref().into();
            if let Some(code) = &failure.code {
                told["code"] = code.as_ref().into();
            }
        }
        told
    };
    let over = records.len().saturating_sub(TOLD_MAX);
    serde_json::Value::Array(records[over..].iter().map(told).collect()).to_string()
}

/// What a recorded try came to.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Verdict {
    /// Worth another try.
    Failed = 0,
    /// Never worth another.
    Refused = 1,
    /// Some recipients took it.
    Partial = 2,
    /// Nobody knows.
    Lost = 3,
    /// A result that came after somebody else had decided; it changed nothing.
    Late = 4,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 5] = [Self::Failed, Self::Refused, Self::Partial, Self::Lost, Self::Late];

    /// The verdict's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Partial => "partial",
            Self::Lost => "lost",
            Self::Late => "late",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_tells_the_last_tries_in_order() {
        let record = |attempt: u32| AttemptRecord {
            generation: 0,
            attempt,
            verdict: Verdict::Failed,
            at: Timestamp::from_ms(i64::from(attempt) * 1_000),
            due_at: None,
            claimed_at: None,
            sent_at: None,
            instance: None,
            failure: Some(Failure::new("later").with_code("451")),
        };
        assert_eq!(history(&[]), "[]");
        let told: serde_json::Value =
            serde_json::from_str(&history(&(1..=30).map(record).collect::<Vec<_>>())).unwrap();
        assert_eq!(told.as_array().unwrap().len(), TOLD_MAX);
        assert_eq!((&told[0]["attempt"], &told[19]["attempt"]), (&11.into(), &30.into()));
        assert_eq!((&told[0]["error"], &told[0]["code"]), (&"later".into(), &"451".into()));
        assert_eq!(told[0]["outcome"], "failed");
    }

    #[test]
    fn attempt_ids_are_written_and_read() {
        let own = AttemptId { message: MessageId::own(9), generation: 2, attempt: 3 };
        assert_eq!(own.to_string().parse(), Ok(own.clone()));
        let row = AttemptId { message: MessageId::Row("log:a.b".into()), generation: 0, attempt: 1 };
        assert_eq!(row.to_string(), "log:a.b.0.1");
        assert_eq!(row.to_string().parse(), Ok(row));
        for text in ["", "1.2", "x.1.2", "log:1.x.2", "log:1.1.-2"] {
            assert!(text.parse::<AttemptId>().is_err(), "{text}");
        }
    }
}
