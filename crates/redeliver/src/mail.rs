//! A mail, written in one sentence.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redeliver_core::Lane;
use redeliver_core::email::{Attachment, Email, Ics, Mailbox};

use crate::outgoing::Outgoing;

/// A mail in the making. An address is written `ada@example.org` or `Ada Lovelace <ada@example.org>`; whether it is
/// one is found out when the mail is accepted.
///
/// ```
/// # use redeliver::Mail;
/// let mail = Mail::to("Ada <ada@example.org>").subject("Your table").text("See you at eight.").key("booking-17");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail(Email);

impl Mail {
    /// A mail to somebody.
    pub fn to(whom: impl AsRef<str>) -> Self {
        Self(Email { to: vec![mailbox(whom.as_ref())], ..Email::default() })
    }

    /// And to somebody else.
    pub fn and_to(mut self, whom: impl AsRef<str>) -> Self {
        self.0.to.push(mailbox(whom.as_ref()));
        self
    }

    /// Who else is to read it.
    pub fn cc(mut self, whom: impl AsRef<str>) -> Self {
        self.0.cc.push(mailbox(whom.as_ref()));
        self
    }

    /// Who else gets it without the others' knowing.
    pub fn bcc(mut self, whom: impl AsRef<str>) -> Self {
        self.0.bcc.push(mailbox(whom.as_ref()));
        self
    }

    /// Who writes, if not the one that [`crate::RedeliverBuilder::from`] names.
    pub fn from(mut self, who: impl AsRef<str>) -> Self {
        self.0.from = Some(mailbox(who.as_ref()));
        self
    }

    /// Who is answered.
    pub fn reply_to(mut self, whom: impl AsRef<str>) -> Self {
        self.0.reply_to = Some(mailbox(whom.as_ref()));
        self
    }

    /// What it is about.
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.0.subject = subject.into();
        self
    }

    /// Its words as plain text.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.0.text = Some(text.into());
        self
    }

    /// Its words as HTML.
    pub fn html(mut self, html: impl Into<String>) -> Self {
        self.0.html = Some(html.into());
        self
    }

    /// A calendar, and what is wanted of the reader: `REQUEST`, `CANCEL` and so on.
    pub fn ics(mut self, method: impl Into<String>, content: impl Into<String>) -> Self {
        self.0.ics = Some(Ics { content: content.into(), method: method.into() });
        self
    }

    /// A file that comes with it.
    pub fn attach(
        mut self,
        name: impl Into<String>,
        content_type: impl Into<String>,
        bytes: impl AsRef<[u8]>,
    ) -> Self {
        let base64 = STANDARD.encode(bytes);
        self.0.attachments.push(Attachment { name: name.into(), content_type: content_type.into(), base64 });
        self
    }

    /// What the application calls it: said twice, it is sent once.
    pub fn key(self, key: impl AsRef<str>) -> Outgoing {
        Outgoing::from(self).key(key)
    }

    /// How urgent it is.
    pub fn priority(self, lane: Lane) -> Outgoing {
        Outgoing::from(self).priority(lane)
    }
}

impl From<Mail> for Email {
    fn from(mail: Mail) -> Self {
        mail.0
    }
}

impl From<Mail> for Outgoing {
    fn from(mail: Mail) -> Self {
        Self::from(mail.0)
    }
}

/// Reads `address` or `name <address>`.
pub(crate) fn mailbox(written: &str) -> Mailbox {
    let written = written.trim();
    match written.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
        Some((name, address)) => {
            let name = name.trim().trim_matches('"');
            Mailbox { address: address.trim().to_owned(), name: (!name.is_empty()).then(|| name.to_owned()) }
        }
        None => Mailbox { address: written.to_owned(), name: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_with_or_without_a_name() {
        let check = |written: &str, address: &str, name: Option<&str>| {
            let expected = Mailbox { address: address.to_owned(), name: name.map(str::to_owned) };
            assert_eq!(mailbox(written), expected, "{written:?}");
        };
        check("ada@example.org", "ada@example.org", None);
        check(" <ada@example.org> ", "ada@example.org", None);
        check("Ada Lovelace <ada@example.org>", "ada@example.org", Some("Ada Lovelace"));
        check("\"Lovelace, Ada\" <ada@example.org>", "ada@example.org", Some("Lovelace, Ada"));
        check("Eve <eve@example.org> <ada@example.org>", "ada@example.org", Some("Eve <eve@example.org>"));
        check("", "", None);
        check(">", ">", None);
    }

    #[test]
    fn what_could_break_out_of_a_header_is_left_in_place_to_be_found() {
        for hostile in ["Ada\r\nBcc: eve@example.org <ada@example.org>", "ada@example.org\r\nBcc: eve@x.org"]
        {
            let email = Email::from(Mail::to(hostile).subject("hello").text("hello"));
            assert!(!email.problems().is_empty(), "{hostile:?}");
        }
    }
}
