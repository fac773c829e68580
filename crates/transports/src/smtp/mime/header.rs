//! Writes headers: folded, encoded where they must be, no line longer than it may be.
//!
//! What comes in was checked and has no line breaks. All the same nothing here copies a character that could end a
//! line: what isn't plainly harmless is written as base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Where lines are folded, as RFC 5322 recommends; RFC 2047 demands it of encoded words.
const LINE_BYTES: usize = 76;
/// The longest word that is written as it is.
const WORD_BYTES_MAX: usize = 60;
/// Bytes in one encoded word, so that it fits into a line behind the name of its header.
const ENCODED_BYTES: usize = 39;

/// A header of free text, such as a subject.
pub(super) fn text(out: &mut String, name: &str, value: &str) {
    let words = if is_plain(value) { value.split(' ').map(str::to_owned).collect() } else { encoded(value) };
    folded(out, name, &words);
}

/// A header of addresses, perhaps with names; none at all without addresses.
pub(super) fn mailboxes<'a>(
    out: &mut String,
    name: &str,
    list: impl IntoIterator<Item = (Option<&'a str>, &'a str)>,
) {
    let mut words: Vec<String> = Vec::new();
    for (person, address) in list {
        if let Some(last) = words.last_mut() {
            last.push(',');
        }
        match person {
            Some(person) if !person.is_empty() => {
                words.extend(phrase(person));
                words.push(format!("<{address}>"));
            }
            _ => words.push(address.to_owned()),
        }
    }
    if !words.is_empty() {
        folded(out, name, &words);
    }
}

/// A header of words that need no encoding: ids, types, dates.
pub(super) fn plain(out: &mut String, name: &str, words: &[&str]) {
    let words: Vec<String> =
        words.iter().map(|word| word.chars().filter(|c| !c.is_control()).collect()).collect();
    folded(out, name, &words);
}

/// A header of a value and its parameters, each on a line of its own.
pub(super) fn with_parameters(out: &mut String, name: &str, value: &str, parameters: &[(&str, &str)]) {
    out.push_str(name);
    out.push_str(": ");
    out.push_str(value);
    for (key, value) in parameters {
        for piece in parameter(key, value) {
            out.push_str(";\r\n ");
            out.push_str(&piece);
        }
    }
    out.push_str("\r\n");
}

/// A parameter as RFC 2231 writes it: in quotes if that will do, else in pieces of percent signs.
fn parameter(key: &str, value: &str) -> Vec<String> {
    let quotable = value.chars().all(|c| (' '..='~').contains(&c) && c != '"' && c != '\\');
    if quotable && value.len() <= WORD_BYTES_MAX && !value.contains("=?") {
        return vec![format!("{key}=\"{value}\"")];
    }
    let mut pieces = vec!["utf-8''".to_owned()];
    // Whole characters: readers decode each piece for itself.
    for c in value.chars() {
        let mut bytes = [0; 4];
        let written: String = match c {
            '0'..='9' | 'A'..='Z' | 'a'..='z' | '-' | '.' | '_' => c.to_string(),
            c => c.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")).collect(),
        };
        match pieces.last_mut() {
            Some(last) if last.len() + written.len() <= WORD_BYTES_MAX => last.push_str(&written),
            _ => pieces.push(written),
        }
    }
    match &pieces[..] {
        [only] => vec![format!("{key}*={only}")],
        _ => pieces.iter().enumerate().map(|(i, piece)| format!("{key}*{i}*={piece}")).collect(),
    }
}

/// A person's name: as it is, in quotes, or encoded.
fn phrase(name: &str) -> Vec<String> {
    let is_atom =
        |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c));
    if !is_plain(name) || name.len() > WORD_BYTES_MAX {
        return encoded(name);
    }
    if name.split(' ').all(is_atom) {
        return name.split(' ').map(str::to_owned).collect();
    }
    vec![format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))]
}

