//! What can go wrong before a mail is handed over, and what it comes to.

use std::io;

use redeliver_core::classify::Meaning;
use redeliver_core::outcome::Blame;
use redeliver_core::{Failure, Outcome};

use super::classify::{classify, failure};
use super::line::Hitch;
use super::reply::{Reply, Stage};

/// Why a conversation ended before the mail was handed over.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server said no.
    Said(Stage, Reply),
    /// The connection could not be made, broke, or nothing came in time.
    Broken(Failure),
    /// The server said something that makes no sense here.
    Nonsense(Stage, String),
    /// The server can't do what is needed.
    Unable(Outcome),
}

impl Trouble {
    pub(super) fn hitch(stage: Stage, hitch: Hitch) -> Self {
        match hitch {
            Hitch::Broken(error) => Self::broken(stage, &error),
            Hitch::Nonsense => Self::Nonsense(stage, "what the server said is no reply".to_owned()),
        }
    }

    pub(super) fn broken(stage: Stage, error: &io::Error) -> Self {
        let failure = Failure::new(format!("{}: {error}", stage.name())).with_code(code(error));
        Self::Broken(failure.blaming(Blame::Connection))
    }

    pub(super) fn too_late(stage: Stage) -> Self {
        let failure = Failure::new(format!("{}: no answer in time", stage.name())).with_code("ETIMEDOUT");
        Self::Broken(failure.blaming(Blame::Connection))
    }

    /// A login that can't be made.
    pub(super) fn no_login(text: &str) -> Self {
        Self::Unable(Outcome::Failed(Failure::new(text).with_code("AUTH").blaming(Blame::Credential)))
    }

    /// A server without the encryption that the config demands.
    pub(super) fn no_encryption() -> Self {
        let text = "the server offers no encryption (STARTTLS): use smtps://, or tls = \"opportunistic\"";
        Self::Unable(Outcome::Failed(Failure::new(text).with_code("TLS").blaming(Blame::Connection)))
    }

    /// What it comes to for the message.
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Said(stage, reply) => {
                let failure = failure(stage, &reply);
                match classify(stage, &reply) {
                    Meaning::Refused => Outcome::Refused(failure),
                    Meaning::Failed(_) | Meaning::LoginRefused => Outcome::Failed(failure),
                }
            }
            Self::Broken(failure) => Outcome::Failed(failure),
            Self::Nonsense(stage, said) => {
                let failure = Failure::new(format!("{}: {said}", stage.name())).with_code("PROTOCOL");
                Outcome::Failed(failure.blaming(Blame::Connection))
            }
            Self::Unable(outcome) => outcome,
        }
    }
}

/// The names that clients of mail servers commonly give to such errors.
fn code(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED",
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => "ECONNRESET",
        io::ErrorKind::TimedOut => "ETIMEDOUT",
        io::ErrorKind::NotFound => "ENOTFOUND",
        io::ErrorKind::InvalidData => "TLS",
        // The system's resolver has no kind of its own.
        _ if error.to_string().contains("lookup address") => "ENOTFOUND",
        _ => "ECONNECTION",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_network_have_their_usual_names() {
        let of = |kind: io::ErrorKind| code(&io::Error::from(kind));
        assert_eq!(of(io::ErrorKind::ConnectionRefused), "ECONNREFUSED");
        assert_eq!(of(io::ErrorKind::UnexpectedEof), "ECONNRESET");
        assert_eq!(of(io::ErrorKind::HostUnreachable), "ECONNECTION");
        let unknown = io::Error::other("failed to lookup address information: Name or service not known");
        assert_eq!(code(&unknown), "ENOTFOUND");
    }
}
