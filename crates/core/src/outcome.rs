//! What a try came to. A failed delivery is data, not an error.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::gate::GateKey;
use crate::message::RecipientVerdict;
use crate::time::Timestamp;

/// What an attempt came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The other side took it.
    Delivered {
        /// What the other side said.
        receipt: Option<Arc<str>>,
    },
    /// The broker confirmed, an outside worker will report.
    HandedOff,
    /// Some recipients took it: what became of those that were tried.
    Partial(Vec<RecipientVerdict>),
    /// Worth another try.
    Failed(Failure),
    /// Never worth another.
    Refused(Failure),
    /// Nothing was sent, and no try is counted.
    Deferred {
        /// Until when.
        until: Until,
        /// Why.
        reason: Arc<str>,
    },
    /// A gate says: never mind.
    Skipped {
        /// Why.
        reason: Arc<str>,
    },
    /// Nobody knows: the carrier never confirmed.
    Lost {
        /// What was seen last.
        reason: Arc<str>,
    },
}

impl Outcome {
    /// The words for all outcomes.
    pub const NAMES: [&str; 8] =
        ["delivered", "handed_off", "partial", "failed", "refused", "deferred", "skipped", "lost"];

    /// The outcome's word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Delivered { .. } => "delivered",
            Self::HandedOff => "handed_off",
            Self::Partial(_) => "partial",
            Self::Failed(_) => "failed",
            Self::Refused(_) => "refused",
            Self::Deferred { .. } => "deferred",
            Self::Skipped { .. } => "skipped",
            Self::Lost { .. } => "lost",
        }
    }
}

/// Until when a message that could not be sent waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until this time.
    At(Timestamp),
    /// Until this gate opens, whenever that is.
    Opens(GateKey),
}

/// The longest text of an error that is kept.
pub const FAILURE_TEXT_BYTES_MAX: usize = 1_024;

/// What went wrong, in the words of whoever said so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The other side's code, such as `451` or `ECONNRESET`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Arc<str>>,
    /// What was said.
    pub text: Arc<str>,
    /// Whom it speaks against.
    #[serde(default, skip_serializing_if = "Blame::is_message")]
    pub blame: Blame,
    /// How long the other side asked to be left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

/// Whom a failure speaks against.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// This message alone.
    #[default]
    Message,
    /// The destination can't be reached: what its breaker counts.
    Connection,
    /// The destination asks everybody to slow down.
    Throttle,
    /// The destination doesn't accept our login.
    Credential,
}

impl Blame {
    fn is_message(&self) -> bool {
        *self == Self::Message
    }
}

impl Failure {
    /// A failure of the message itself, in words. Long texts are cut.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self { code: None, text: cut(text.as_ref()).into(), blame: Blame::Message, retry_after: None }
    }

    /// The same with the other side's code.
    pub fn with_code(self, code: impl AsRef<str>) -> Self {
        Self { code: Some(cut(code.as_ref()).into()), ..self }
    }

    /// The same, but somebody else's fault.
    pub fn blaming(self, blame: Blame) -> Self {
        Self { blame, ..self }
    }

    /// What the other side said, its code in front where the words don't have it anyway.
    pub fn said(&self) -> String {
        match self.code_in_front() {
            Some(code) => format!("{code} {}", self.text),
            None => self.text.to_string(),
        }
    }

    /// The other side's code, where its words don't have it.
    pub(crate) fn code_in_front(&self) -> Option<&str> {
        let code = self.code.as_deref()?;
        (!self.text.split_whitespace().any(|word| word == code)).then_some(code)
    }

    /// The same, with a wait that the other side asked for.
    pub fn with_retry_after(self, span: Duration) -> Self {
        Self { retry_after: Some(span), ..self }
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(FAILURE_TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_said_once() {
        for (text, said) in [
            ("try later", "451 try later"),
            ("451 4.3.0 try later", "451 4.3.0 try later"),
            ("RCPT: 451 4.3.0 try later", "RCPT: 451 4.3.0 try later"),
            ("queue 4511 is full", "451 queue 4511 is full"),
        ] {
            assert_eq!(Failure::new(text).with_code("451").said(), said);
        }
        assert_eq!(Failure::new("try later").said(), "try later");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = "é".repeat(FAILURE_TEXT_BYTES_MAX);
        let failure = Failure::new(format!("x{text}"));
        assert_eq!(failure.text.len(), FAILURE_TEXT_BYTES_MAX - 1);
    }

    #[test]
    fn a_failure_is_written_briefly_and_read_back() {
        let plain = Failure::new("try later").with_code("451");
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"code":"451","text":"try later"}"#);
        let full = plain.blaming(Blame::Throttle).with_retry_after(Duration::from_secs(30));
        let text = serde_json::to_string(&full).unwrap();
        assert_eq!(serde_json::from_str::<Failure>(&text).unwrap(), full);
    }
}
