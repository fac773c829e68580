//! Looks over a whole e-mail, field by field, and finds everything that is wrong with it.

use super::address::check_address;
use super::word::{check_text, is_base64, is_token};
use super::{Attachment, Email, EmailProblem, Ics, Mailbox};

/// The most recipients of one mail: what every server must take, by RFC 5321.
pub const RECIPIENTS_MAX: usize = 100;
/// The most files that come with one mail.
pub const ATTACHMENTS_MAX: usize = 100;
/// The most Message-IDs that a thread is known by.
pub const REFERENCES_MAX: usize = 100;
/// The longest subject.
pub const SUBJECT_BYTES_MAX: usize = 2_000;
/// The longest name of a person or a file.
pub const NAME_BYTES_MAX: usize = 255;
/// The longest content type, its parameters included.
const CONTENT_TYPE_BYTES_MAX: usize = 255;
/// The longest Message-ID.
const MESSAGE_ID_BYTES_MAX: usize = 255;
/// What can be wanted of the reader of a calendar, by RFC 5546.
pub const ICS_METHODS: [&str; 8] =
    ["PUBLISH", "REQUEST", "REPLY", "ADD", "CANCEL", "REFRESH", "COUNTER", "DECLINECOUNTER"];

pub(super) fn problems(email: &Email) -> Vec<EmailProblem> {
    let mut found = Found::default();
    for (field, mailbox) in [("from", &email.from), ("reply_to", &email.reply_to)] {
        if let Some(mailbox) = mailbox {
            found.mailbox(field, mailbox);
        }
    }
    found.recipients(email);
    found.note("subject", check_text(&email.subject, SUBJECT_BYTES_MAX));
    if is_empty(email) {
        found.note("text", Err("is missing, and there is nothing else in the mail".to_owned()));
    }
    if let Some(ics) = &email.ics {
        found.ics(ics);
    }
    if email.attachments.len() > ATTACHMENTS_MAX {
        let many = email.attachments.len();
        found.note("attachments", Err(format!("must be at most {ATTACHMENTS_MAX}, not {many}")));
    }
    for (i, attachment) in email.attachments.iter().enumerate() {
        found.attachment(&format!("attachments[{i}]"), attachment);
    }
    if let Some(id) = &email.in_reply_to {
        found.note("in_reply_to", check_message_id(id));
    }
    if email.references.len() > REFERENCES_MAX {
        let many = email.references.len();
        found.note("references", Err(format!("must be at most {REFERENCES_MAX}, not {many}")));
    }
    for (i, id) in email.references.iter().enumerate() {
        found.note(&format!("references[{i}]"), check_message_id(id));
    }
    found.0
}

#[derive(Default)]
struct Found(Vec<EmailProblem>);

impl Found {
    fn note(&mut self, field: &str, checked: Result<(), String>) {
        if let Err(problem) = checked {
            self.0.push(EmailProblem { field: field.to_owned(), problem });
        }
    }

    fn mailbox(&mut self, field: &str, mailbox: &Mailbox) {
        self.note(&format!("{field}.address"), check_address(&mailbox.address));
        if let Some(name) = &mailbox.name {
            self.note(&format!("{field}.name"), check_text(name, NAME_BYTES_MAX));
        }
    }

    fn recipients(&mut self, email: &Email) {
        match email.recipients().count() {
            0 => self.note("to", Err("is empty: nobody gets it".to_owned())),
            1..=RECIPIENTS_MAX => {}
            many => {
                self.note("to", Err(format!("must be at most {RECIPIENTS_MAX} with cc and bcc, not {many}")))
            }
        }
        // Enough to show what is wrong with the first ones; all of a million would only show that it can be done.
        for (field, list) in [("to", &email.to), ("cc", &email.cc), ("bcc", &email.bcc)] {
            for (i, mailbox) in list.iter().take(RECIPIENTS_MAX).enumerate() {
                self.mailbox(&format!("{field}[{i}]"), mailbox);
            }
        }
    }

    fn ics(&mut self, ics: &Ics) {
        if !ICS_METHODS.iter().any(|known| known.eq_ignore_ascii_case(&ics.method)) {
            self.note("ics.method", Err(format!("must be one of {}", ICS_METHODS.join(", "))));
        }
        let begins = ics.content.get(..15).is_some_and(|begin| begin.eq_ignore_ascii_case("BEGIN:VCALENDAR"));
        if !begins {
            self.note("ics.content", Err("is no calendar: it must begin with BEGIN:VCALENDAR".to_owned()));
        }
        if ics.content.contains('\0') {
            self.note("ics.content", Err("has a NUL".to_owned()));
        }
    }

    fn attachment(&mut self, field: &str, attachment: &Attachment) {
        self.note(&format!("{field}.name"), check_file_name(&attachment.name));
        self.note(&format!("{field}.content_type"), check_content_type(&attachment.content_type));
        if !is_base64(&attachment.base64) {
            let wrong = "is not base64 (A-Z a-z 0-9 + / with = at the end, no line breaks)";
            self.note(&format!("{field}.base64"), Err(wrong.to_owned()));
        }
    }
}

fn is_empty(email: &Email) -> bool {
    let none = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
    let words = !email.subject.is_empty() || !none(&email.text) || !none(&email.html);
    !words && email.ics.is_none() && email.attachments.is_empty()
}

fn check_file_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("is empty".to_owned());
    }
    if name.contains(['/', '\\']) {
        return Err("has a slash: a name, not a path, is wanted".to_owned());
    }
    check_text(name, NAME_BYTES_MAX)
}

/// A type and a subtype, perhaps with parameters: `text/csv; charset=utf-8`.
fn check_content_type(text: &str) -> Result<(), String> {
    check_text(text, CONTENT_TYPE_BYTES_MAX)?;
    let wrong = || Err("must be a type and a subtype, such as application/pdf".to_owned());
    let mut parts = text.split(';');
    let Some((kind, subtype)) = parts.next().and_then(|essence| essence.trim_end().split_once('/')) else {
        return wrong();
    };
    if !is_token(kind) || !is_token(subtype) {
        return wrong();
    }
    if kind.eq_ignore_ascii_case("multipart") || kind.eq_ignore_ascii_case("message") {
        return Err(format!(
            "must not be {kind}/…, whose bytes can't be encoded: application/octet-stream will do"
        ));
    }
    for parameter in parts {
        let fits = parameter.trim().split_once('=').is_some_and(|(name, value)| {
            is_token(name) && is_token(value) && !name.eq_ignore_ascii_case("name")
        });
        if !fits {
            return Err("must have parameters such as charset=utf-8, and its name apart".to_owned());
        }
    }
    Ok(())
}

/// A Message-ID, with its angle brackets or without.
fn check_message_id(id: &str) -> Result<(), String> {
    check_text(id, MESSAGE_ID_BYTES_MAX)?;
    let bare = match (id.strip_prefix('<'), id.strip_suffix('>')) {
        (Some(_), Some(_)) => &id[1..id.len() - 1],
        _ => id,
    };
    let fits = |part: &str| {
        let fits = |c: char| c.is_ascii_graphic() && !"<>(),;\\\"@".contains(c);
        !part.is_empty() && part.chars().all(fits)
    };
    match bare.split_once('@') {
        Some((left, right)) if fits(left) && fits(right) => Ok(()),
        _ => Err("must be a Message-ID such as <17@example.org>".to_owned()),
    }
}
