//! Writes the insides of parts so that every server passes them on unchanged: ASCII, in short lines.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Encoded lines have at most this many bytes.
const LINE_BYTES: usize = 76;

/// How a part's bytes are written, as its header says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    SevenBit,
    QuotedPrintable,
    Base64,
}

impl Encoding {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::SevenBit => "7bit",
            Self::QuotedPrintable => "quoted-printable",
            Self::Base64 => "base64",
        }
    }
}

/// A text with the line ends that mail has, in the encoding that suits it.
pub(super) fn text(text: &str) -> (Encoding, String) {
    let text = text.replace("\r\n", "\n").replace(['\r', '\n'], "\r\n");
    if is_harmless(&text) {
        return (Encoding::SevenBit, text);
    }
    let quoted = quoted_printable(&text);
    let base64 = bytes(text.as_bytes());
    // Mostly ASCII stays readable; other scripts would grow threefold.
    if quoted.len() <= base64.len().max(text.len() * 3 / 2) {
        (Encoding::QuotedPrintable, quoted)
    } else {
        (Encoding::Base64, base64)
    }
}

/// Bytes in base64, in lines.
pub(super) fn bytes(bytes: &[u8]) -> String {
    let encoded = STANDARD.encode(bytes);
    let mut out = String::with_capacity(encoded.len() + encoded.len() / LINE_BYTES * 2 + 2);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE_BYTES));
        out.push_str(line);
        out.push_str("\r\n");
        rest = after;
    }
    out
}

/// Whether a text needs no encoding: short lines of ASCII, no blanks at their ends that somebody might strip, and
/// nothing that looks like a boundary of ours.
fn is_harmless(text: &str) -> bool {
    let fits = |line: &str| {
        line.len() <= LINE_BYTES
            && !line.ends_with([' ', '\t'])
            && line.chars().all(|c| matches!(c, ' '..='~' | '\t'))
    };
    text.split("\r\n").all(fits) && !text.contains("=_")
}

fn quoted_printable(text: &str) -> String {
    let mut out = String::new();
    for (i, line) in text.split("\r\n").enumerate() {
        if i > 0 {
            out.push_str("\r\n");
        }
        let mut column = 0;
        let count = line.len();
        for (at, byte) in line.bytes().enumerate() {
            let is_last = at + 1 == count;
            let written = match byte {
                b' ' | b'\t' if !is_last => char::from(byte).to_string(),
                b'!'..=b'<' | b'>'..=b'~' => char::from(byte).to_string(),
                _ => format!("={byte:02X}"),
            };
            // One byte is kept for the sign that the line goes on.
            if column + written.len() > LINE_BYTES - 1 {
                out.push_str("=\r\n");
                column = 0;
            }
            column += written.len();
            out.push_str(&written);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_text_stays_as_it_is_with_the_line_ends_of_mail() {
        assert_eq!(text("Hello,\nworld.\r\n"), (Encoding::SevenBit, "Hello,\r\nworld.\r\n".to_owned()));
        assert_eq!(text("a\rb\n.\n"), (Encoding::SevenBit, "a\r\nb\r\n.\r\n".to_owned()));
    }

    #[test]
    fn text_that_could_suffer_is_encoded() {
        assert_eq!(
            text("Viele Grüße aus Wien "),
            (Encoding::QuotedPrintable, "Viele Gr=C3=BC=C3=9Fe aus Wien=20".to_owned())
        );
        assert_eq!(text("a = b\t"), (Encoding::QuotedPrintable, "a =3D b=09".to_owned()));
        assert_eq!(text("--=_x"), (Encoding::QuotedPrintable, "--=3D_x".to_owned()));
        assert_eq!(text("日本語の手紙").0, Encoding::Base64);
        let (encoding, long) = text(&"x".repeat(5_000));
        assert_eq!(encoding, Encoding::QuotedPrintable);
        assert!(long.split("\r\n").all(|line| line.len() <= LINE_BYTES));
        assert_eq!(long.replace("=\r\n", ""), "x".repeat(5_000));
    }

    #[test]
    fn bytes_are_written_in_lines() {
        let written = bytes(&[0xFF; 200]);
        assert!(written.lines().all(|line| line.len() <= LINE_BYTES));
        assert_eq!(STANDARD.decode(written.replace("\r\n", "")).unwrap(), [0xFF; 200]);
        assert_eq!(bytes(&[]), "");
    }
}
