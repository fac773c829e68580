//! Which messages are e-mails, and what a list shows of one.

use redeliver_core::email::{Email, Mailbox};
use redeliver_core::{Failure, Message, MessageId, Name};
use redeliver_engine::store::{Count, Filter, Store, StoreError};

/// What a list shows of an e-mail.
pub(super) struct Heading {
    /// To whom: the first, and how many more.
    pub(super) to: String,
    /// What it is about.
    pub(super) subject: String,
}

/// The routes that carry e-mails: those whose newest message is one. No config says it, and a route's messages are all
/// of a kind because its transport is.
pub(super) async fn email_routes(
    store: &dyn Store,
    workspace: Option<&Name>,
    counts: &[Count],
) -> Result<Vec<Name>, StoreError> {
    let mut names: Vec<Name> = counts.iter().map(|count| count.route.clone()).collect();
    names.sort();
    names.dedup();
    let mut routes = Vec::new();
    for route in names {
        let filter = Filter {
            workspace: workspace.cloned(),
            route: Some(route.clone()),
            limit: 1,
            ..Filter::default()
        };
        let newest = store.list(filter).await?.pop();
        if let Some(newest) = newest.filter(|newest| !newest.is_dead_letter)
            && email(store, &newest.id).await?.is_some()
        {
            routes.push(route);
        }
    }
    Ok(routes)
}

/// The e-mail that a message carries, if it carries a readable one.
pub(super) async fn email(store: &dyn Store, id: &MessageId) -> Result<Option<Email>, StoreError> {
    let content = store.content(id.clone()).await?;
    Ok(content.and_then(|content| Email::of_content(&content)?.ok()))
}

impl Heading {
    /// The heading of a message that carries this.
    pub(super) fn of(message: &Message, email: Option<&Email>) -> Self {
        let Some(email) = email else {
            let subject = message.key.as_deref().map_or_else(|| "(no e-mail)".to_owned(), visible);
            return Self { to: "—".to_owned(), subject };
        };
        let mut recipients = email.recipients();
        let to = match (recipients.next(), recipients.count()) {
            (None, _) => "(nobody)".to_owned(),
            (Some(first), 0) => written(first),
            (Some(first), more) => format!("{} and {more} more", written(first)),
        };
        let subject = if email.subject.trim().is_empty() { "(no subject)" } else { &email.subject };
        Self { to, subject: visible(subject) }
    }
}

/// An address as people write it.
pub(super) fn written(mailbox: &Mailbox) -> String {
    match &mailbox.name {
        Some(name) => format!("{} <{}>", visible(name), visible(&mailbox.address)),
        None => visible(&mailbox.address),
    }
}

/// An error as the other side said it.
pub(super) fn said(failure: &Failure) -> String {
    visible(&failure.said())
}

/// A text with a mark for each character that can't be seen but changes how others are: controls, and those that turn
/// the direction of reading, by which an address can be made to look like another.
pub(super) fn visible(text: &str) -> String {
    let is_hidden = |c: char| {
        let turns = matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || (c.is_control() && !matches!(c, '\n' | '\t'))
    };
    text.chars().map(|c| if is_hidden(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_the_direction_of_reading_is_seen() {
        assert_eq!(visible("a\u{202e}gpj.exe\u{0}"), "a\u{fffd}gpj.exe\u{fffd}");
        assert_eq!(visible("Grüße, عمر 👩‍🚀\n"), "Grüße, عمر 👩‍🚀\n");
    }

    #[test]
    fn a_code_is_said_once() {
        assert_eq!(said(&Failure::new("451 later").with_code("451")), "451 later");
        assert_eq!(said(&Failure::new("4.3.2 later").with_code("451")), "451 4.3.2 later");
        assert_eq!(said(&Failure::new("later")), "later");
    }
}
