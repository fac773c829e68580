//! Holds what was said, what was answered for, what the store has and what arrived against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::fleet::Fleet;
use super::ledger::Ledger;
use crate::story::peer::Got;

/// What came out. Keys of whatever is wrong, and figures.
pub struct Verdict {
    said: usize,
    answered: usize,
    stored: usize,
    arrived: usize,
    receipts: usize,
    /// Said, and never answered for: it may be there or not.
    unknown: usize,
    /// Answered for, and neither arrived nor in front of an operator.
    lost: Vec<String>,
    /// Arrived, and never said or not in the store.
    ghosts: Vec<String>,
    /// Delivered as the store has it, and never arrived.
    falsely_delivered: Vec<String>,
    /// Still under way.
    stuck: Vec<String>,
    /// Arrived more often than the store knows that it may have.
    unexplained: Vec<String>,
    /// Arrived more than once, and the store knows why.
    explained: usize,
    /// Given up, in front of an operator.
    dead: usize,
}

pub fn judge(fleet: &Fleet, ledger: &Ledger, mails: &[Got]) -> Verdict {
    let (said, answered) = ledger.read();
    let receipts = receipts(mails);
    let messages = fleet.messages();
    let stored: BTreeMap<&str, &Value> =
        messages.iter().filter_map(|message| Some((message["key"].as_str()?, message))).collect();
    assert_eq!(stored.len(), messages.len(), "each key is one message");
    let is = |message: &Value, status: &str| message["status"] == status;
    let in_status = |status: &str| -> BTreeSet<&str> {
        stored.iter().filter(|(_, message)| is(message, status)).map(|(key, _)| *key).collect()
    };
    let (delivered, dead, cancelled) = (in_status("delivered"), in_status("dead"), in_status("cancelled"));
    let has_ended = |key: &&str| [&delivered, &dead, &cancelled].iter().any(|ended| ended.contains(key));
    let count = |key: &str| receipts.get(key).copied().unwrap_or(0);
    let doubts = |key: &str| stored.get(key).and_then(|message| message["possible_duplicates"].as_u64());
    let is_explained = |key: &str| doubts(key).is_some_and(|doubts| doubts as usize >= count(key) - 1);
    let owned = |keys: Vec<&str>| keys.into_iter().map(str::to_owned).collect::<Vec<String>>();
    let doubled: Vec<&str> =
        receipts.iter().filter(|(_, count)| **count > 1).map(|(key, _)| &**key).collect();
    let is_lost = |key: &&str| count(key) == 0 && !dead.contains(key) && !cancelled.contains(key);
    let is_ghost = |key: &&str| !said.contains(*key) || !stored.contains_key(*key);
    Verdict {
        unknown: said.difference(&answered).count(),
        lost: owned(answered.iter().map(String::as_str).filter(is_lost).collect()),
        ghosts: owned(receipts.keys().map(String::as_str).filter(is_ghost).collect()),
        falsely_delivered: owned(delivered.iter().copied().filter(|key| count(key) == 0).collect()),
        stuck: owned(stored.keys().copied().filter(|key| !has_ended(key)).collect()),
        unexplained: owned(doubled.iter().copied().filter(|key| !is_explained(key)).collect()),
        explained: doubled.iter().filter(|key| is_explained(key)).count(),
        dead: dead.len(),
        said: said.len(),
        answered: answered.len(),
        stored: stored.len(),
        arrived: receipts.len(),
        receipts: mails.len(),
    }
}

impl Verdict {
    /// Whether the promise was kept.
    pub fn is_clean(&self) -> bool {
        let wrongs = [&self.lost, &self.ghosts, &self.falsely_delivered, &self.stuck, &self.unexplained];
        wrongs.iter().all(|keys| keys.is_empty()) && self.dead == 0 && self.answered > 0
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { said, answered, stored, arrived, receipts, unknown, explained, dead, .. } = self;
        writeln!(f, "{said} mails said, {answered} answered for, {unknown} unknown, {stored} in the store")?;
        writeln!(f, "{arrived} mails arrived, {receipts} times in all; {dead} dead")?;
        for (name, keys) in [
            ("LOST", &self.lost),
            ("GHOST", &self.ghosts),
            ("FALSE_DELIVERED", &self.falsely_delivered),
            ("STUCK", &self.stuck),
            ("UNEXPLAINED", &self.unexplained),
        ] {
            let some: Vec<&str> = keys.iter().take(5).map(String::as_str).collect();
            writeln!(f, "{name} = {} {}", keys.len(), some.join(" "))?;
        }
        write!(f, "duplicates explained by a recorded loss: {explained}")
    }
}

/// How often each mail arrived, by its subject.
fn receipts(mails: &[Got]) -> BTreeMap<String, usize> {
    let mut receipts = BTreeMap::new();
    for got in mails {
        let text = String::from_utf8_lossy(&got.data);
        let subject = text.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap_or_default();
        *receipts.entry(subject.to_owned()).or_default() += 1;
    }
    receipts
}
