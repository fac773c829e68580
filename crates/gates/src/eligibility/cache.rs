//! What was heard a moment ago, so that many messages to one device are one question.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redeliver_core::Timestamp;

use super::answer::Standing;

/// Answers that are remembered, at most.
const ENTRIES_MAX: usize = 10_000;

/// What was heard; an error is why nothing was.
pub(super) type Heard = Result<Standing, String>;

/// What was heard for each path, and until when it counts.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<HashMap<String, (Timestamp, Heard)>>);

impl Cache {
    /// What still counts for a path, and until when.
    pub(super) fn get(&self, path: &str, now: Timestamp) -> Option<(Timestamp, Heard)> {
        self.entries().get(path).filter(|(until, _)| *until > now).cloned()
    }

    /// Remembers what was heard.
    pub(super) fn put(&self, path: String, heard: Heard, now: Timestamp, span: Duration) {
        let mut entries = self.entries();
        if entries.len() >= ENTRIES_MAX {
            entries.retain(|_, (until, _)| *until > now);
        }
        // What can't be remembered is asked again.
        if entries.len() < ENTRIES_MAX {
            entries.insert(path, (now.plus(span), heard));
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, (Timestamp, Heard)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64) -> Timestamp {
        Timestamp::from_ms(s * 1_000)
    }

    #[test]
    fn an_answer_counts_for_its_time_and_no_longer() {
        let cache = Cache::default();
        cache.put("/a".to_owned(), Ok(Standing::Active), at(0), Duration::from_secs(5));
        assert_eq!(cache.get("/a", at(4)), Some((at(5), Ok(Standing::Active))));
        assert_eq!(cache.get("/a", at(5)), None);
        assert_eq!(cache.get("/b", at(0)), None);
    }

    #[test]
    fn it_does_not_grow_without_end() {
        let cache = Cache::default();
        for n in 0..ENTRIES_MAX + 10 {
            cache.put(n.to_string(), Ok(Standing::Active), at(0), Duration::from_secs(5));
        }
        assert_eq!(cache.entries().len(), ENTRIES_MAX);
        cache.put("later".to_owned(), Ok(Standing::Inactive), at(9), Duration::from_secs(5));
        assert_eq!(cache.entries().len(), 1);
    }
}
