//! Hands mails to an SMTP server.
//!
//! The conversation is our own, command by command, because what a no means depends on where it was said, and whether
//! a mail is lost or failed depends on whether its last dot was sent (docs/decisions has the page).

mod classify;
mod config;
mod deadline;
mod features;
mod line;
mod mime;
mod outbound;
mod pool;
mod reply;
mod session;
mod tls;
mod trouble;
mod verdict;

pub use classify::{THROTTLE_WAIT, classify};
pub use config::{Login, Secret, Server, SmtpConfig, Tls, parse_mailbox};
pub use mime::{Written, write};
pub use outbound::{SmtpTransport, UNCONFIGURED};
pub use reply::{Reply, Stage};
