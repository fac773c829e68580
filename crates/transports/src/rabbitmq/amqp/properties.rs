//! What travels beside a body: its content type, its headers and the other properties that AMQP knows.

use bytes::{BufMut, Bytes, BytesMut};

use super::table::Table;
use super::wire::{Malformed, Short, Wire};

/// The properties of a message.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Properties {
    /// What the body is.
    pub content_type: Option<Short>,
    /// How it is packed.
    pub content_encoding: Option<Short>,
    /// The headers of applications.
    pub headers: Option<Table>,
    /// 2: survives a restart of the broker.
    pub delivery_mode: Option<u8>,
    /// 0 to 9.
    pub priority: Option<u8>,
    /// What it belongs to.
    pub correlation_id: Option<Short>,
    /// Where an answer goes.
    pub reply_to: Option<Short>,
    /// How long it is worth keeping, in ms.
    pub expiration: Option<Short>,
    /// What it is called.
    pub message_id: Option<Short>,
    /// When it was made, in seconds since 1970.
    pub timestamp: Option<u64>,
    /// What sort of message it is.
    pub kind: Option<Short>,
    /// Who sent it, checked by the broker.
    pub user_id: Option<Short>,
    /// What application sent it.
    pub app_id: Option<Short>,
    /// Nothing that is still used.
    pub cluster_id: Option<Short>,
}

/// The class of everything that has properties.
const BASIC: u16 = 60;
/// Survives a restart of the broker.
pub const PERSISTENT: u8 = 2;

/// Calls `$with!` for all properties in their order on the wire, each with its bit.
macro_rules! each_property {
    ($each:ident) => {
        $each!(content_type 15, content_encoding 14, headers 13, delivery_mode 12, priority 11, correlation_id 10,
               reply_to 9, expiration 8, message_id 7, timestamp 6, kind 5, user_id 4, app_id 3, cluster_id 2)
    };
}

impl Properties {
    /// Reads the head of a content: how long its body is, and its properties. A broker passes on whatever its clients
    /// gave it, so properties can be nonsense where the length is not.
    pub fn read_head(mut from: Bytes) -> Result<(u64, Result<Self, Malformed>), Malformed> {
        if u16::read(&mut from)? != BASIC {
            return Err(Malformed("content of an unknown class"));
        }
        u16::read(&mut from)?;
        let length = u64::read(&mut from)?;
        Ok((length, Self::read(from)))
    }

    /// The head of a content whose body has this length.
    pub fn head(&self, body_bytes: usize) -> Bytes {
        let mut head = BytesMut::new();
        let to = &mut head;
        to.put_u16(BASIC);
        to.put_u16(0);
        to.put_u64(body_bytes as u64);
        let mut flags: u16 = 0;
        macro_rules! flag {
            ($($name:ident $bit:literal),*) => { $( if self.$name.is_some() { flags |= 1 << $bit; } )* };
        }
        each_property!(flag);
        to.put_u16(flags);
        macro_rules! write {
            ($($name:ident $bit:literal),*) => { $( if let Some(value) = &self.$name { value.write(to); } )* };
        }
        each_property!(write);
        head.freeze()
    }

    /// The text of a header, if it has such a one.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.as_ref()?.get(name)?.text()
    }

    fn read(mut from: Bytes) -> Result<Self, Malformed> {
        let flags = u16::read(&mut from)?;
        let mut properties = Self::default();
        macro_rules! read {
            ($($name:ident $bit:literal),*) => {
                $( if flags & (1 << $bit) != 0 { properties.$name = Some(Wire::read(&mut from)?); } )*
            };
        }
        each_property!(read);
        match flags & 0b11 == 0 && from.is_empty() {
            true => Ok(properties),
            false => Err(Malformed("properties that nobody knows")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rabbitmq::amqp::table::Field;

    #[test]
    fn properties_are_read_as_they_were_written() {
        let text = |text: &str| Short::new(text);
        let full = Properties {
            content_type: text("text/plain"),
            content_encoding: text("gzip"),
            headers: Some(Table::default().with("a", Field::number(1))),
            delivery_mode: Some(PERSISTENT),
            priority: Some(9),
            correlation_id: text("c"),
            reply_to: text("r"),
            expiration: text("60000"),
            message_id: text("m"),
            timestamp: Some(u64::MAX),
            kind: text("t"),
            user_id: text("guest"),
            app_id: text("app"),
            cluster_id: text(""),
        };
        for properties in [full, Properties::default()] {
            assert_eq!(Properties::read_head(properties.head(77)), Ok((77, Ok(properties))));
        }
    }

    #[test]
    fn nonsense_beside_a_body_does_not_hide_how_long_it_is() {
        let mut bytes = BytesMut::from(&Properties::default().head(5)[..]);
        bytes.put_slice(b"more");
        let (length, properties) = Properties::read_head(bytes.freeze()).unwrap();
        assert_eq!(length, 5);
        assert!(properties.is_err());
    }
}
