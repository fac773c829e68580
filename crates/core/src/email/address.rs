//! The grammar of addresses: only what can stand in an envelope and in a header without quoting.

use super::word::check_text;

/// The longest address, by RFC 5321 with its erratum.
pub const ADDRESS_BYTES_MAX: usize = 254;
/// The longest part before the `@`.
pub const LOCAL_BYTES_MAX: usize = 64;
/// The longest part after it.
pub const DOMAIN_BYTES_MAX: usize = 255;
/// The longest part of a domain between two dots.
const LABEL_BYTES_MAX: usize = 63;
/// What may stand in a local part beside letters and digits, dots aside.
const ATOM: &str = "!#$%&'*+-/=?^_`{|}~";

/// What is wrong with an address, in words that go on from its field's name.
///
/// Quoted local parts, address literals, comments and routes are refused: nobody has them, and every one of them is
/// a way to smuggle something past somebody.
pub fn check_address(address: &str) -> Result<(), String> {
    if address.is_empty() {
        return Err("is empty".to_owned());
    }
    check_text(address, ADDRESS_BYTES_MAX)?;
    if address.contains('"') {
        return Err("has a quotation mark; quoted local parts are not taken".to_owned());
    }
    if address.contains(char::is_whitespace) {
        return Err("has a space".to_owned());
    }
    let Some((local, domain)) = address.split_once('@') else {
        return Err("has no @".to_owned());
    };
    if domain.contains('@') {
        return Err("has more than one @".to_owned());
    }
    check_local(local)?;
    check_domain(domain)
}

fn check_local(local: &str) -> Result<(), String> {
    if local.is_empty() || local.len() > LOCAL_BYTES_MAX {
        return Err(format!("must have 1 to {LOCAL_BYTES_MAX} bytes before its @, not {}", local.len()));
    }
    if local.split('.').any(str::is_empty) {
        return Err("has a dot too many before its @".to_owned());
    }
    let fits = |c: char| c == '.' || c.is_ascii_alphanumeric() || ATOM.contains(c) || is_foreign_letter(c);
    check_each("before its @", local, fits)
}

fn check_domain(domain: &str) -> Result<(), String> {
    if domain.is_empty() || domain.len() > DOMAIN_BYTES_MAX {
        return Err(format!("must have 1 to {DOMAIN_BYTES_MAX} bytes after its @, not {}", domain.len()));
    }
    let fits = |c: char| c == '.' || c == '-' || c.is_ascii_alphanumeric() || is_foreign_letter(c);
    check_each("after its @", domain, fits)?;
    for label in domain.split('.') {
        if label.is_empty() || label.len() > LABEL_BYTES_MAX {
            return Err(format!("has a domain with a part of {} bytes between its dots", label.len()));
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err("has a domain with a part that begins or ends with -".to_owned());
        }
    }
    Ok(())
}

fn check_each(place: &str, text: &str, fits: impl Fn(char) -> bool) -> Result<(), String> {
    match text.chars().find(|c| !fits(*c)) {
        Some(c) if c.is_ascii() => Err(format!("has {c:?} {place}")),
        Some(c) => Err(format!("has U+{:04X} {place}", u32::from(c))),
        None => Ok(()),
    }
}

/// Whether a character beyond ASCII can be part of an address: not one that is unseen, turns the reading direction
/// or is another writing of an ASCII character. The transport asks IDNA about the domain once more.
fn is_foreign_letter(c: char) -> bool {
    let odd = matches!(u32::from(c),
        0x80..=0xA9 | 0xAB..=0xB4 | 0xB6..=0xB9 | 0xBB..=0xBF | 0xD7 | 0xF7 // signs of Latin-1
        | 0x2000..=0x200B | 0x200E..=0x206F | 0x2100..=0x214F // spaces, marks and letter-like signs
        | 0x3002 | 0xE000..=0xF8FF | 0xFE00..=0xFE6F | 0xFEFF | 0xFF00..=0xFFFF | 0xE0000..);
    !c.is_ascii() && !odd && !c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_have_is_taken() {
        for address in [
            "ada@example.org",
            "a.b+tag@mail.example.co.uk",
            "o'brien_{x}@example.org",
            "root@localhost",
            "x@1und1.de",
            "käthe@example.org",
            "用户@例子.测试",
            "info@bücher.example",
            "हिन्दी@डाटामेल.भारत",
            "a@xn--bcher-kva.example",
        ] {
            assert_eq!(check_address(address), Ok(()), "{address}");
        }
    }

    #[test]
    fn what_nobody_has_is_refused() {
        let long = |local: usize, domain: usize| format!("{}@{}", "l".repeat(local), "d".repeat(domain));
        let many = format!("a@{}example.org", "d.".repeat(125));
        for address in [
            "",
            "ada",
            "@example.org",
            "ada@",
            "ada@@example.org",
            "ada@evil.example@example.org",
            "ada lovelace@example.org",
            " ada@example.org",
            "ada@example.org ",
            "\"ada\"@example.org",
            "\"a@b\"@example.org",
            "<ada@example.org>",
            "Ada <ada@example.org>",
            "ada@example.org,bob@example.org",
            "ada@example.org;bob@example.org",
            "ada(comment)@example.org",
            "@relay.example:ada@example.org",
            "ada@[192.0.2.1]",
            "ada@[IPv6:::1]",
            "ada\\@example.org",
            ".ada@example.org",
            "ada.@example.org",
            "a..da@example.org",
            "ada@.example.org",
            "ada@example..org",
            "ada@example.org.",
            "ada@-example.org",
            "ada@example-.org",
            "ada@exa_mple.org",
            "ada@exa!mple.org",
            "ada@ex\u{FF20}ample.org",
            "ada@example\u{3002}org",
            "ada\u{FF1E}@example.org",
            "ada\u{200B}@example.org",
            "ada@exam\u{202E}ple.org",
            "ada\u{A0}lovelace@example.org",
            "ada@example.org\u{FEFF}",
            &long(65, 10),
            &long(10, 64),
            &many,
        ] {
            assert!(check_address(address).is_err(), "{address}");
        }
    }
}
