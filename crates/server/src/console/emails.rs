//! What a list shows of an e-mail, and how what others wrote is made visible.

use redeliver_core::email::{Email, Mailbox};
use redeliver_core::{Content, Failure, Message, MessageId};
use redeliver_engine::Engine;
use redeliver_engine::campaign::{CampaignError, Unwritten};
use redeliver_engine::store::StoreError;

/// Characters of what stands for the recipient of something that is no e-mail, at most.
const ATTRIBUTES_CHARS_MAX: usize = 80;

/// What a message carries, as far as people are shown it.
pub(super) enum Carried {
    /// An e-mail.
    Email(Box<Email>),
    /// An e-mail of a campaign that is written when it goes out, as it would be now.
    Unwritten(Box<Unwritten>),
    /// Something else.
    Other,
}

/// What a list shows of a message.
pub(super) struct Heading {
    /// To whom: the first, and how many more.
    pub(super) to: String,
    /// What it is about.
    pub(super) subject: String,
}

impl Carried {
    /// What this content of a message is.
    pub(super) async fn of(
        engine: &Engine,
        message: &Message,
        content: &Content,
    ) -> Result<Self, StoreError> {
        if let Some(Ok(email)) = Email::of_content(content) {
            return Ok(Self::Email(Box::new(email)));
        }
        match engine.unwritten(message, content).await {
            Ok(Some(unwritten)) => Ok(Self::Unwritten(Box::new(unwritten))),
            Err(CampaignError::Store(error)) => Err(error),
            // What can no longer be understood has its page nevertheless.
            Ok(None) | Err(_) => Ok(Self::Other),
        }
    }

    /// The e-mail, as it is or would be now.
    pub(super) fn email(&self) -> Option<&Email> {
        match self {
            Self::Email(email) => Some(email),
            Self::Unwritten(unwritten) => unwritten.written.as_ref().ok(),
            Self::Other => None,
        }
    }
}

/// The heading of a message in a list.
pub(super) async fn heading(engine: &Engine, message: &Message) -> Result<Heading, StoreError> {
    let content = content(engine, &message.id).await?;
    Ok(Heading::of(message, &content, &Carried::of(engine, message, &content).await?))
}

/// What a message carries; nothing if that is gone.
pub(super) async fn content(engine: &Engine, id: &MessageId) -> Result<Content, StoreError> {
    Ok(engine.store().content(id.clone()).await?.unwrap_or_default())
}

impl Heading {
    /// The heading of a message that carries this.
    pub(super) fn of(message: &Message, content: &Content, carried: &Carried) -> Self {
        match (carried.email(), carried) {
            (Some(email), _) => Self::of_email(email),
            (None, Carried::Unwritten(unwritten)) => {
                let subject = format!("Step {} of a campaign (cannot be written)", unwritten.of.step);
                Self { to: visible(&unwritten.to), subject }
            }
            (None, Carried::Email(_) | Carried::Other) => {
                let subject = message.key.as_deref().map_or_else(|| message.id.to_string(), str::to_owned);
                Self { to: visible(&whither(content)), subject: visible(&subject) }
            }
        }
    }

    fn of_email(email: &Email) -> Self {
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

/// Where something goes that is no e-mail: its target, or what its attributes say.
fn whither(content: &Content) -> String {
    if let Some(target) = &content.target {
        return format!("to {target}");
    }
    let said: Vec<String> =
        content.attributes.iter().map(|(name, value)| format!("{name} {value}")).collect();
    match said.join(", ") {
        said if said.is_empty() => "no e-mail".to_owned(),
        said => said.chars().take(ATTRIBUTES_CHARS_MAX).collect(),
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
