//! A mail as it is kept in `.eml` files, made into one that can be accepted.
//!
//! What it says, to whom, and what comes with it is kept. Headers that a mail is given on its way are not: it starts
//! anew.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail_parser::{Address, HeaderValue, Message, MessageParser, MessagePart, MimeHeaders, PartType};
use redeliver_core::email::{Attachment, Email, Ics, Mailbox};

use crate::exit::Usage;

/// Reads a mail. Everybody in To, Cc and Bcc gets it; those in Bcc without the others' knowing.
pub(super) fn email(bytes: &[u8]) -> anyhow::Result<Email> {
    let mail = MessageParser::default().parse(bytes).filter(|mail| !mail.headers().is_empty());
    let mail = mail.ok_or_else(|| Usage("this is no mail: it has no headers".to_owned()))?;
    let mut email = Email {
        from: mail.from().and_then(|from| mailboxes([from]).into_iter().next()),
        reply_to: mail.reply_to().and_then(|reply_to| mailboxes([reply_to]).into_iter().next()),
        to: mailboxes(mail.all_to()),
        cc: mailboxes(mail.all_cc()),
        bcc: mailboxes(mail.all_bcc()),
        subject: mail.subject().unwrap_or_default().to_owned(),
        in_reply_to: ids(mail.in_reply_to()).into_iter().next(),
        references: ids(mail.references()),
        ..Email::default()
    };
    if email.recipients().next().is_none() {
        return Err(Usage("this mail has nobody in To, Cc or Bcc".to_owned()).into());
    }
    add_parts(&mut email, &mail);
    Ok(email)
}

/// The first text, HTML and calendar are what the mail says; whatever else it has comes with it.
fn add_parts(email: &mut Email, mail: &Message<'_>) {
    for part in &mail.parts {
        let is_attached = part.content_disposition().is_some_and(|said| said.is_attachment());
        match &part.body {
            PartType::Multipart(_) => {}
            PartType::Text(text)
                if !is_attached && email.ics.is_none() && part.is_content_type("text", "calendar") =>
            {
                let method = part.content_type().and_then(|said| said.attribute("method"));
                let method = method.unwrap_or("REQUEST").to_ascii_uppercase();
                email.ics = Some(Ics { content: text.to_string(), method });
            }
            PartType::Text(text) if !is_attached && email.text.is_none() => {
                email.text = Some(text.to_string())
            }
            PartType::Html(html) if !is_attached && email.html.is_none() => {
                email.html = Some(html.to_string())
            }
            PartType::Text(text) | PartType::Html(text) => attach(email, part, text.as_bytes()),
            PartType::Binary(bytes) | PartType::InlineBinary(bytes) => attach(email, part, bytes),
            PartType::Message(inner) => attach(email, part, inner.raw_message()),
        }
    }
}

fn attach(email: &mut Email, part: &MessagePart<'_>, bytes: &[u8]) {
    let number = email.attachments.len() + 1;
    let name = part.attachment_name().map_or_else(|| format!("attachment-{number}"), str::to_owned);
    let content_type = match part.content_type() {
        Some(said) => format!("{}/{}", said.ctype(), said.subtype().unwrap_or("octet-stream")),
        None => "application/octet-stream".to_owned(),
    };
    email.attachments.push(Attachment { name, content_type, base64: STANDARD.encode(bytes) });
}

fn mailboxes<'a>(lists: impl IntoIterator<Item = &'a Address<'a>>) -> Vec<Mailbox> {
    let each = lists.into_iter().flat_map(Address::iter);
    let mailbox = |address: &mail_parser::Addr<'_>| {
        let name = address.name().filter(|name| !name.is_empty()).map(str::to_owned);
        Some(Mailbox { address: address.address()?.to_owned(), name })
    };
    each.filter_map(mailbox).collect()
}

fn ids(said: &HeaderValue<'_>) -> Vec<String> {
    match said {
        HeaderValue::Text(id) => vec![id.to_string()],
        HeaderValue::TextList(ids) => ids.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &str = "Received: from elsewhere\r\n\
        From: Grace <grace@example.org>\r\n\
        To: =?utf-8?Q?Ad=C3=A4?= <ada@example.org>, bob@example.org\r\n\
        Cc: Friends: carol@example.org;\r\n\
        Bcc: secret@example.org\r\n\
        Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\n\
        In-Reply-To: <1@example.org>\r\n\
        References: <0@example.org> <1@example.org>\r\n\
        MIME-Version: 1.0\r\n\
        Content-Type: multipart/mixed; boundary=m\r\n\r\n\
        --m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n\
        --a\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
        Tsch=C3=BCss\r\n\
        --a\r\nContent-Type: text/html\r\n\r\n<p>Bye</p>\r\n\
        --a\r\nContent-Type: text/calendar; method=cancel\r\n\r\nBEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n\
        --a--\r\n\
        --m\r\nContent-Type: application/pdf; name=a.pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\
        Content-Transfer-Encoding: base64\r\n\r\nAAEC\r\n\
        --m\r\nContent-Type: text/plain\r\nContent-Disposition: attachment\r\n\r\nnotes\r\n\
        --m--\r\n";

    #[test]
    fn a_kept_mail_says_the_same_when_it_is_sent() {
        let email = email(MAIL.as_bytes()).unwrap();
        let addresses: Vec<&str> = email.recipients().map(|mailbox| mailbox.address.as_str()).collect();
        let everybody = ["ada@example.org", "bob@example.org", "carol@example.org", "secret@example.org"];
        assert_eq!(addresses, everybody);
        assert_eq!(email.to[0].name.as_deref(), Some("Adä"));
        assert_eq!((email.bcc.len(), email.subject.as_str()), (1, "Grüße"));
        assert_eq!(email.in_reply_to.as_deref(), Some("1@example.org"));
        assert_eq!(email.references, ["0@example.org", "1@example.org"]);
        assert_eq!(email.text.as_deref().map(str::trim_end), Some("Tschüss"));
        assert_eq!(email.html.as_deref().map(str::trim_end), Some("<p>Bye</p>"));
        let ics = email.ics.as_ref().unwrap();
        assert!(ics.content.starts_with("BEGIN:VCALENDAR") && ics.method == "CANCEL", "{ics:?}");
        let attached: Vec<(&str, &str)> =
            email.attachments.iter().map(|file| (file.name.as_str(), file.content_type.as_str())).collect();
        assert_eq!(attached, [("a.pdf", "application/pdf"), ("attachment-2", "text/plain")]);
        assert_eq!(email.attachments[0].base64, "AAEC");
        assert!(email.problems().is_empty(), "{:?}", email.problems());
    }

    #[test]
    fn what_is_no_mail_or_for_nobody_is_refused() {
        for text in ["", "hello", "Subject: nobody\r\n\r\nhi\r\n"] {
            assert!(email(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
