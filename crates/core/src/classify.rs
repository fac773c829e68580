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

    /// Whether a code is listed.
    fn has(&self, code: &str) -> bool {
        self.rows.iter().any(|(known, _)| known.eq_ignore_ascii_case(code))
    }

    /// What a failure comes to that somebody else has seen and tells with this code. A login that is no good is refused, too: it
    /// is not ours to be tried again.
    pub fn outcome(&self, failure: Failure) -> Outcome {
        match failure.code.as_deref().map(|code| self.meaning(code)) {
            None | Some(Meaning::Failed(_)) => Outcome::Failed(failure),
            Some(Meaning::Refused | Meaning::LoginRefused) => Outcome::Refused(failure),
        }
    }
}

/// The same outcome with one of the codes of [`Table::common`], whatever number a mail server said: its words keep that.
pub fn in_common_codes(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Failed(failure) => {
            let meaning = match failure.blame {
                Blame::Credential => Meaning::LoginRefused,
                blame => Meaning::Failed(blame),
            };
            Outcome::Failed(with_common_code(failure, meaning))
        }
        Outcome::Refused(failure) => Outcome::Refused(with_common_code(failure, Meaning::Refused)),
        other => other,
    }
}

fn with_common_code(failure: Failure, meaning: Meaning) -> Failure {
    let said = failure.code.as_deref().unwrap_or_default();
    let reply = said.parse::<u16>().ok().filter(|reply| (400..600).contains(reply));
    let code = match (reply, meaning) {
        (Some(reply), _) => code_of_reply(meaning, reply, enhanced_in(&failure.text)),
        (None, _) if Table::common().has(said) => return failure,
        (None, Meaning::LoginRefused) => "AUTH_REVOKED",
        (None, Meaning::Failed(Blame::Connection)) => "SERVICE_UNAVAILABLE",
        (None, Meaning::Failed(Blame::Throttle)) => "RATE_LIMIT_EXCEEDED",
        // Words of our own, such as for a mail that can't be written.
        (None, Meaning::Failed(_) | Meaning::Refused) => return failure,
    };
    let text = Failure::new(failure.said()).text;
    Failure { text, ..failure }.with_code(code)
}

/// What a mail server's reply is called among the codes of [`Table::common`], given what it was found to mean.
///
/// The meaning comes first, because a number alone doesn't have one: a 550 to a recipient is theirs, the same 550 at the
/// door is not. So the code never says anything else than what was done.
pub fn code_of_reply(meaning: Meaning, reply: u16, enhanced: Option<(u8, u8, u8)>) -> &'static str {
    match (meaning, reply, enhanced) {
        (Meaning::Failed(Blame::Throttle), ..) => "RATE_LIMIT_EXCEEDED",
        (Meaning::Failed(Blame::Connection), ..) => "SERVICE_UNAVAILABLE",
        (Meaning::Failed(Blame::Message | Blame::Credential), ..) => "TEMPORARY_FAILURE",
        // A password that has to be changed, by RFC 5248.
        (Meaning::LoginRefused, 432, _) | (Meaning::LoginRefused, _, Some((_, 7, 12))) => "TOKEN_EXPIRED",
        (Meaning::LoginRefused, ..) => "AUTH_REVOKED",
        (Meaning::Refused, _, Some((_, 1, _))) => "INVALID_RECIPIENT",
        (Meaning::Refused, 550 | 551 | 553 | 556, None) => "INVALID_RECIPIENT",
        (Meaning::Refused, _, Some((_, 7, _))) => "PERMISSION_DENIED",
        (Meaning::Refused, ..) => "MAIL_HARD_BOUNCE",
    }
}

/// Whether a refusal says that an address is no good, rather than that this one mail was not wanted: by the codes of
/// [`Table::common`], or by a mail server's reply to the recipient.
pub fn is_hard_bounce(failure: &Failure) -> bool {
    let Some(code) = failure.code.as_deref() else { return false };
    let Ok(reply) = code.parse() else { return matches!(code, "INVALID_RECIPIENT" | "MAIL_HARD_BOUNCE") };
    failure.text.starts_with("RCPT")
        && code_of_reply(Meaning::Refused, reply, enhanced_in(&failure.text)) == "INVALID_RECIPIENT"
}

