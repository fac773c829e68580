//! What an application hands over: a mail or any other content, and how it is to travel.

use std::sync::Arc;

use redeliver_core::accept::NewMessage;
use redeliver_core::email::Email;
use redeliver_core::{Content, Lane, Name, Timestamp};

use crate::error::Error;
use crate::profile::EMAIL_ROUTE;

/// A message that is to be accepted. A [`Mail`](crate::Mail) or an [`Email`] becomes one by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    message: NewMessage,
    email: Option<Box<Email>>,
}

impl Outgoing {
    /// Any content, by the route of this name.
    pub fn new(route: impl Into<Name>, content: Content) -> Self {
        Self { message: NewMessage::new(route, content), email: None }
    }

    /// What the application calls it: said twice, it is sent once, and another content under the same key is an
    /// error.
    pub fn key(mut self, key: impl AsRef<str>) -> Self {
        self.message.key = Some(key.as_ref().into());
        self
    }

    /// The way it travels, if not the usual one.
    pub fn route(mut self, name: impl Into<Name>) -> Self {
        self.message.route = name.into();
        self
    }

    /// How urgent it is.
    pub fn priority(mut self, lane: Lane) -> Self {
        self.message.lane = lane;
        self
    }

    /// When it is to go out, if not at once.
    pub fn due_at(mut self, at: Timestamp) -> Self {
        self.message.due_at = Some(at);
        self
    }

    /// When sending it stops making sense.
    pub fn expires_at(mut self, at: Timestamp) -> Self {
        self.message.expires_at = Some(at);
        self
    }

    /// The tenant that it belongs to.
    pub fn workspace(mut self, name: impl Into<Name>) -> Self {
        self.message.workspace = name.into();
        self
    }

    /// Something that gates, targets and filters may look at.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.message.content.attributes.insert(name.into(), value.into());
        self
    }

    /// Where to, where the route leaves it open.
    pub fn target(mut self, target: impl Into<Arc<str>>) -> Self {
        self.message.content.target = Some(target.into());
        self
    }

    /// The mail, if it is one.
    pub(crate) fn email(&self) -> Option<&Email> {
        self.email.as_deref()
    }

    /// The message that the engine takes. A mail that could not be sent, or could do harm, comes back.
    pub(crate) fn into_message(self) -> Result<NewMessage, Error> {
        let Self { mut message, email } = self;
        let Some(email) = email else { return Ok(message) };
        let problems = email.problems();
        if !problems.is_empty() {
            return Err(Error::Unsendable(problems));
        }
        let content = email.to_content().map_err(|error| Error::Misused(error.to_string()))?;
        message.content.content_type = content.content_type;
        message.content.bytes = content.bytes;
        Ok(message)
    }
}

impl From<Email> for Outgoing {
    fn from(email: Email) -> Self {
        Self { email: Some(Box::new(email)), ..Self::new(EMAIL_ROUTE, Content::default()) }
    }
}
