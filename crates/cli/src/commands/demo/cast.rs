//! The ten messages of the demo, each with a story of its own.

use std::time::Duration;

use redeliver_core::accept::NewMessage;
use redeliver_core::{Content, Timestamp};

/// The attribute that holds what a message is called on the screen.
pub(super) const NAME: &str = "name";

/// One message, and the route that makes its story.
struct Part {
    name: &'static str,
    route: &'static str,
    due_in: Option<Duration>,
    expires_in: Option<Duration>,
}

const fn part(name: &'static str, route: &'static str) -> Part {
    Part { name, route, due_in: None, expires_in: None }
}

const CAST: [Part; 10] = [
    part("welcome", "steady"),
    part("invoice", "busy-once"),
    part("password", "busy-twice"),
    part("newsletter", "closed"),
    part("stock-update", "broken"),
    part("payment", "silent-once"),
    part("contract", "never-twice"),
    part("night-note", "not-yet"),
    Part { expires_in: Some(Duration::from_secs(3)), ..part("flash-sale", "broken") },
    Part { due_in: Some(Duration::from_secs(4)), ..part("reminder", "steady") },
];

/// The messages as they are accepted now.
pub(super) fn messages(now: Timestamp) -> Vec<NewMessage> {
    let message = |part: &Part| {
        let mut content = Content::of_bytes(format!("the {} of the demo", part.name));
        content.attributes.insert(NAME.to_owned(), part.name.to_owned());
        NewMessage {
            due_at: part.due_in.map(|span| now.plus(span)),
            expires_at: part.expires_in.map(|span| now.plus(span)),
            ..NewMessage::new(part.route, content)
        }
    };
    CAST.iter().map(message).collect()
}

/// Where a message stands in the cast.
pub(super) fn place(name: &str) -> usize {
    CAST.iter().position(|part| part.name == name).unwrap_or(CAST.len())
}
