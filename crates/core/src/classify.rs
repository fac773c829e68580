//! Turns an error's code into what it means: worth another try, never, or trouble with the destination.

use crate::outcome::{Blame, Failure, Outcome};

/// What a code means for the message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Worth another try.
    Failed(Blame),
    /// Never worth another.
    Refused,
    /// Never worth another for this login: the destination is held.
    LoginRefused,
}

/// Codes and their meanings; a code that isn't listed is worth another try.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    rows: Vec<(String, Meaning)>,
}

impl Table {
    /// The codes that clients of mail and HTTP services commonly report.
    pub fn common() -> Self {
        let connection = Meaning::Failed(Blame::Connection);
        let throttle = Meaning::Failed(Blame::Throttle);
        let message = Meaning::Failed(Blame::Message);
        Self::default()
            .with("ECONNREFUSED", connection)
            .with("ECONNRESET", connection)
            .with("ETIMEDOUT", connection)
            .with("ENOTFOUND", connection)
            .with("RATE_LIMIT_EXCEEDED", throttle)
            .with("TEMPORARY_FAILURE", message)
            .with("SERVICE_UNAVAILABLE", connection)
            .with("INVALID_RECIPIENT", Meaning::Refused)
            .with("MAIL_HARD_BOUNCE", Meaning::Refused)
            .with("PERMISSION_DENIED", Meaning::Refused)
            .with("AUTH_REVOKED", Meaning::LoginRefused)
            .with("TOKEN_EXPIRED", Meaning::LoginRefused)
    }

    /// The same table with one more row, which wins over earlier ones.
    pub fn with(mut self, code: &str, meaning: Meaning) -> Self {
        self.rows.retain(|(known, _)| known != code);
        self.rows.push((code.to_owned(), meaning));
        self
    }

    /// What a code means. An unknown one is worth another try.
    pub fn meaning(&self, code: &str) -> Meaning {
        let row = self.rows.iter().find(|(known, _)| known.eq_ignore_ascii_case(code));
        row.map_or(Meaning::Failed(Blame::Message), |(_, meaning)| *meaning)
    }

    /// The outcome of a failure with this code.
    pub fn outcome(&self, failure: Failure) -> Outcome {
        match failure.code.as_deref().map_or(Meaning::Failed(failure.blame), |code| self.meaning(code)) {
            Meaning::Failed(blame) => Outcome::Failed(failure.blaming(blame)),
            Meaning::Refused => Outcome::Refused(failure),
            Meaning::LoginRefused => Outcome::Failed(failure.blaming(Blame::Credential)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_codes_mean_what_they_say() {
        let table = Table::common();
        for code in [
            "ECONNRESET",
            "ETIMEDOUT",
            "ENOTFOUND",
            "RATE_LIMIT_EXCEEDED",
            "TEMPORARY_FAILURE",
            "SERVICE_UNAVAILABLE",
            "SOMETHING_NEW",
        ] {
            assert!(matches!(table.meaning(code), Meaning::Failed(_)), "{code} is worth another try");
        }
        for code in ["INVALID_RECIPIENT", "MAIL_HARD_BOUNCE", "PERMISSION_DENIED"] {
            assert_eq!(table.meaning(code), Meaning::Refused, "{code}");
        }
        for code in ["AUTH_REVOKED", "token_expired"] {
            assert_eq!(table.meaning(code), Meaning::LoginRefused, "{code}");
        }
    }

    #[test]
    fn a_row_of_ones_own_wins() {
        let table = Table::common().with("ECONNRESET", Meaning::Refused);
        let outcome = table.outcome(Failure::new("gone").with_code("ECONNRESET"));
        assert!(matches!(outcome, Outcome::Refused(_)));
    }

    #[test]
    fn a_failure_without_a_code_keeps_its_blame() {
        let outcome = Table::common().outcome(Failure::new("no route to host").blaming(Blame::Connection));
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.blame, Blame::Connection);
    }
}
