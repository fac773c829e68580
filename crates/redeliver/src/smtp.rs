//! The usual transport: the mail server that the application names.

use std::sync::Arc;

use redeliver_engine::clock::Clock;
use redeliver_engine::transport::Transport;
pub use redeliver_transports::smtp::SmtpConfig;
use redeliver_transports::smtp::{Server, SmtpTransport, parse_mailbox};

use crate::error::Error;
use crate::profile::SMTP_TRANSPORT;

/// The mail server in the application's words.
#[derive(Default)]
pub(crate) struct MailServer {
    pub(crate) url: Option<String>,
    pub(crate) config: Option<SmtpConfig>,
    pub(crate) from: Option<String>,
}

impl MailServer {
    /// Whether somebody is known to write the mails that don't say so themselves.
    pub(crate) fn has_sender(&self) -> bool {
        self.from.is_some() || self.config.is_some()
    }

    /// The config that these words make. What is wrong with them is said without repeating them: a URL may hold a
    /// password.
    pub(crate) fn config(&self) -> Result<SmtpConfig, Error> {
        let mut config = self.config.clone().unwrap_or_default();
        if let Some(url) = &self.url {
            config.server = Some(Server::parse(url).map_err(|why| misused("the mail server", why))?);
        }
        if let Some(from) = &self.from {
            config.from = parse_mailbox(from).map_err(|why| misused("the sender", why))?;
        }
        Ok(config)
    }
}

/// What carries mails to this server; without one, they wait.
pub(crate) fn transport(config: SmtpConfig, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Transport>, Error> {
    match SmtpTransport::new(SMTP_TRANSPORT, config, Arc::clone(clock)) {
        Ok(transport) => Ok(Arc::new(transport)),
        Err(why) => Err(misused("the mail server", why)),
    }
}

fn misused(what: &str, why: String) -> Error {
    Error::Misused(format!("{what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_server_or_sender_is_said_without_its_password() {
        let check = |url: Option<&str>, from: Option<&str>, what: &str| {
            let words = MailServer { url: url.map(Into::into), from: from.map(Into::into), config: None };
            let said = words.config().unwrap_err().to_string();
            assert!(said.starts_with(what) && !said.contains("secret"), "{said}");
        };
        check(Some("http://ada:secret@mx"), None, "the mail server: ");
        check(Some("smtps://ada:secret@"), None, "the mail server: ");
        check(None, Some("desk"), "the sender: ");
    }
}
