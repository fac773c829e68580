//! The plain types of AMQP 0-9-1: read without trusting anybody, written within their limits.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// What was read is not AMQP.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not AMQP 0-9-1: {0}")]
pub struct Malformed(pub &'static str);

const TOO_SOON: Malformed = Malformed("it ends too soon");

/// The longest short string.
pub const SHORT_BYTES_MAX: usize = 255;

/// Something that is read from, and written to, the arguments of a method.
pub trait Wire: Sized {
    /// Takes it from the front of what is left.
    fn read(from: &mut Bytes) -> Result<Self, Malformed>;
    /// Puts it at the end.
    fn write(&self, to: &mut BytesMut);
}

/// A short string: at most 255 bytes. What isn't UTF-8 is read as well as can be.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Short(String);

impl Short {
    /// A short string, if it is short enough.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (text.len() <= SHORT_BYTES_MAX).then_some(Self(text))
    }

    /// The same, cut to what fits.
    pub fn cut(text: &str) -> Self {
        Self(text[..text.floor_char_boundary(SHORT_BYTES_MAX)].to_owned())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A long string: any bytes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Long(pub Bytes);

/// Takes this many bytes from the front.
pub(crate) fn take(from: &mut Bytes, count: usize) -> Result<Bytes, Malformed> {
    match count <= from.len() {
        true => Ok(from.split_to(count)),
        false => Err(TOO_SOON),
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(
            impl Wire for $number {
                fn read(from: &mut Bytes) -> Result<Self, Malformed> {
                    let bytes = *from.first_chunk().ok_or(TOO_SOON)?;
                    from.advance(size_of::<$number>());
                    Ok(Self::from_be_bytes(bytes))
                }

                fn write(&self, to: &mut BytesMut) {
                    to.put_slice(&self.to_be_bytes());
                }
            }
        )*
    };
}

numbers! { u8 u16 u32 u64 }

impl Wire for Short {
    fn read(from: &mut Bytes) -> Result<Self, Malformed> {
        let length = usize::from(u8::read(from)?);
        let text = Self::cut(&String::from_utf8_lossy(from.get(..length).ok_or(TOO_SOON)?));
        from.advance(length);
        Ok(text)
    }

    fn write(&self, to: &mut BytesMut) {
        to.put_u8(u8::try_from(self.0.len()).unwrap_or(u8::MAX));
        to.put_slice(self.0.as_bytes());
    }
}

impl Wire for Long {
    fn read(from: &mut Bytes) -> Result<Self, Malformed> {
        let length = u32::read(from)?;
        Ok(Self(take(from, length as usize)?))
    }

    fn write(&self, to: &mut BytesMut) {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        to.put_u32(length);
        to.put_slice(&self.0[..length as usize]);
    }
}
