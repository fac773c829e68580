//! What each mail of a campaign is called: `{prospectId}:{sequenceId}:{stepNumber}`. Said twice, it is one mail.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest id of a prospect or a sequence.
pub const ID_BYTES_MAX: usize = 200;

/// The name of one step's mail to one prospect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StepKey {
    prospect: String,
    sequence: String,
    step: u32,
}

/// A text that is no such name, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadKey(String);

impl StepKey {
    /// The name of a step's mail to a prospect.
    pub fn new(prospect: &str, sequence: &str, step: u32) -> Result<Self, BadKey> {
        check_id(prospect).map_err(|wrong| BadKey(format!("the prospect's id {wrong}")))?;
        check_id(sequence).map_err(|wrong| BadKey(format!("the sequence's id {wrong}")))?;
        if step == 0 {
            return Err(BadKey("steps are counted from 1".to_owned()));
        }
        Ok(Self { prospect: prospect.to_owned(), sequence: sequence.to_owned(), step })
    }

    /// The prospect's id.
    pub fn prospect(&self) -> &str {
        &self.prospect
    }

    /// The sequence's id.
    pub fn sequence(&self) -> &str {
        &self.sequence
    }

    /// The step's number, from 1.
    pub fn step(&self) -> u32 {
        self.step
    }
}

/// What is wrong with an id that becomes part of a key.
pub(super) fn check_id(id: &str) -> Result<(), String> {
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        return Err(format!("must have from 1 to {ID_BYTES_MAX} bytes, not {}", id.len()));
    }
    match id.chars().find(|c| *c == ':' || c.is_whitespace() || c.is_control()) {
        Some(':') => Err("must have no colon: it is what keeps a key's parts apart".to_owned()),
        Some(other) => Err(format!("must have no blanks and no control characters, not {other:?}")),
        None => Ok(()),
    }
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.prospect, self.sequence, self.step)
    }
}

impl FromStr for StepKey {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        let bad = || BadKey(format!("not a key such as prospect:sequence:1: {text:?}"));
        let mut parts = text.split(':');
        let (Some(prospect), Some(sequence), Some(step), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(bad());
        };
        let number: u32 = step.parse().map_err(|_| bad())?;
        // One mail has one name: 1, never 01 or +1.
        if number.to_string() != step {
            return Err(bad());
        }
        Self::new(prospect, sequence, number)
    }
}

impl TryFrom<String> for StepKey {
    type Error = BadKey;

    fn try_from(text: String) -> Result<Self, BadKey> {
        text.parse()
    }
}

impl From<StepKey> for String {
    fn from(key: StepKey) -> Self {
        key.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_is_written_and_read() {
        let key = StepKey::new("p-1", "seq-1", 2).unwrap();
        assert_eq!(key.to_string(), "p-1:seq-1:2");
        assert_eq!("p-1:seq-1:2".parse(), Ok(key.clone()));
        assert_eq!((key.prospect(), key.sequence(), key.step()), ("p-1", "seq-1", 2));
        assert_eq!(serde_json::to_string(&key).unwrap(), r#""p-1:seq-1:2""#);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in [
            "",
            "a",
            "a:b",
            "a:b:",
            "a:b:0",
            "a:b:-1",
            "a:b:01",
            "a:b:+1",
            "a:b:1:2",
            ":b:1",
            "a::1",
            "a:b:x",
            "a b:c:1",
            "a\n:b:1",
            "a:b:4294967296",
            "a:b: 1",
            "a:b:1.0",
        ] {
            assert!(text.parse::<StepKey>().is_err(), "{text:?}");
        }
        assert!(StepKey::new("a:b", "c", 1).unwrap_err().to_string().contains("no colon"));
        assert!(StepKey::new(&"x".repeat(201), "c", 1).is_err());
        assert!(StepKey::new("a", "", 1).is_err());
        assert!(StepKey::new("a", "c", 0).is_err());
    }

    proptest! {
        #[test]
        fn two_mails_never_have_one_name(a in "\\PC{1,9}", b in "\\PC{1,9}", c in "\\PC{1,9}", n in 1u32..99, m in 1u32..99) {
            let (Ok(one), Ok(other)) = (StepKey::new(&a, &b, n), StepKey::new(&c, &b, m)) else { return Ok(()) };
            prop_assert_eq!(one.to_string() == other.to_string(), one == other);
            prop_assert_eq!(one.to_string().parse(), Ok(one));
        }

        #[test]
        fn whatever_is_read_is_what_would_be_written(text in "\\PC{0,12}(:\\PC{0,5}){0,4}") {
            if let Ok(key) = text.parse::<StepKey>() {
                prop_assert_eq!(key.to_string(), text);
            }
        }
    }
}
