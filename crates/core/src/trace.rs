//! Which trace a message belongs to: the W3C header `traceparent`, kept among its headers. It says where a message came
//! from, not what it is, so it is no part of the content's hash.

use crate::content::Content;

/// The header's name.
pub const TRACEPARENT: &str = "traceparent";

/// Whether this is a `traceparent` as W3C writes it: version, trace, parent and flags, in small hex digits.
pub fn is_traceparent(text: &str) -> bool {
    let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let is_id =
        |part: &str, len: usize| part.len() == len && is_hex(part) && part.bytes().any(|byte| byte != b'0');
    let parts: Vec<&str> = text.splitn(5, '-').collect();
    match parts[..] {
        ["00", trace, parent, flags] => {
            is_id(trace, 32) && is_id(parent, 16) && flags.len() == 2 && is_hex(flags)
        }
        _ => false,
    }
}

/// Whether a header of this name says which trace a message belongs to.
pub fn is_name(name: &str) -> bool {
    name.eq_ignore_ascii_case(TRACEPARENT)
}

impl Content {
    /// The trace that it belongs to, if its headers say so in a way that can be read.
    pub fn traceparent(&self) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(name, _)| is_name(name))?;
        std::str::from_utf8(value).ok().filter(|text| is_traceparent(text))
    }

    /// The same as part of this trace, if it is written as it should be and the content has none of its own.
    pub fn in_trace(mut self, traceparent: Option<&str>) -> Self {
        if let Some(text) = traceparent.filter(|text| is_traceparent(text))
            && !self.headers.iter().any(|(name, _)| is_name(name))
        {
            self.headers.push((TRACEPARENT.to_owned(), text.to_owned().into()));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn only_what_w3c_writes_is_a_traceparent() {
        assert!(is_traceparent(TRACE));
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-é",
        ] {
            assert!(!is_traceparent(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_trace_is_kept_with_a_message_and_does_not_make_it_another_one() {
        let plain = Content::of_bytes("body");
        let traced = plain.clone().in_trace(Some(TRACE));
        assert_eq!(traced.traceparent(), Some(TRACE));
        assert_eq!(traced.hash(&"email".into()), plain.hash(&"email".into()));
        let other = TRACE.replace("b7", "c7");
        assert_eq!(traced.in_trace(Some(&other)).traceparent(), Some(TRACE), "its own stays");
        assert_eq!(plain.clone().in_trace(Some("nonsense")), plain);
        assert_eq!(plain.clone().in_trace(None).traceparent(), None);
    }
}
