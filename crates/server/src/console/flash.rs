//! What was just done, said once on the next page. The cookie that carries it holds a word of ours and a message's id,
//! never a text, so that nobody can put words into the console's mouth.

use std::time::Duration;

use axum::http::{HeaderMap, header};
use redeliver_core::MessageId;
use redeliver_core::operate::Action;

use super::link;

/// The cookie that carries it from one page to the next.
pub(super) const COOKIE: &str = "redeliver_done";

/// How long the next page may take.
pub(super) const AGE: Duration = Duration::from_secs(60);

/// What was just done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flash {
    /// What.
    pub(super) action: Action,
    /// To which message.
    pub(super) id: MessageId,
}

const ACTIONS: [Action; 4] = [Action::Retry, Action::Dismiss, Action::Restore, Action::Cancel];

impl Flash {
    /// What the cookies of a request say was done.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.into_iter().find(|(name, _)| *name == COOKIE)?;
        let (word, id) = value.split_once('.')?;
        let action = ACTIONS.into_iter().find(|action| action.name() == word)?;
        // Only ids of our own: those of other tables are anybody's text.
        match id.parse().ok()? {
            id @ MessageId::Own(_) => Some(Self { action, id }),
            MessageId::Row(_) => None,
        }
    }

    /// The cookie's value; `None` for a message whose id can't stand in one.
    pub(super) fn value(&self) -> Option<String> {
        match self.id {
            MessageId::Own(_) => Some(format!("{}.{}", self.action.name(), self.id)),
            MessageId::Row(_) => None,
        }
    }

    /// What people read.
    pub(super) fn sentence(&self) -> &'static str {
        match self.action {
            Action::Retry => "Retried: it is due now, with a fresh budget of tries.",
            Action::Dismiss => "Dismissed: it is out of the lists and counts, and can be brought back.",
            Action::Restore => "Brought back: it is among the failed ones again.",
            Action::Cancel => "Cancelled: it will not go out.",
        }
    }

    /// Where the message is.
    pub(super) fn href(&self) -> String {
        link::message(&self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_survives_the_way_to_the_next_page_and_nothing_else_does() {
        let read = |cookie: &str| {
            let value = axum::http::HeaderValue::from_str(cookie).unwrap();
            Flash::of(&HeaderMap::from_iter([(header::COOKIE, value)]))
        };
        let flash = Flash { action: Action::Dismiss, id: MessageId::own(7) };
        let value = flash.value().unwrap();
        assert_eq!(read(&format!("a=b; {COOKIE}={value}")), Some(flash));
        for value in ["", "retry", "retry.", "retry.x", "cancel.1", "retry.log:<b>", "<b>.1"] {
            assert_eq!(read(&format!("{COOKIE}={value}")), None, "{value}");
        }
    }
}
