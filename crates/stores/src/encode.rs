//! How the parts of a message that have no column of their own are written: as JSON, or as bytes where they are bytes.
//!
//! What is empty is not written at all, so that the ordinary message costs no parsing.

use std::collections::BTreeMap;

use bytes::Bytes;
use redeliver_core::Failure;
use redeliver_core::campaign::{CampaignState, MailOf};
use redeliver_core::message::{Fate, RecipientVerdict};
use redeliver_engine::campaigns::Planning;
use serde::{Deserialize, Serialize};

/// Something stored that can't be read back.
#[derive(Debug, thiserror::Error)]
#[error("cannot read stored {what}: {why}")]
pub struct Unreadable {
    what: &'static str,
    why: String,
}

/// Writes a failure.
pub(crate) fn failure_to_text(failure: &Failure) -> Result<String, Unreadable> {
    to_text("failure", failure)
}

/// Reads a failure.
pub(crate) fn failure_from_text(text: &str) -> Result<Failure, Unreadable> {
    from_text("failure", text)
}

/// Writes attributes; nothing if there are none.
pub(crate) fn attributes_to_text(
    attributes: &BTreeMap<String, String>,
) -> Result<Option<String>, Unreadable> {
    if attributes.is_empty() {
        return Ok(None);
    }
    if !attributes.iter().all(|(name, value)| is_plain(name) && is_plain(value)) {
        return to_text("attributes", attributes).map(Some);
    }
    let length: usize = attributes.iter().map(|(name, value)| name.len() + value.len() + 6).sum();
    let mut text = String::with_capacity(length + 1);
    for (name, value) in attributes {
        text.push_str(if text.is_empty() { "{\"" } else { ",\"" });
        for part in [name, "\":\"", value, "\""] {
            text.push_str(part);
        }
    }
    text.push('}');
    Ok(Some(text))
}

/// Whether JSON has a text as it is. Looks at all of it, which is quicker than to stop where it isn't.
fn is_plain(text: &str) -> bool {
    !text.bytes().fold(false, |odd, byte| odd | (byte < b' ') | (byte == b'"') | (byte == b'\\'))
}

/// Reads attributes.
pub(crate) fn attributes_from_text(text: &str) -> Result<BTreeMap<String, String>, Unreadable> {
    from_text("attributes", text)
}

/// The campaign of which a message with these attributes is a mail, if it is one.
pub(crate) fn campaign_of(attributes: Option<&str>) -> Option<String> {
    let attributes = attributes_from_text(attributes?).ok()?;
    MailOf::of_attributes(&attributes).map(|of| of.campaign)
}

/// Writes verdicts on recipients; nothing if there are none.
pub(crate) fn recipients_to_text(recipients: &[RecipientVerdict]) -> Result<Option<String>, Unreadable> {
    if recipients.is_empty() {
        return Ok(None);
    }
    let stored: Vec<(u32, StoredFate)> =
        recipients.iter().map(|verdict| (verdict.index, StoredFate::from(&verdict.fate))).collect();
    to_text("recipients", &stored).map(Some)
}

/// Reads verdicts on recipients.
pub(crate) fn recipients_from_text(text: &str) -> Result<Vec<RecipientVerdict>, Unreadable> {
    let stored: Vec<(u32, StoredFate)> = from_text("recipients", text)?;
    Ok(stored.into_iter().map(|(index, fate)| RecipientVerdict { index, fate: fate.into() }).collect())
}

/// Writes headers, whose values may be any bytes; nothing if there are none. Each name and each value follows its
/// length in four bytes.
pub(crate) fn headers_to_bytes(headers: &[(String, Bytes)]) -> Result<Option<Vec<u8>>, Unreadable> {
    if headers.is_empty() {
        return Ok(None);
    }
    let mut written = Vec::new();
    for part in headers.iter().flat_map(|(name, value)| [name.as_bytes(), value]) {
        let length = u32::try_from(part.len()).map_err(|error| unreadable("headers", error))?;
        written.extend_from_slice(&length.to_le_bytes());
        written.extend_from_slice(part);
    }
    Ok(Some(written))
}

