//! An e-mail as it is accepted: what it says and to whom. How it is written on the wire is its transport's business.
//!
//! Whatever could break out of its place in a header or an envelope is found here, before the mail is accepted.

mod address;
mod check;
mod word;

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::message::MessageId;

pub use address::{ADDRESS_BYTES_MAX, DOMAIN_BYTES_MAX, LOCAL_BYTES_MAX, check_address};
pub use check::{
    ATTACHMENTS_MAX, ICS_METHODS, NAME_BYTES_MAX, RECIPIENTS_MAX, REFERENCES_MAX, SUBJECT_BYTES_MAX,
};

/// What the bytes of an e-mail's content are.
pub const EMAIL_TYPE: &str = "application/vnd.redeliver.email+json";

/// An e-mail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Email {
    /// Who writes; the route's own sender if it doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Mailbox>,
    /// Who is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Mailbox>,
    /// To whom.
    #[serde(default, deserialize_with = "one_or_many")]
    pub to: Vec<Mailbox>,
    /// Who else is to read it.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<Mailbox>,
    /// Who else gets it without the others' knowing.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub bcc: Vec<Mailbox>,
    /// What it is about.
    #[serde(default)]
    pub subject: String,
    /// Its words as plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its words as HTML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// An invitation, or a change of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ics: Option<Ics>,
    /// Files that come with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The Message-ID that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<String>,
    /// The Message-IDs of its thread, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
}

/// An address, perhaps with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Mailbox {
    /// The address.
    pub address: String,
    /// The name.
    pub name: Option<String>,
}

/// A calendar's content, and what is wanted of the reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ics {
    /// The calendar, byte for byte.
    pub content: String,
    /// REQUEST, CANCEL, PUBLISH, REPLY and so on.
    #[serde(default = "request")]
    pub method: String,
}

/// A file that comes with an e-mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Its name.
    pub name: String,
    /// What its bytes are.
    #[serde(default = "octets")]
    pub content_type: String,
    /// The bytes, in base64.
    pub base64: String,
}

/// The forms in which an address is written.
#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Written {
    Address(String),
    Full {
        address: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

impl From<Written> for Mailbox {
    fn from(written: Written) -> Self {
        match written {
            Written::Address(address) => Self { address, name: None },
            Written::Full { address, name } => Self { address, name },
        }
    }
}

impl From<Mailbox> for Written {
    fn from(Mailbox { address, name }: Mailbox) -> Self {
        match name {
            None => Self::Address(address),
            Some(_) => Self::Full { address, name },
        }
    }
}

impl Mailbox {
    /// Reads `ada@example.org` or `Ada Lovelace <ada@example.org>`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let mailbox = match text.strip_suffix('>').and_then(|text| text.split_once('<')) {
            Some((name, address)) => {
                let name = name.trim().trim_matches('"');
                Self { address: address.to_owned(), name: (!name.is_empty()).then(|| name.to_owned()) }
            }
            None => Self { address: text.to_owned(), name: None },
        };
        check_address(&mailbox.address).map_err(|wrong| format!("the address {wrong}"))?;
        match &mailbox.name {
            Some(name) if name.chars().any(char::is_control) => {
                Err("the name has a control character".to_owned())
            }
            _ => Ok(mailbox),
        }
    }
}

/// What is wrong with an e-mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmailProblem {
    /// Where, such as `to[2].address`.
    pub field: String,
    /// What, in words.
    pub problem: String,
}

impl Email {
    /// Everybody who gets it, in the order by which verdicts on recipients name them: to, cc, bcc.
    pub fn recipients(&self) -> impl Iterator<Item = &Mailbox> {
        self.to.iter().chain(&self.cc).chain(&self.bcc)
    }

    /// Everything that is wrong with it, all at once; nothing if it can be sent.
    ///
    /// What is said names the field and never repeats its value.
    pub fn problems(&self) -> Vec<EmailProblem> {
        check::problems(self)
    }

    /// Whether an address has letters beyond ASCII before its `@`, which only servers with SMTPUTF8 take.
    pub fn needs_smtputf8(&self) -> bool {
        let mut all = self.recipients().chain(&self.from).chain(&self.reply_to);
        all.any(|mailbox| mailbox.address.split('@').next().is_some_and(|local| !local.is_ascii()))
    }

    /// The content that carries it.
    pub fn to_content(&self) -> Result<Content, serde_json::Error> {
        let content = Content::of_bytes(serde_json::to_vec(self)?);
        Ok(Content { content_type: Some(EMAIL_TYPE.into()), ..content })
    }

    /// The e-mail that a content carries; `None` if it carries something else.
    pub fn of_content(content: &Content) -> Option<Result<Self, serde_json::Error>> {
        let is_email = content.content_type.as_deref() == Some(EMAIL_TYPE);
        is_email.then(|| serde_json::from_slice(&content.bytes))
    }
}

/// The one Message-ID that a message has in all its tries, given its sender's address.
pub fn message_id(id: &MessageId, from: &str) -> String {
    let domain = from.rsplit_once('@').map_or("localhost", |(_, domain)| domain);
    format!("<{}@{domain}>", safe(&id.to_string()))
}

/// An id of any kind as something that can stand before the `@` of a Message-ID; ids that differ stay different.
fn safe(id: &str) -> String {
    id.bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

fn request() -> String {
    "REQUEST".to_owned()
}

fn octets() -> String {
    "application/octet-stream".to_owned()
}

/// One address or a list of them.
fn one_or_many<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Mailbox>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(Mailbox),
        Many(Vec<Mailbox>),
    }
    Ok(match OneOrMany::deserialize(from)? {
        OneOrMany::One(mailbox) => vec![mailbox],
        OneOrMany::Many(mailboxes) => mailboxes,
    })
}
