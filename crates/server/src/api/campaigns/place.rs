//! Where the next page of a schedule begins: opaque, so that nobody builds one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use redeliver_engine::campaign::Place;

/// The cursor behind this mail.
pub(crate) fn behind(place: Place) -> String {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&place.position.to_be_bytes());
    bytes[8..].copy_from_slice(&place.step.to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The mail that a cursor stands behind. Every text of 16 such characters is one.
pub(crate) fn read(text: &str) -> Result<Place, String> {
    let bytes: Option<[u8; 12]> = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    let bytes = bytes.ok_or_else(|| "is no cursor: give the \"next\" of the page before".to_owned())?;
    let (position, step) = bytes.split_at(8);
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    Ok(Place { position: number(position), step: number(step) as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_written_and_read_and_anything_else_is_none() {
        let place = Place { position: 1 << 40, step: 3 };
        assert_eq!(read(&behind(place)), Ok(place));
        for text in ["", "x", "AAAAAAAAAAAAAAAAAAAA", "\u{0}"] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
}
