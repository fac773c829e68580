//! A report as it comes by a broker: an object of JSON, or an entry whose fields are texts.

use super::Report;
use crate::attempt::AttemptId;
use crate::fields::{Field, read_fields};
use crate::message::MessageId;
use crate::outcome::{Failure, Outcome};
use crate::time::parse_span;

/// The fields of a report.
const FIELDS: [&str; 6] = ["id", "attempt_id", "outcome", "error", "error_code", "retry_after"];

impl Report {
    /// Reads an object of JSON; an error says why nobody can make a report of it. Fields that it doesn't know are left
    /// alone: whoever reports may have readers of its own.
    pub fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let fields = read_fields(bytes, &FIELDS)?;
        let text = |name: &str| match fields.get(name) {
            None | Some(Field::Null) => Ok(None),
            Some(Field::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("{name} is no text")),
        };
        Self::read(text)
    }

    /// Reads fields that are texts, by their names: `id`, `attempt_id`, `outcome`, `error`, `error_code`, `retry_after`.
    pub fn from_fields<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Result<Self, String> {
        Self::read(|name| Ok(field(name).map(str::to_owned)))
    }

    fn read(text: impl Fn(&str) -> Result<Option<String>, String>) -> Result<Self, String> {
        let said = |name: &str| Ok::<_, String>(text(name)?.filter(|text| !text.is_empty()));
        let attempt = said("attempt_id")?.map(|text| text.parse::<AttemptId>()).transpose()?;
        let id = said("id")?.map(|text| text.parse::<MessageId>()).transpose();
        let id = id.map_err(|wrong| format!("id is {wrong}"))?;
        let message = match (id, &attempt) {
            (Some(id), Some(attempt)) if attempt.message != id => {
                return Err("attempt_id is of another message than id".to_owned());
            }
            (Some(id), _) => id,
            (None, Some(attempt)) => attempt.message.clone(),
            (None, None) => return Err("it has neither id nor attempt_id".to_owned()),
        };
        let word = said("outcome")?.ok_or("it has no outcome")?;
        let retry_after = said("retry_after")?.map(|text| parse_span(&text)).transpose();
        let retry_after = retry_after.map_err(|wrong| format!("retry_after is wrong: {wrong}"))?;
        let failure = Self::failure(said("error")?.as_deref(), said("error_code")?.as_deref());
        let failure = Failure { retry_after, ..failure };
        let outcome = match word.as_str() {
            "delivered" => Outcome::Delivered { receipt: None },
            "failed" => Outcome::Failed(failure),
            "refused" => Outcome::Refused(failure),
            _ => return Err("outcome is delivered, failed or refused".to_owned()),
        };
        Ok(Self { message, attempt, outcome, workspace: None })
    }

    /// What went wrong, as whoever reports says it.
    pub fn failure(error: Option<&str>, code: Option<&str>) -> Failure {
        let failure = Failure::new(error.unwrap_or("reported without an error"));
        match code {
            Some(code) => failure.with_code(code),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn id() -> MessageId {
        MessageId::own(7)
    }

    #[test]
    fn a_report_is_read_from_json_and_from_fields_alike() {
        let json = format!(
            r#"{{"id": "{0}", "attempt_id": "{0}.0.2", "outcome": "failed", "error": "busy", "error_code": "EBUSY",
                "retry_after": "30s", "device": "d-1"}}"#,
            id()
        );
        let read = Report::from_json(json.as_bytes()).unwrap();
        let failure = Failure::new("busy").with_code("EBUSY").with_retry_after(Duration::from_secs(30));
        assert_eq!(read.outcome, Outcome::Failed(failure));
        assert_eq!(read.attempt, Some(AttemptId { message: id(), generation: 0, attempt: 2 }));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(Report::from_fields(|name| value[name].as_str()), Ok(read));
    }

    #[test]
    fn an_attempts_name_says_which_message_it_is_about() {
        let json = format!(r#"{{"attempt_id": "{}.0.1", "outcome": "delivered", "error": null}}"#, id());
        let read = Report::from_json(json.as_bytes()).unwrap();
        assert_eq!((read.message, read.outcome), (id(), Outcome::Delivered { receipt: None }));
    }

    #[test]
    fn what_is_no_report_says_why() {
        let other = MessageId::own(8);
        let id = id();
        for (json, why) in [
            ("{".to_owned(), "no JSON beyond line 1"),
            ("[]".to_owned(), "no object"),
            ("{}".to_owned(), "neither id nor attempt_id"),
            (r#"{"id": "x:", "outcome": "delivered"}"#.to_owned(), "id is"),
            (format!(r#"{{"id": "{id}"}}"#), "no outcome"),
            (format!(r#"{{"id": "{id}", "outcome": "lost"}}"#), "outcome is"),
            (format!(r#"{{"id": "{id}", "outcome": 1}}"#), "outcome is no text"),
            (format!(r#"{{"id": "{id}", "outcome": "failed", "retry_after": "soon"}}"#), "retry_after"),
            (
                format!(r#"{{"id": "{id}", "attempt_id": "{other}.0.1", "outcome": "failed"}}"#),
                "another message",
            ),
            (format!(r#"{{"id": "{id}", "attempt_id": "1", "outcome": "failed"}}"#), "not an attempt id"),
        ] {
            let wrong = Report::from_json(json.as_bytes()).unwrap_err();
            assert!(wrong.contains(why), "{json}: {wrong}");
        }
    }
}
