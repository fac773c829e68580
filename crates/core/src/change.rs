//! A transition as a value: core makes it, a store writes it, all of it or nothing.

use std::sync::Arc;

use crate::attempt::AttemptRecord;
use crate::campaign::EndsMoved;
use crate::content::{Content, ContentHash, ContentSource};
use crate::edit::EditRecord;
use crate::event::Event;
use crate::message::Message;
use crate::time::Timestamp;

/// One change of one message. A store writes it only if the message still has the fence that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The fence that the message must still have.
    pub expected_fence: u64,
    /// The claim that this settles, where the claim's own worker writes it: a repeat is then recognised.
    pub settles: Option<u64>,
    /// The message as it stands afterwards, its fence raised.
    pub message: Message,
    /// What its campaign counts anew, if it is a mail of one.
    pub ends: EndsMoved,
    /// What history keeps of the try.
    pub attempt: Option<AttemptRecord>,
    /// The content that replaces the old one.
    pub content: Option<Arc<Content>>,
    /// The message that comes to be with this change: a dead letter.
    pub spawn: Option<Box<NewRow>>,
    /// What a person corrected in it.
    pub edit: Option<EditRecord>,
    /// Who did it, where a person did.
    pub audit: Option<Audit>,
    /// What to tell once it is committed.
    pub event: Event,
}

/// A message that a store is to keep, with its content and its key.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRow {
    /// The message.
    pub message: Message,
    /// Its content.
    pub content: ContentSource,
    /// The digest that its key remembers, if it has a key.
    pub hash: Option<ContentHash>,
    /// The message that comes to be with this one: a dead letter.
    pub spawn: Option<Box<NewRow>>,
    /// Whether the key may already be there, its message gone: the message comes back.
    pub revives: bool,
}

/// A person's deed, kept in the transaction that did it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Who: a key's name or a login, never a secret.
    pub actor: Arc<str>,
    /// What: `retry`, `edit`, `cancel`, `dismiss`, `restore`, `pause`, `resume`, or with `bulk_` before it.
    pub action: &'static str,
    /// To what: a message's id or a gate's key.
    pub subject: Arc<str>,
    /// When.
    pub at: Timestamp,
    /// What else is to be known: the fields that were corrected, never what they say.
    pub detail: Option<Arc<str>>,
}

impl Change {
    /// A change of a message that was read as `before` and is to stand as `message`.
    pub(crate) fn new(before: &Message, mut message: Message, event: Event) -> Self {
        message.fence = before.fence + 1;
        Self {
            expected_fence: before.fence,
            settles: None,
            ends: EndsMoved::between(before, &message),
            message,
            attempt: None,
            content: None,
            spawn: None,
            edit: None,
            audit: None,
            event,
        }
    }
}
