//! Texts that become part of a header: what they must not hold, whatever they are.

/// Refuses what could end a header's line, hide from a reader or upset a parser, and what is too long. What is said
/// goes on from the field's name.
pub(super) fn check_text(text: &str, bytes_max: usize) -> Result<(), String> {
    if text.len() > bytes_max {
        return Err(format!("must have at most {bytes_max} bytes, not {}", text.len()));
    }
    let hostile = text.chars().enumerate().find_map(|(at, c)| Some((at, hostile(c)?)));
    match hostile {
        Some((at, what)) => Err(format!("has {what} as character {}", at + 1)),
        None => Ok(()),
    }
}

/// What a character is that must not be part of a header.
fn hostile(c: char) -> Option<String> {
    match c {
        '\r' => Some("a carriage return".to_owned()),
        '\n' => Some("a line feed".to_owned()),
        '\0' => Some("a NUL".to_owned()),
        '\t' => Some("a tab".to_owned()),
        '\u{2028}' | '\u{2029}' => Some(format!("a line separator (U+{:04X})", u32::from(c))),
        c if c.is_control() => Some(format!("a control character (U+{:04X})", u32::from(c))),
        _ => None,
    }
}

/// Whether a text is a token of RFC 2045: what types and parameters are made of.
pub(super) fn is_token(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_graphic() && !"()<>@,;:\\\"/[]?=".contains(c);
    !text.is_empty() && text.chars().all(fits)
}

/// Whether a text is base64 as RFC 4648 writes it: with padding, without line breaks, nothing in the spare bits.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let spare_bits = match padding {
        0 => 0,
        1 => 0b11,
        2 => 0b1111,
        _ => return false,
    };
    let last = digits.bytes().last().and_then(value).unwrap_or(0);
    text.len().is_multiple_of(4) && digits.bytes().all(|byte| value(byte).is_some()) && last & spare_bits == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_told_from_what_only_looks_like_it() {
        for text in ["", "QQ==", "QUI=", "QUJD", "+/+/", "QUJDRA=="] {
            assert!(is_base64(text), "{text}");
        }
        for text in [
            "Q", "QQ", "QQ=", "QQ===", "=", "====", "QR==", "QUJ=", "QU=J", "QQ==QQ==", "QUJD\n", "QU-_",
            "é===",
        ] {
            assert!(!is_base64(text), "{text}");
        }
    }

    #[test]
    fn tokens_have_no_specials() {
        assert!(is_token("x-foo.bar+xml"));
        for text in ["", "a b", "a/b", "a;b", "a\"", "é", "a\r\n"] {
            assert!(!is_token(text), "{text}");
        }
    }

    #[test]
    fn a_text_says_where_its_trouble_is() {
        assert_eq!(check_text("héllo wörld", 99), Ok(()));
        assert_eq!(check_text("é\nx", 99), Err("has a line feed as character 2".to_owned()));
        assert_eq!(check_text("abc", 2), Err("must have at most 2 bytes, not 3".to_owned()));
        assert_eq!(
            check_text("\u{85}", 9),
            Err("has a control character (U+0085) as character 1".to_owned())
        );
    }
}
