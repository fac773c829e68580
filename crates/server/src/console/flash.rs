//! What was just done, said once on the next page. The cookie that carries it holds a word of ours and a message's id,
//! which becomes a link and is never shown, so that nobody can put words into the console's mouth.

use std::time::Duration;

use axum::http::{HeaderMap, header};
use redeliver_core::MessageId;
use redeliver_core::operate::Action;

use super::link;
use crate::api::messages::cursor;

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
        Some(Self { action, id: cursor::read(id).ok()? })
    }

    /// The cookie's value. An id of another table may be any text, so that it is written as a cursor is.
    pub(super) fn value(&self) -> String {
        format!("{}.{}", self.action.name(), cursor::behind(&self.id))
    }

    /// What people read.
    pub(super) fn sentence(&self) -> &'static str {
        match self.action {
            Action::Retry => "Retried: the message is due now, with a new budget of attempts.",
            Action::Dismiss => "Dismissed: the message left lists and counts. You can restore it.",
            Action::Restore => "Restored: the message is listed as failed again.",
            Action::Cancel => "Cancelled: the message will not be sent.",
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
        for id in [MessageId::own(7), MessageId::Row("log:a;b=\"<é>\"".into())] {
            let flash = Flash { action: Action::Dismiss, id };
            let value = flash.value();
            assert_eq!(read(&format!("a=b; {COOKIE}={value}")), Some(flash));
        }
        for value in ["", "retry", "retry.", "retry.x", "cancel.1", "retry.log:<b>", "<b>.1"] {
            assert_eq!(read(&format!("{COOKIE}={value}")), None, "{value}");
        }
    }
}
