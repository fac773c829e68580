//! Where the next page of a list begins: opaque, so that nobody builds one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use redeliver_core::MessageId;

/// The cursor behind this message.
pub fn behind(id: &MessageId) -> String {
    URL_SAFE_NO_PAD.encode(id.to_string())
}

/// The message that a cursor stands behind.
pub fn read(text: &str) -> Result<MessageId, String> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    let id = bytes.and_then(|bytes| String::from_utf8(bytes).ok()?.parse().ok());
    id.ok_or_else(|| "is no cursor: give the \"next\" of the page before".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_written_and_read_and_anything_else_is_none() {
        for id in [MessageId::own(17), MessageId::Row("log:a b".into())] {
            assert_eq!(read(&behind(&id)), Ok(id));
        }
        for text in ["", "x", "=", "bm8", "\u{0}"] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
}