/// Whether a text comes through folding and reading exactly as it is.
fn is_plain(text: &str) -> bool {
    let printable = text.chars().all(|c| (' '..='~').contains(&c));
    printable
        && !text.contains("=?")
        && text.split(' ').all(|word| (1..=WORD_BYTES_MAX).contains(&word.len()))
}

/// A text as encoded words of RFC 2047, no character torn apart. Readers leave out the spaces between them.
fn encoded(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.floor_char_boundary(ENCODED_BYTES));
        words.push(format!("=?utf-8?B?{}?=", STANDARD.encode(word)));
        rest = after;
    }
    words
}

fn folded(out: &mut String, name: &str, words: &[String]) {
    out.push_str(name);
    out.push(':');
    let mut column = name.len() + 1;
    for (i, word) in words.iter().enumerate() {
        if i > 0 && column + 1 + word.len() > LINE_BYTES {
            out.push_str("\r\n");
            column = 0;
        }
        out.push(' ');
        out.push_str(word);
        column += 1 + word.len();
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(value: &str) -> String {
        let mut out = String::new();
        text(&mut out, "Subject", value);
        out
    }

    #[test]
    fn a_plain_subject_is_written_as_it_is_and_folded_at_its_spaces() {
        assert_eq!(subject("Your booking"), "Subject: Your booking\r\n");
        let long = ["word"; 40].join(" ");
        let written = subject(&long);
        assert!(written.lines().all(|line| line.len() <= LINE_BYTES));
        assert_eq!(written.replace("\r\n ", " "), format!("Subject: {long}\r\n"));
    }

    #[test]
    fn what_is_not_plain_is_encoded_whole_characters_at_a_time() {
        assert_eq!(subject("Grüße"), "Subject: =?utf-8?B?R3LDvMOfZQ==?=\r\n");
        for odd in [
            "two  spaces",
            " first",
            "last ",
            "=?utf-8?Q?=0D=0ABcc:?=",
            &"x".repeat(2_000),
            &"日本".repeat(300),
        ] {
            let written = subject(odd);
            assert!(written.lines().all(|line| line.len() <= LINE_BYTES), "{written}");
            let words = written.trim_end().trim_start_matches("Subject: ").split("\r\n ");
            let read: String = words
                .map(|word| {
                    let base64 = word.strip_prefix("=?utf-8?B?").unwrap().strip_suffix("?=").unwrap();
                    String::from_utf8(STANDARD.decode(base64).unwrap()).unwrap()
                })
                .collect();
            assert_eq!(read, odd);
        }
    }

    #[test]
    fn names_are_written_plainly_in_quotes_or_encoded() {
        let check = |name: &str, written: &str| {
            let mut out = String::new();
            mailboxes(&mut out, "To", [(Some(name), "a@b")]);
            assert_eq!(out, format!("To: {written} <a@b>\r\n"));
        };
        check("Ada Lovelace", "Ada Lovelace");
        check("Lovelace, Ada", "\"Lovelace, Ada\"");
        check("A \"B\" \\ C <x@y>", "\"A \\\"B\\\" \\\\ C <x@y>\"");
        check("Käthe", "=?utf-8?B?S8OkdGhl?=");
        let mut out = String::new();
        mailboxes(&mut out, "To", [(None, "a@b"), (Some(""), "c@d"), (Some("E"), "e@f")]);
        assert_eq!(out, "To: a@b, c@d, E <e@f>\r\n");
    }

    #[test]
    fn a_parameter_is_quoted_or_cut_into_pieces() {
        assert_eq!(parameter("filename", "a b.pdf"), ["filename=\"a b.pdf\""]);
        assert_eq!(parameter("filename", "ü\".pdf"), ["filename*=utf-8''%C3%BC%22.pdf"]);
        let pieces = parameter("filename", &"日本".repeat(20));
        assert!(pieces.len() > 2 && pieces[1].starts_with("filename*1*=%"), "{pieces:?}");
        assert!(pieces.iter().all(|piece| piece.len() <= LINE_BYTES));
    }
}