/// Reads headers.
pub(crate) fn headers_from_bytes(mut bytes: &[u8]) -> Result<Vec<(String, Bytes)>, Unreadable> {
    let mut part = || -> Option<Vec<u8>> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        bytes = rest;
        Some(part.to_vec())
    };
    let mut headers = Vec::new();
    while let Some(name) = part() {
        let name = String::from_utf8(name).map_err(|error| unreadable("headers", error))?;
        let value = part().ok_or_else(|| unreadable("headers", "the last one has no value"))?;
        headers.push((name, value.into()));
    }
    if bytes.is_empty() { Ok(headers) } else { Err(unreadable("headers", "the last one is cut short")) }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredFate {
    Delivered,
    Failed(Failure),
    Refused(Failure),
}

impl From<&Fate> for StoredFate {
    fn from(fate: &Fate) -> Self {
        match fate {
            Fate::Delivered => Self::Delivered,
            Fate::Failed(failure) => Self::Failed(failure.clone()),
            Fate::Refused(failure) => Self::Refused(failure.clone()),
        }
    }
}

impl From<StoredFate> for Fate {
    fn from(stored: StoredFate) -> Self {
        match stored {
            StoredFate::Delivered => Self::Delivered,
            StoredFate::Failed(failure) => Self::Failed(failure),
            StoredFate::Refused(failure) => Self::Refused(failure),
        }
    }
}

/// Reads a campaign's state.
pub(crate) fn campaign_state(text: &str) -> Result<CampaignState, Unreadable> {
    CampaignState::from_name(text)
        .ok_or_else(|| unreadable("campaign", format!("no state is called {text:?}")))
}

/// Reads how often planning was interrupted before it began.
pub(crate) fn planning(interruptions: i64) -> Planning {
    Planning::Begun { interruptions: u32::try_from(interruptions).unwrap_or(u32::MAX) }
}

/// Writes anything as JSON.
pub(crate) fn to_text(what: &'static str, value: &impl Serialize) -> Result<String, Unreadable> {
    serde_json::to_string(value).map_err(|error| unreadable(what, error))
}

/// Reads anything from JSON.
pub(crate) fn from_text<'a, T: Deserialize<'a>>(what: &'static str, text: &'a str) -> Result<T, Unreadable> {
    serde_json::from_str(text).map_err(|error| unreadable(what, error))
}

fn unreadable(what: &'static str, why: impl ToString) -> Unreadable {
    Unreadable { what, why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_byte_for_byte_and_in_order() {
        let headers: Vec<(String, Bytes)> = vec![
            ("b".to_owned(), Bytes::from_static(&[0, 255, 10])),
            ("a".to_owned(), Bytes::new()),
            ("b".to_owned(), Bytes::from_static(b"again")),
        ];
        let written = headers_to_bytes(&headers).unwrap().unwrap();
        assert_eq!(headers_from_bytes(&written).unwrap(), headers);
        assert_eq!(headers_to_bytes(&[]).unwrap(), None);
    }

    #[test]
    fn attributes_are_the_same_json_whoever_writes_them() {
        let texts = ["", "plain", "ümlaut \u{7f}", "a \"word\"", "back\\slash", "two\nlines"];
        for (name, value) in texts.iter().flat_map(|name| texts.map(|value| (*name, value))) {
            for more in [&[][..], &[("other", "one")]] {
                let all = more.iter().copied().chain([(name, value)]);
                let attributes: BTreeMap<String, String> =
                    all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                let written = attributes_to_text(&attributes).unwrap().unwrap();
                assert_eq!(written, serde_json::to_string(&attributes).unwrap());
                assert_eq!(attributes_from_text(&written).unwrap(), attributes);
            }
        }
    }

    #[test]
    fn headers_that_are_cut_short_are_said_to_be() {
        let written = headers_to_bytes(&[("name".to_owned(), "value".into())]).unwrap().unwrap();
        for length in 1..written.len() {
            assert!(headers_from_bytes(&written[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn verdicts_on_recipients_survive() {
        let recipients: Vec<RecipientVerdict> = [
            Fate::Delivered,
            Fate::Failed(Failure::new("later").with_code("451")),
            Fate::Refused(Failure::new("never")),
        ]
        .into_iter()
        .zip(3..)
        .map(|(fate, index)| RecipientVerdict { index, fate })
        .collect();
        let written = recipients_to_text(&recipients).unwrap().unwrap();
        assert_eq!(recipients_from_text(&written).unwrap(), recipients);
    }
}
