//! A mail by flags.

use std::path::Path;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redeliver_core::email::{Attachment, Email, Ics, Mailbox};

use super::read;
use crate::args::MailArgs;
use crate::exit::Usage;

/// What the bytes of a file are, by the end of its name. What isn't here is octets, which every reader can save.
const TYPES: [(&str, &str); 14] = [
    ("csv", "text/csv"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("gif", "image/gif"),
    ("html", "text/html"),
    ("ics", "text/calendar"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("zip", "application/zip"),
];

const OCTETS: &str = "application/octet-stream";

/// The mail that the flags say. Whether it can be sent is for whoever accepts it to say.
pub(super) fn email(args: &MailArgs) -> anyhow::Result<Email> {
    if args.text.as_deref() == Some("-") && args.html.as_deref() == Some("-") {
        return Err(Usage("only one of --text and --html can be read from standard input".to_owned()).into());
    }
    let mailboxes = |said: &[String]| said.iter().map(|text| mailbox(text)).collect();
    Ok(Email {
        from: args.from.as_deref().map(mailbox),
        reply_to: args.reply_to.as_deref().map(mailbox),
        to: mailboxes(&args.to),
        cc: mailboxes(&args.cc),
        bcc: mailboxes(&args.bcc),
        subject: args.subject.clone().unwrap_or_default(),
        text: args.text.as_deref().map(text).transpose()?,
        html: args.html.as_deref().map(text).transpose()?,
        ics: args.ics.as_deref().map(|path| ics(path, args.method.as_deref())).transpose()?,
        attachments: args.attach.iter().map(|path| attachment(path)).collect::<anyhow::Result<_>>()?,
        ..Email::default()
    })
}

/// A text as it is said, or from standard input.
pub(in crate::commands) fn text(said: &str) -> anyhow::Result<String> {
    match said {
        "-" => String::from_utf8(read(Path::new("-"))?).context("what comes on standard input is no UTF-8"),
        text => Ok(text.to_owned()),
    }
}

/// `ada@example.org`, or `Ada <ada@example.org>`.
pub(in crate::commands) fn mailbox(text: &str) -> Mailbox {
    let named = text.trim().strip_suffix('>').and_then(|text| text.rsplit_once('<'));
    let (name, address) = named.unwrap_or(("", text));
    let name = name.trim().trim_matches('"').trim();
    Mailbox {
        address: address.trim().to_owned(),
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
    }
}

fn ics(path: &Path, method: Option<&str>) -> anyhow::Result<Ics> {
    let content = String::from_utf8(read(path)?)
        .map_err(|_| Usage(format!("{} is no calendar: it is no UTF-8", path.display())))?;
    Ok(Ics { content, method: method.unwrap_or("REQUEST").to_ascii_uppercase() })
}

fn attachment(path: &Path) -> anyhow::Result<Attachment> {
    let named = path.file_name().and_then(|name| name.to_str());
    let name = named.ok_or_else(|| Usage(format!("{} has no name to send it by", path.display())))?;
    let end = name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default();
    let content_type = TYPES.iter().find(|(known, _)| *known == end).map_or(OCTETS, |(_, kind)| kind);
    Ok(Attachment {
        name: name.to_owned(),
        content_type: content_type.to_owned(),
        base64: STANDARD.encode(read(path)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_a_name() {
        let check = |text: &str, address: &str, name: Option<&str>| {
            let expected = Mailbox { address: address.to_owned(), name: name.map(str::to_owned) };
            assert_eq!(mailbox(text), expected, "{text}");
        };
        check("ada@example.org", "ada@example.org", None);
        check(" <ada@example.org> ", "ada@example.org", None);
        check("Ada Lovelace <ada@example.org>", "ada@example.org", Some("Ada Lovelace"));
        check("\"Lovelace, Ada\" <ada@example.org>", "ada@example.org", Some("Lovelace, Ada"));
        check("", "", None);
    }
}
