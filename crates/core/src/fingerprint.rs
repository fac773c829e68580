//! Which errors are the same error: what differs from message to message is left out of them.

use crate::outcome::Failure;

/// An error without what differs from message to message: addresses, numbers, names that are half numbers.
pub fn shape(failure: &Failure) -> String {
    let words = failure.text.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    match failure.code_in_front() {
        Some(code) => format!("{code} {words}"),
        None => words,
    }
}

/// A short name for all errors of the same shape.
pub fn fingerprint(failure: Option<&Failure>) -> String {
    let shape = failure.map(shape).unwrap_or_default();
    // FNV-1a: it tells a few hundred texts apart and is the same everywhere.
    let hash = shape.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// A word as it is in every such error. A reply code and an enhanced code are the same for all, and say the most.
fn word(word: &str) -> String {
    let core = word.trim_matches(|c: char| !c.is_alphanumeric());
    if core.contains('@') {
        return "(address)".to_owned();
    }
    let digits = core.chars().filter(char::is_ascii_digit).count();
    let is_code = core.len() <= 5 && core.chars().all(|c| c.is_ascii_digit() || c == '.');
    match digits {
        0 => word.to_lowercase(),
        _ if is_code && (core.len() == 3 || core.contains('.')) => core.to_owned(),
        _ => "#".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_error_about_different_messages_is_one() {
        let same = |one: &str, other: &str| {
            fingerprint(Some(&Failure::new(one))) == fingerprint(Some(&Failure::new(other)))
        };
        assert!(same(
            "550 5.1.1 <ada@example.org>: no such user",
            "550 5.1.1 <grace@example.com>: No such user"
        ));
        assert!(same("timeout after 3012 ms (id 4XbK1f)", "timeout after 2999 ms (id 9ZZk77)"));
        assert!(!same("550 5.1.1 no such user", "550 5.2.2 no such user"));
        assert!(!same("451 try again", "452 try again"));
        assert_eq!(shape(&Failure::new("try later").with_code("451")), "451 try later");
        assert_eq!(shape(&Failure::new("RCPT: 451 later").with_code("451")), "rcpt: 451 later");
        assert_eq!(fingerprint(None).len(), 16);
    }
}
