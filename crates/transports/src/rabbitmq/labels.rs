//! Metrics by queue, under the names that the broker's retry scheduler is known by. Queues are named by others, so no more
//! than so many have a label of their own.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Queues that have a label of their own; all others share one.
pub const QUEUE_LABELS_MAX: usize = 200;
const OTHER: &str = "other";

static KNOWN: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// So many messages were taken over, to go back to this queue later.
pub(super) fn scheduled(queue: &str, count: u64) {
    metrics::counter!("retries_scheduled_total", "queue" => label(queue)).increment(count);
}

/// A message was published to this queue, or could not be.
pub(super) fn executed(queue: &str, status: &'static str) {
    metrics::counter!("retries_executed_total", "queue" => label(queue), "status" => status).increment(1);
}

/// A message that was meant for this queue has gone to manual review.
pub(super) fn exhausted(queue: &str) {
    metrics::counter!("retries_exhausted_total", "queue" => label(queue)).increment(1);
}

fn label(queue: &str) -> String {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    choose(known.get_or_insert_default(), queue).to_owned()
}

fn choose<'a>(known: &mut HashSet<String>, queue: &'a str) -> &'a str {
    if known.contains(queue) {
        return queue;
    }
    if known.len() >= QUEUE_LABELS_MAX {
        return OTHER;
    }
    known.insert(queue.to_owned());
    queue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_names_many_queues_does_not_make_many_labels() {
        let mut known = HashSet::new();
        let names: Vec<String> = (0..QUEUE_LABELS_MAX * 2).map(|n| format!("q{n}")).collect();
        let labels: HashSet<&str> = names.iter().map(|name| choose(&mut known, name)).collect();
        assert_eq!(labels.len(), QUEUE_LABELS_MAX + 1);
        assert_eq!(choose(&mut known, "q0"), "q0");
        assert_eq!(choose(&mut known, "q300"), OTHER);
    }
}