/// The enhanced code that a reply's text has, such as 5.1.1.
fn enhanced_in(text: &str) -> Option<(u8, u8, u8)> {
    text.split_ascii_whitespace().find_map(|word| {
        let mut parts = word.split('.').map(|part| part.parse::<u8>().ok());
        match (parts.next()??, parts.next()??, parts.next()??, parts.next()) {
            (class, subject, detail, None) => Some((class, subject, detail)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_that_is_no_good_bounces_hard() {
        for (code, text, bounces) in [
            ("550", "RCPT: 550 5.1.1 no such user", true),
            ("550", "RCPT: 550 no such user", true),
            ("550", "RCPT: 550 5.7.1 not from you", false),
            ("552", "RCPT: 552 5.2.2 mailbox full", false),
            ("554", "end of data: 554 5.6.0 spam", false),
            ("550", "end of data: 550 5.1.1 spam", false),
            ("INVALID_RECIPIENT", "no such user", true),
            ("MAIL_HARD_BOUNCE", "gone", true),
            ("PERMISSION_DENIED", "no", false),
        ] {
            assert_eq!(is_hard_bounce(&Failure::new(text).with_code(code)), bounces, "{code} {text}");
        }
        assert!(!is_hard_bounce(&Failure::new("RCPT: 550 no such user")));
    }

    #[test]
    fn a_reply_is_called_what_it_means() {
        use Meaning::{Failed, LoginRefused, Refused};
        let table = Table::common();
        for (meaning, reply, enhanced, code) in [
            (Failed(Blame::Message), 451, None, "TEMPORARY_FAILURE"),
            (Failed(Blame::Message), 552, Some((5, 2, 2)), "TEMPORARY_FAILURE"),
            (Failed(Blame::Throttle), 421, Some((4, 7, 0)), "RATE_LIMIT_EXCEEDED"),
            (Failed(Blame::Connection), 421, None, "SERVICE_UNAVAILABLE"),
            (Failed(Blame::Connection), 554, Some((5, 7, 1)), "SERVICE_UNAVAILABLE"),
            (LoginRefused, 535, Some((5, 7, 8)), "AUTH_REVOKED"),
            (LoginRefused, 432, Some((4, 7, 12)), "TOKEN_EXPIRED"),
            (Refused, 550, Some((5, 1, 1)), "INVALID_RECIPIENT"),
            (Refused, 550, None, "INVALID_RECIPIENT"),
            (Refused, 550, Some((5, 7, 1)), "PERMISSION_DENIED"),
            (Refused, 554, Some((5, 6, 0)), "MAIL_HARD_BOUNCE"),
            (Refused, 554, None, "MAIL_HARD_BOUNCE"),
        ] {
            assert_eq!(code_of_reply(meaning, reply, enhanced), code, "{reply} {enhanced:?}");
        }
        for meaning in [
            Failed(Blame::Message),
            Failed(Blame::Throttle),
            Failed(Blame::Connection),
            LoginRefused,
            Refused,
        ] {
            for reply in 400..600 {
                for enhanced in [None, Some((5, 1, 1)), Some((5, 7, 1)), Some((4, 7, 12)), Some((5, 2, 2))] {
                    let code = code_of_reply(meaning, reply, enhanced);
                    assert_eq!(table.meaning(code), meaning, "{code} for {reply} {enhanced:?}");
                }
            }
        }
    }

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
    fn what_is_told_with_a_code_is_refused_or_tried_again_by_it() {
        let outcome = |code: Option<&str>| {
            let failure = Failure::new("no");
            Table::common().outcome(match code {
                Some(code) => failure.with_code(code),
                None => failure,
            })
        };
        for code in
            ["INVALID_RECIPIENT", "AUTH_REVOKED", "TOKEN_EXPIRED", "MAIL_HARD_BOUNCE", "PERMISSION_DENIED"]
        {
            assert!(matches!(outcome(Some(code)), Outcome::Refused(_)), "{code}");
        }
        for code in [Some("ETIMEDOUT"), Some("RATE_LIMIT_EXCEEDED"), Some("SOMETHING_NEW"), Some("550"), None]
        {
            assert!(matches!(outcome(code), Outcome::Failed(_)), "{code:?}");
        }
    }

    #[test]
    fn a_mail_servers_number_becomes_a_code_and_its_words_stay() {
        let named = |outcome| match in_common_codes(outcome) {
            Outcome::Failed(failure) | Outcome::Refused(failure) => {
                (failure.code.unwrap().to_string(), failure.text.to_string())
            }
            other => panic!("{other:?}"),
        };
        let failure = |code: &str, text: &str| Failure::new(text).with_code(code);
        for (outcome, code, text) in [
            (
                Outcome::Refused(failure("550", "RCPT: 550 5.1.1 no such user")),
                "INVALID_RECIPIENT",
                "RCPT: 550 5.1.1 no such user",
            ),
            (Outcome::Refused(failure("554", "spam")), "MAIL_HARD_BOUNCE", "554 spam"),
            (Outcome::Failed(failure("451", "RCPT: 451 later")), "TEMPORARY_FAILURE", "RCPT: 451 later"),
            (
                Outcome::Failed(failure("421", "421 4.7.0 slow down").blaming(Blame::Throttle)),
                "RATE_LIMIT_EXCEEDED",
                "421 4.7.0 slow down",
            ),
            (
                Outcome::Failed(failure("535", "AUTH: 535 5.7.8 no").blaming(Blame::Credential)),
                "AUTH_REVOKED",
                "AUTH: 535 5.7.8 no",
            ),
            (Outcome::Failed(failure("ETIMEDOUT", "x").blaming(Blame::Connection)), "ETIMEDOUT", "x"),
            (Outcome::Failed(failure("TLS", "x").blaming(Blame::Connection)), "SERVICE_UNAVAILABLE", "TLS x"),
            (Outcome::Refused(failure("INVALID_MAIL", "x")), "INVALID_MAIL", "x"),
        ] {
            assert_eq!(named(outcome), (code.to_owned(), text.to_owned()));
        }
    }
}
