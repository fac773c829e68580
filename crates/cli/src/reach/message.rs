//! A message as the API tells it.

use redeliver_core::Timestamp;
use serde::Deserialize;

/// A message as the API tells it. What is unknown to this version is left out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Message {
    /// Which message.
    pub id: String,
    /// Whose.
    pub workspace: String,
    /// The way it travels.
    pub route: String,
    /// Its priority.
    pub priority: String,
    /// What its sender calls it.
    pub key: Option<String>,
    /// Where it stands.
    pub status: String,
    /// When it is, or was, to go out next.
    pub due_at: Timestamp,
    /// When it was first to go out.
    pub scheduled_for: Timestamp,
    /// When it was accepted.
    pub created_at: Option<Timestamp>,
    /// When sending it stops making sense.
    pub expires_at: Option<Timestamp>,
    /// Tries that got a verdict.
    pub attempts: u32,
    /// Tries in all.
    pub max_attempts: Option<u32>,
    /// Leases that ran out on it.
    pub losses: u32,
    /// Carryings that may have arrived without anybody's knowing.
    pub possible_duplicates: u32,
    /// What went wrong last.
    pub last_error: Option<Failure>,
    /// Why it was given up.
    pub dead_reason: Option<String>,
    /// Why it was cancelled.
    pub cancelled_for: Option<String>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When a person put it away.
    pub dismissed_at: Option<Timestamp>,
    /// What the other side said when it took it.
    pub receipt: Option<String>,
    /// The gate that it is parked for.
    pub parked_for: Option<String>,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Failure {
    /// The other side's code.
    pub code: Option<String>,
    /// What was said.
    pub text: String,
}

impl Message {
    /// Tries made, and tries in all where that is known.
    pub fn tries(&self) -> String {
        match self.max_attempts {
            Some(max) => format!("{}/{max}", self.attempts),
            None => self.attempts.to_string(),
        }
    }

    /// Why it is not where it should be, in a few words.
    pub fn trouble(&self) -> String {
        let reasons =
            [self.dead_reason.as_deref(), self.cancelled_for.as_deref(), self.parked_for.as_deref()];
        let said = self.last_error.as_ref().filter(|_| self.status != "delivered").map(Failure::show);
        let words: Vec<String> = reasons.into_iter().flatten().map(str::to_owned).chain(said).collect();
        words.join(": ")
    }
}

impl Failure {
    /// The code and the words, the code only once.
    pub fn show(&self) -> String {
        match &self.code {
            Some(code) if !self.text.contains(code.as_str()) => format!("{code} {}", self.text),
            _ => self.text.clone(),
        }
    }
}
