//! Turns an e-mail into the bytes that travel: the same bytes at every try.

mod body;
mod header;
mod part;

use redeliver_core::email::{Email, Mailbox, check_address, message_id};
use redeliver_core::{MessageId, Timestamp};

/// An e-mail, ready to be handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The sender's address, for the envelope.
    pub from: String,
    /// The recipients' addresses, for the envelope, in the order of [`Email::recipients`].
    pub to: Vec<String>,
    /// Headers and body.
    pub bytes: Vec<u8>,
    /// Whether only a server with SMTPUTF8 can take it.
    pub needs_smtputf8: bool,
}

/// Writes an e-mail; an error says which field makes that impossible.
///
/// Message-ID, date and boundaries come from the message, so that all tries are the same mail. Who gets it without
/// the others' knowing is in the envelope alone.
pub fn write(email: &Email, sender: &Mailbox, id: &MessageId, sent_at: Timestamp) -> Result<Written, String> {
    if let Some(found) = email.problems().first() {
        return Err(format!("{} {}", found.field, found.problem));
    }
    let sender = email.from.as_ref().unwrap_or(sender);
    let from = ascii_domain(&sender.address).map_err(|wrong| format!("from.address {wrong}"))?;
    let reply_to = addresses("reply_to", &email.reply_to)?;
    let to = addresses("to", &email.to)?;
    let cc = addresses("cc", &email.cc)?;
    let bcc = addresses("bcc", &email.bcc)?;

    let mut head = String::new();
    header::plain(&mut head, "Date", &[&date(sent_at)]);
    header::mailboxes(&mut head, "From", [(sender.name.as_deref(), from.as_str())]);
    header::mailboxes(&mut head, "Reply-To", named(&email.reply_to, &reply_to));
    header::mailboxes(&mut head, "To", named(&email.to, &to));
    header::mailboxes(&mut head, "Cc", named(&email.cc, &cc));
    if to.is_empty() && cc.is_empty() {
        header::plain(&mut head, "To", &["undisclosed-recipients:;"]);
    }
    if !email.subject.is_empty() {
        header::text(&mut head, "Subject", &email.subject);
    }
    header::plain(&mut head, "Message-ID", &[&message_id(id, &from)]);
    if let Some(id) = &email.in_reply_to {
        header::plain(&mut head, "In-Reply-To", &[&bracketed(id)]);
    }
    if !email.references.is_empty() {
        let ids: Vec<String> = email.references.iter().map(|id| bracketed(id)).collect();
        header::plain(&mut head, "References", &ids.iter().map(String::as_str).collect::<Vec<_>>());
    }
    header::plain(&mut head, "MIME-Version", &["1.0"]);
    head.push_str(&part::whole(email, &boundary(id))?);

    let needs_smtputf8 =
        [&reply_to, &to, &cc, &bcc].into_iter().flatten().chain([&from]).any(|a| !a.is_ascii());
    Ok(Written { from, to: [to, cc, bcc].concat(), bytes: head.into_bytes(), needs_smtputf8 })
}

/// The addresses as servers without knowledge of other scripts write their domains.
fn addresses<'a>(field: &str, list: impl IntoIterator<Item = &'a Mailbox>) -> Result<Vec<String>, String> {
    list.into_iter()
        .enumerate()
        .map(|(i, mailbox)| {
            ascii_domain(&mailbox.address).map_err(|wrong| format!("{field}[{i}].address {wrong}"))
        })
        .collect()
}

fn ascii_domain(address: &str) -> Result<String, String> {
    check_address(address)?;
    if address.is_ascii() {
        return Ok(address.to_owned());
    }
    let (local, domain) = address.split_once('@').ok_or("has no @")?;
    let ascii = idna::domain_to_ascii(domain).map_err(|_| "has a domain that cannot exist")?;
    let written = format!("{local}@{ascii}");
    // What IDNA made of it is looked at again: it knows writings of < and @ that are not ASCII.
    check_address(&written)?;
    Ok(written)
}

fn named<'a>(
    people: impl IntoIterator<Item = &'a Mailbox>,
    addresses: &'a [String],
) -> impl Iterator<Item = (Option<&'a str>, &'a str)> {
    people.into_iter().zip(addresses).map(|(person, address)| (person.name.as_deref(), address.as_str()))
}

fn bracketed(id: &str) -> String {
    format!("<{}>", id.trim_matches(['<', '>']))
}

fn date(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.as_ms()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    jiff::fmt::rfc2822::to_string(&at.to_zoned(jiff::tz::TimeZone::UTC)).unwrap_or_default()
}

/// What no encoded part can hold: `=_` is never written by any of the encodings.
fn boundary(id: &MessageId) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let id: String = id.to_string().chars().filter(plain).take(40).collect();
    format!("=_redeliver_{id}")
}

#[cfg(test)]
mod tests;
