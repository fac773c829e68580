//! Frames: what the stream of bytes is cut into.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::method::Method;
use super::wire::Malformed;

/// What a client says first.
pub const GREETING: &[u8; 8] = b"AMQP\0\0\x09\x01";

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A method.
    Method(u16, Method),
    /// The head of a content.
    Head(u16, Bytes),
    /// A part of its body.
    Body(u16, Bytes),
    /// Still there.
    Heartbeat,
}

const METHOD: u8 = 1;
const HEAD: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;
const END: u8 = 0xce;
/// What a frame has besides its payload.
pub const FRAME_OVERHEAD_BYTES: usize = 8;

impl Frame {
    /// Takes the next frame from what was read, if it is whole. No frame is larger than `frame_max`.
    pub fn take(read: &mut BytesMut, frame_max: usize) -> Result<Option<Self>, Malformed> {
        let Some(head) = read.first_chunk::<7>() else { return Ok(None) };
        let [kind, c1, c2, length @ ..] = *head;
        let (channel, length) = (u16::from_be_bytes([c1, c2]), u32::from_be_bytes(length) as usize);
        if kind == b'A' {
            return Err(Malformed("the broker speaks another version"));
        }
        if length > frame_max.saturating_sub(FRAME_OVERHEAD_BYTES) {
            return Err(Malformed("a frame is larger than was agreed on"));
        }
        if read.len() < length + FRAME_OVERHEAD_BYTES {
            read.reserve(length + FRAME_OVERHEAD_BYTES - read.len());
            return Ok(None);
        }
        read.advance(7);
        let payload = read.split_to(length).freeze();
        if read.get_u8() != END {
            return Err(Malformed("a frame has no end"));
        }
        match kind {
            METHOD => Ok(Some(Self::Method(channel, Method::read(payload)?))),
            // It is kept for as long as its message is, and all that was read with it would be kept, too.
            HEAD => Ok(Some(Self::Head(channel, Bytes::copy_from_slice(&payload)))),
            BODY => Ok(Some(Self::Body(channel, payload))),
            HEARTBEAT => Ok(Some(Self::Heartbeat)),
            _ => Err(Malformed("a frame of an unknown kind")),
        }
    }
}

/// Writes a method.
pub fn put_method(channel: u16, method: &Method, to: &mut BytesMut) {
    put(METHOD, channel, to, |to| method.write(to));
}

/// Writes a content: its head, and its body in frames that are small enough.
pub fn put_content(channel: u16, head: &[u8], body: &[u8], frame_max: usize, to: &mut BytesMut) {
    put(HEAD, channel, to, |to| to.put_slice(head));
    for part in body.chunks(frame_max.saturating_sub(FRAME_OVERHEAD_BYTES).max(1)) {
        put(BODY, channel, to, |to| to.put_slice(part));
    }
}

/// Writes a sign of life.
pub fn put_heartbeat(to: &mut BytesMut) {
    put(HEARTBEAT, 0, to, |_| {});
}

fn put(kind: u8, channel: u16, to: &mut BytesMut, payload: impl FnOnce(&mut BytesMut)) {
    to.put_u8(kind);
    to.put_u16(channel);
    let at = to.len();
    to.put_u32(0);
    payload(to);
    let length = u32::try_from(to.len() - at - 4).unwrap_or(u32::MAX);
    to[at..at + 4].copy_from_slice(&length.to_be_bytes());
    to.put_u8(END);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rabbitmq::amqp::properties::Properties;
    use crate::rabbitmq::amqp::wire::Short;
    use proptest::prelude::*;

    const FRAME_MAX: usize = 4_096;

    fn read(bytes: &[u8]) -> Result<Vec<Frame>, Malformed> {
        let mut bytes = BytesMut::from(bytes);
        std::iter::from_fn(|| Frame::take(&mut bytes, FRAME_MAX).transpose()).collect()
    }

    #[test]
    fn what_is_written_is_read_however_it_arrives() {
        let mut bytes = BytesMut::new();
        let publish = Method::BasicPublish {
            reserved: 0,
            exchange: Short::default(),
            routing_key: Short::cut("queue"),
            flags: 1,
        };
        let body = vec![7; FRAME_MAX * 2];
        put_method(3, &publish, &mut bytes);
        let head = Properties::default().head(body.len());
        put_content(3, &head, &body, FRAME_MAX, &mut bytes);
        put_heartbeat(&mut bytes);
        let frames = read(&bytes).unwrap();
        assert_eq!(frames.len(), 1 + 1 + 3 + 1);
        assert_eq!(frames[0], Frame::Method(3, publish));
        let parts = frames.iter().filter_map(|frame| match frame {
            Frame::Body(3, part) => Some(part.clone()),
            _ => None,
        });
        assert_eq!(parts.collect::<Vec<_>>().concat(), body);
        let mut slowly = BytesMut::new();
        let mut count = 0;
        for byte in bytes {
            slowly.put_u8(byte);
            count += usize::from(Frame::take(&mut slowly, FRAME_MAX).unwrap().is_some());
        }
        assert_eq!(count, frames.len());
    }

    #[test]
    fn a_head_that_is_kept_keeps_nothing_else_that_was_read() {
        let mut bytes = BytesMut::with_capacity(FRAME_MAX);
        let head = Properties::default().head(1);
        put_content(1, &head, b"x", FRAME_MAX, &mut bytes);
        let kept = Frame::take(&mut bytes, FRAME_MAX).unwrap();
        assert_eq!(kept, Some(Frame::Head(1, head)));
        assert!(matches!(Frame::take(&mut bytes, FRAME_MAX), Ok(Some(Frame::Body(1, _)))));
        assert!(bytes.try_reclaim(FRAME_MAX), "there is room where they stood");
    }

    #[test]
    fn a_frame_that_is_too_large_is_refused_before_it_is_read() {
        assert!(read(b"\x01\0\0\xff\xff\xff\xff").is_err());
        assert!(read(b"AMQP\0\0\x09\x01").is_err());
        assert!(read(b"\x01\0\0\0\0\0\0\0").is_err(), "no end");
        assert!(read(b"\x09\0\0\0\0\0\0\xce").is_err(), "no such kind");
    }

    proptest! {
        #[test]
        fn nothing_that_a_peer_says_brings_us_down(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
            let _ = Properties::read_head(Bytes::from(bytes.clone()));
            let _ = Method::read(Bytes::from(bytes));
        }

        #[test]
        fn nor_does_a_frame_with_nonsense_inside(
            kind in 1_u8..9, class in 0_u16..90, number in 0_u16..80,
            rest in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut bytes = BytesMut::new();
            put(kind, 1, &mut bytes, |to| {
                to.put_u16(class / 10 * 10);
                to.put_u16(number);
                to.put_slice(&rest);
            });
            let _ = read(&bytes);
        }
    }
}
