//! What a server's no means.

use redeliver_core::outcome::Blame;
use redeliver_core::{Failure, Outcome};

use super::line::Trouble;

/// What can never be written, whatever the server says.
pub const INVALID: &str = "INVALID_MESSAGE";
/// What a server says to a login that it doesn't accept.
pub(super) const WRONG_LOGIN: &str = "WRONGPASS";
/// What it says to what its user may not do.
pub(super) const FORBIDDEN: &str = "NOPERM";
/// Says a server that only repeats what another does.
pub(super) const DEMOTED: &str = "READONLY";

/// What a no is about.
#[derive(Debug, PartialEq)]
pub(super) enum No {
    /// The message, or what it was written to.
    Message(Outcome),
    /// The server is not ready for anything: it has not taken the message, and no try was made.
    NotReady,
    /// Somebody else has the key now, and this one has not taken the message.
    Moved,
    /// Nobody knows whether it has the message.
    Unknown,
}

/// What it means for a message that the server didn't say yes.
pub(super) fn no(trouble: &Trouble) -> No {
    let Trouble::Said { code, text } = trouble else { return No::Unknown };
    if is_login(trouble) {
        return No::Message(Outcome::Failed(login(trouble)));
    }
    match code.as_str() {
        "MOVED" | "ASK" | DEMOTED => No::Moved,
        // Loading, in the middle of a failover, out of memory, unable to write to its disk, or without its replicas.
        "LOADING" | "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN" | "BUSY" | "OOM" | "MISCONF" | "NOREPLICAS" => {
            No::NotReady
        }
        _ => {
            let failure = Failure::new(format!("the server did not take it: {trouble}")).with_code(code);
            match text.contains("exceeds maximum allowed") {
                true => No::Message(Outcome::Refused(failure)),
                false => No::Message(Outcome::Failed(failure)),
            }
        }
    }
}

/// Whether the server does not let us in, or not to what we want.
pub(super) fn is_login(trouble: &Trouble) -> bool {
    matches!(trouble.code(), Some("NOAUTH" | WRONG_LOGIN | FORBIDDEN))
}

/// The server does not let us in.
pub(super) fn login(trouble: &Trouble) -> Failure {
    Failure::new(format!("the server does not accept the login: {trouble}"))
        .with_code(trouble.code().unwrap_or("NOAUTH"))
        .blaming(Blame::Credential)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_speaks_against_a_message_costs_it_a_try() {
        let no = |code: &str, text: &str| no(&Trouble::Said { code: code.to_owned(), text: text.to_owned() });
        for code in
            ["LOADING", "OOM", "MISCONF", "CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS", "TRYAGAIN", "BUSY"]
        {
            assert_eq!(no(code, "for now"), No::NotReady, "{code}");
        }
        for code in ["MOVED", "ASK", "READONLY"] {
            assert_eq!(no(code, "1 127.0.0.1:1"), No::Moved, "{code}");
        }
        let outcome = |code: &str, text: &str| match no(code, text) {
            No::Message(outcome) => outcome,
            other => panic!("{other:?}"),
        };
        let blame = |outcome: &Outcome| match outcome {
            Outcome::Failed(failure) => Some(failure.blame),
            _ => None,
        };
        for (code, text) in [
            ("NOAUTH", "Authentication required."),
            ("WRONGPASS", "invalid username-password pair"),
            ("NOPERM", "no permissions"),
        ] {
            assert_eq!(blame(&outcome(code, text)), Some(Blame::Credential), "{code}");
        }
        assert_eq!(blame(&outcome("WRONGTYPE", "another kind of value")), Some(Blame::Message));
        assert_eq!(blame(&outcome("ERR", "whatever")), Some(Blame::Message));
        assert!(matches!(outcome("ERR", "string exceeds maximum allowed size"), Outcome::Refused(_)));
        assert_eq!(super::no(&Trouble::Away("gone".to_owned())), No::Unknown);
    }
}
