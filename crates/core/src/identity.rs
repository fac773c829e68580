//! The keys of what intakes bring: what makes two inputs the same message.
//!
//! A key that leaves out where an input came from takes two messages for one, and the second is lost.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::content::Content;
use crate::message::Name;
use crate::planted::{self, Bug};

/// The key of a failed message that goes back to its queue. Ids are unique within their queue at best.
///
/// Neither `:` nor `%` of a queue's name stays as it is, so that no two pairs have the same key.
pub fn of_queue(queue: &str, message_id: &str) -> Arc<str> {
    if planted::is(Bug::IntakeKeyWithoutQueue) {
        return message_id.into();
    }
    let mut key = String::with_capacity(queue.len() + 1 + message_id.len());
    for c in queue.chars() {
        match c {
            '%' => key.push_str("%25"),
            ':' => key.push_str("%3A"),
            _ => key.push(c),
        }
    }
    key.push(':');
    key.push_str(message_id);
    key.into()
}

/// The key of an input that has none of its own: which intake read it, and where in its source it stands, such as
/// `redis/failures/notifications@1700000000000-0`. Names of intakes have no `/`.
///
/// Two servers number their entries without knowing of each other, so the place alone says too little.
pub fn of_place(kind: &str, intake: &str, place: &str) -> Arc<str> {
    if planted::is(Bug::IntakeKeyWithoutSource) {
        return format!("{kind}/{place}").into();
    }
    format!("{kind}/{intake}/{place}").into()
}

/// The key of the copy that is kept of an input that nobody takes as the message that it says. It differs from every key
/// that an input has, and other content has another one.
pub fn of_refused(origin: &str, content: &Content, rejects: &Name) -> Arc<str> {
    let mut key = format!("rejected:{origin}:");
    for byte in content.hash(rejects).0 {
        // Writing to a string never fails.
        let _ = write!(key, "{byte:02x}");
    }
    key.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_known_by_its_queue_and_its_id() {
        assert_eq!(&*of_queue("orders", "42"), "orders:42");
        assert_ne!(of_queue("orders", "42"), of_queue("emails", "42"));
        assert_ne!(of_queue("a:b", "c"), of_queue("a", "b:c"));
        assert_ne!(of_queue("a:b", "c"), of_queue("a%3Ab", "c"));
        assert_eq!(&*of_queue("a:b%", "c:d%"), "a%3Ab%25:c:d%");
    }

    #[test]
    fn an_input_is_known_by_its_intake_and_its_place() {
        assert_eq!(&*of_place("redis", "east", "failed@1-0"), "redis/east/failed@1-0");
        assert_ne!(of_place("redis", "east", "failed@1-0"), of_place("redis", "west", "failed@1-0"));
    }

    #[test]
    fn a_refused_copy_has_a_key_of_its_own_for_each_content() {
        let key =
            |bytes: &'static str| of_refused("redis/east/s@1-0", &Content::of_bytes(bytes), &"r".into());
        assert!(key("a").starts_with("rejected:redis/east/s@1-0:"));
        assert_eq!(key("a"), key("a"));
        assert_ne!(key("a"), key("b"));
    }
}
