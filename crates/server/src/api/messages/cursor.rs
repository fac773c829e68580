//! Where the next page of a list begins: opaque, so that nobody builds one.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use redeliver_core::MessageId;

/// Every text of the right length is a cursor, so that there is nothing to say about most of them.
pub(crate) const CODE: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// What the cursor behind a row of another table begins with.
const ROW: char = '~';

/// The cursor behind this message.
pub fn behind(id: &MessageId) -> String {
    match id {
        MessageId::Own(uuid) => CODE.encode(uuid.as_bytes()),
        MessageId::Row(text) => format!("{ROW}{}", CODE.encode(text.as_bytes())),
    }
}

/// The message that a cursor stands behind.
pub fn read(text: &str) -> Result<MessageId, String> {
    let id = match text.strip_prefix(ROW) {
        Some(row) => CODE.decode(row).ok().and_then(|bytes| String::from_utf8(bytes).ok()?.parse().ok()),
        None => {
            let bits = CODE.decode(text).ok().and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
            bits.map(|bits| MessageId::own(u128::from_be_bytes(bits)))
        }
    };
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
