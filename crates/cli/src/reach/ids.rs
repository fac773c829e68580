//! Ids as people give them: as much of the beginning as tells a message from the others.

use std::fmt;
use std::str::FromStr;

use redeliver_core::MessageId;
use redeliver_server::api::messages::cursor;
use serde_json::Value;

use super::{Reach, Request};

/// Digits that a beginning must have.
const DIGITS_MIN: usize = 4;

/// Digits of a whole id.
const DIGITS: usize = 32;

/// Characters of the shortest short id: the millisecond at which a message was accepted.
const SHORT_LEN_MIN: usize = 13;

/// What somebody gave as an id is the beginning of none, or of several.
#[derive(Debug)]
pub struct NoSuchId(String);

impl fmt::Display for NoSuchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoSuchId {}

/// The id that somebody means.
pub async fn find_id(reach: &Reach, text: &str) -> anyhow::Result<String> {
    if MessageId::from_str(text).is_ok() {
        return Ok(text.to_owned());
    }
    let digits = digits(text);
    let is_beginning = digits.len() >= DIGITS_MIN
        && digits.len() < DIGITS
        && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    // Ids are listed from the greatest down, so those with this beginning come right behind the greatest such.
    let greatest = MessageId::from_str(&format!("{digits:f<DIGITS$}")).ok().filter(|_| is_beginning);
    let Some(greatest) = greatest else {
        let why = format!("{text:?} is no message id, nor the first {DIGITS_MIN} or more digits of one");
        return Err(NoSuchId(why).into());
    };
    let after = cursor::behind(&greatest);
    let params = [("with_dismissed", "true"), ("limit", "3"), ("after", after.as_str())];
    let listed = reach.json(Request::get("/v1/messages").with(&params)).await?;
    let ids = listed["items"].as_array().into_iter().flatten().filter_map(|item| item["id"].as_str());
    let found: Vec<&str> = ids.filter(|id| self::digits(id).starts_with(&digits)).collect();
    match found.as_slice() {
        [] => Err(NoSuchId(format!("no message's id begins with {text}")).into()),
        [id] => Ok((*id).to_owned()),
        several => {
            let such = several.join(" and ");
            Err(NoSuchId(format!("several messages' ids begin with {text}, such as {such}: say more of it"))
                .into())
        }
    }
}

/// The path of a call about one message.
pub fn path_of(id: &str, call: &str) -> String {
    format!("/v1/messages/{}{call}", super::segment(id))
}

/// As much of each id as tells it from the others here.
pub fn short_ids(ids: &[&str]) -> Vec<String> {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    let shorten = |id: &str| {
        if !matches!(MessageId::from_str(id), Ok(MessageId::Own(_))) {
            return id.to_owned();
        }
        let place = sorted.partition_point(|other| *other < id);
        let beside = [place.checked_sub(1), Some(place + 1)].into_iter().flatten();
        let shared = beside.filter_map(|at| sorted.get(at)).map(|other| shared_len(id, other)).max();
        let len = shared.map_or(SHORT_LEN_MIN, |len| (len + 1).max(SHORT_LEN_MIN));
        id.get(..len).unwrap_or(id).trim_end_matches('-').to_owned()
    };
    ids.iter().map(|id| shorten(id)).collect()
}

fn shared_len(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

fn digits(text: &str) -> String {
    text.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect()
}

/// The id of a message that the API told.
pub fn id_of(value: &Value) -> &str {
    value["id"].as_str().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ids_are_as_long_as_it_takes() {
        let ids = [
            "0193a5b2-7c1d-7aaa-8000-000000000001",
            "0193a5b2-7c1e-7aaa-8000-000000000001",
            "0193a5b2-7c1e-7aab-8000-000000000001",
            "log:17",
        ];
        assert_eq!(short_ids(&ids), ["0193a5b2-7c1d", "0193a5b2-7c1e-7aaa", "0193a5b2-7c1e-7aab", "log:17"]);
        assert_eq!(short_ids(&ids[..1]), ["0193a5b2-7c1d"]);
        assert!(short_ids(&[]).is_empty());
    }
}
