//! The parts of a mail and how they lie within each other.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use redeliver_core::email::{Attachment, Email, Ics};

use super::body::{self, Encoding};
use super::header;

/// What calendar clients expect the file of an invitation to be called.
const ICS_FILE: &str = "invite.ics";

/// Everything behind the mail's own headers: the rest of the headers, an empty line, the body.
///
/// mixed( alternative( text, html, calendar ), invite.ics, files… ), without the levels that hold only one.
pub(super) fn whole(email: &Email, boundary: &str) -> Result<String, String> {
    let mut ways: Vec<String> = Vec::new();
    ways.extend(email.text.as_deref().map(|text| words("text/plain", text)));
    ways.extend(email.html.as_deref().map(|html| words("text/html", html)));
    ways.extend(email.ics.as_ref().map(calendar));
    if ways.is_empty() {
        ways.push(words("text/plain", ""));
    }
    let first = joined("multipart/alternative", &format!("{boundary}.a"), ways);
    let mut parts = vec![first];
    parts
        .extend(email.ics.as_ref().map(|ics| file("application/ics", &[], ICS_FILE, ics.content.as_bytes())));
    for attachment in &email.attachments {
        parts.push(attached(attachment)?);
    }
    Ok(joined("multipart/mixed", &format!("{boundary}.m"), parts))
}

/// The only part, or all of them in one.
fn joined(kind: &str, boundary: &str, parts: Vec<String>) -> String {
    match <[String; 1]>::try_from(parts) {
        Ok([only]) => only,
        Err(parts) => {
            let mut out = String::new();
            header::with_parameters(&mut out, "Content-Type", kind, &[("boundary", boundary)]);
            out.push_str("\r\n");
            for part in parts {
                out.push_str(&format!("--{boundary}\r\n{part}\r\n"));
            }
            out.push_str(&format!("--{boundary}--\r\n"));
            out
        }
    }
}

fn words(kind: &str, text: &str) -> String {
    let (encoding, inside) = body::text(text);
    part(kind, &[("charset", "utf-8")], encoding, None, &inside)
}

/// The calendar as another way to show the mail. In base64, because its line ends are part of it.
fn calendar(ics: &Ics) -> String {
    let method = ics.method.to_ascii_uppercase();
    let parameters = [("charset", "utf-8"), ("method", method.as_str())];
    part("text/calendar", &parameters, Encoding::Base64, None, &body::bytes(ics.content.as_bytes()))
}

fn attached(attachment: &Attachment) -> Result<String, String> {
    let bytes = STANDARD.decode(&attachment.base64).map_err(|_| "attachment is not base64")?;
    let mut pieces = attachment.content_type.split(';').map(str::trim);
    let kind = pieces.next().unwrap_or("application/octet-stream");
    let parameters: Vec<(&str, &str)> = pieces.filter_map(|piece| piece.split_once('=')).collect();
    Ok(file(kind, &parameters, &attachment.name, &bytes))
}

fn file(kind: &str, parameters: &[(&str, &str)], name: &str, bytes: &[u8]) -> String {
    let parameters = [parameters, &[("name", name)]].concat();
    part(kind, &parameters, Encoding::Base64, Some(name), &body::bytes(bytes))
}

fn part(
    kind: &str,
    parameters: &[(&str, &str)],
    encoding: Encoding,
    file_name: Option<&str>,
    inside: &str,
) -> String {
    let mut out = String::new();
    header::with_parameters(&mut out, "Content-Type", kind, parameters);
    header::plain(&mut out, "Content-Transfer-Encoding", &[encoding.name()]);
    if let Some(name) = file_name {
        header::with_parameters(&mut out, "Content-Disposition", "attachment", &[("filename", name)]);
    }
    out.push_str("\r\n");
    out.push_str(inside);
    out
}
