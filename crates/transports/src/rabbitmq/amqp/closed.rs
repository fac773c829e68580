//! Why a connection or a channel is no more.

use std::io;
use std::sync::Arc;

use super::wire::Malformed;

/// Why a connection or a channel is no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// The broker ended the connection or the channel, with its code and its words.
    #[error("{code} {text}")]
    Said {
        /// The code.
        code: u16,
        /// The words.
        text: Arc<str>,
    },
    /// The network did.
    #[error("{0}")]
    Broken(Arc<str>),
    /// What the broker says makes no sense.
    #[error("{0}")]
    Nonsense(#[from] Malformed),
    /// Nothing was heard for too long.
    #[error("no sign of life from the broker")]
    Silent,
    /// We did.
    #[error("closed")]
    Ours,
}

/// The broker's codes that mean something here.
pub mod code {
    /// Not allowed, or the login is wrong.
    pub const ACCESS_REFUSED: u16 = 403;
    /// There is no such queue or exchange.
    pub const NOT_FOUND: u16 = 404;
    /// Something is otherwise than was said.
    pub const PRECONDITION_FAILED: u16 = 406;
    /// More than the broker takes.
    pub const CONTENT_TOO_LARGE: u16 = 311;
}

impl Closed {
    pub(super) fn said(code: u16, text: &str) -> Self {
        Self::Said { code, text: text.into() }
    }

    /// The broker's code, if it gave one.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Said { code, .. } => Some(*code),
            Self::Broken(_) | Self::Nonsense(_) | Self::Silent | Self::Ours => None,
        }
    }
}

impl From<io::Error> for Closed {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Broken("the broker hung up".into()),
            _ => Self::Broken(error.to_string().into()),
        }
    }
}
