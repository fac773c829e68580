//! A table of named fields, as headers are. What a field holds is kept as it came, whatever its type: nobody here needs
//! to understand another application's numbers and lists to pass them on.

use bytes::{BufMut, Bytes, BytesMut};

use super::wire::{Long, Malformed, Short, Wire, take};

/// Fields by name, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Table(pub Vec<(String, Field)>);

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The letter of its type.
    pub kind: u8,
    /// Its bytes. Those of a string are without their length; all others are as they travel.
    pub bytes: Bytes,
}

/// The type of strings.
pub const STRING: u8 = b'S';
/// The type of bytes that are no text.
pub const BYTES: u8 = b'x';
/// The type of tables.
pub const TABLE: u8 = b'F';
/// The type of flags.
pub const FLAG: u8 = b't';
/// The type of signed numbers of 32 bits.
pub const INTEGER: u8 = b'I';
/// The type of signed numbers of 64 bits.
pub const LONG: u8 = b'l';

impl Field {
    /// A string.
    pub fn string(bytes: impl Into<Bytes>) -> Self {
        Self { kind: STRING, bytes: bytes.into() }
    }

    /// A flag.
    pub fn flag(flag: bool) -> Self {
        Self { kind: FLAG, bytes: Bytes::copy_from_slice(&[u8::from(flag)]) }
    }

    /// A number.
    pub fn number(number: i64) -> Self {
        match i32::try_from(number) {
            Ok(number) => Self { kind: INTEGER, bytes: Bytes::copy_from_slice(&number.to_be_bytes()) },
            Err(_) => Self { kind: LONG, bytes: Bytes::copy_from_slice(&number.to_be_bytes()) },
        }
    }

    /// A table within a table.
    pub fn table(table: &Table) -> Self {
        let mut bytes = BytesMut::new();
        table.write(&mut bytes);
        Self { kind: TABLE, bytes: bytes.freeze() }
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        (self.kind == STRING).then(|| std::str::from_utf8(&self.bytes).ok())?
    }

    /// Whether its bytes are what its type asks for, so that a broker can read what comes after it.
    pub fn is_whole(&self) -> bool {
        match self.kind {
            STRING | BYTES => u32::try_from(self.bytes.len()).is_ok(),
            kind => {
                let mut rest = self.bytes.clone();
                value(kind, &mut rest).is_ok() && rest.is_empty()
            }
        }
    }
}

impl Table {
    /// The first field of this name.
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, field)| field)
    }

    /// The same with one more field.
    pub fn with(mut self, name: &str, field: Field) -> Self {
        self.0.push((name.to_owned(), field));
        self
    }
}

impl Wire for Table {
    fn read(from: &mut Bytes) -> Result<Self, Malformed> {
        let length = u32::read(from)?;
        let mut fields = take(from, length as usize)?;
        let mut table = Self::default();
        while !fields.is_empty() {
            let name = Short::read(&mut fields)?;
            let kind = u8::read(&mut fields)?;
            let bytes = value(kind, &mut fields)?;
            table.0.push((name.as_str().to_owned(), Field { kind, bytes }));
        }
        Ok(table)
    }

    fn write(&self, to: &mut BytesMut) {
        let at = to.len();
        to.put_u32(0);
        for (name, field) in &self.0 {
            Short::cut(name).write(to);
            to.put_u8(field.kind);
            if matches!(field.kind, STRING | BYTES) {
                to.put_u32(u32::try_from(field.bytes.len()).unwrap_or_default());
            }
            to.put_slice(&field.bytes);
        }
        let length = u32::try_from(to.len() - at - 4).unwrap_or_default();
        to[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// Takes the value of a type, without looking into lists and tables.
fn value(kind: u8, from: &mut Bytes) -> Result<Bytes, Malformed> {
    let length = match kind {
        b'V' => 0,
        FLAG | b'b' | b'B' => 1,
        b's' | b'u' | b'U' => 2,
        INTEGER | b'i' | b'f' => 4,
        b'D' => 5,
        LONG | b'L' | b'd' | b'T' => 8,
        STRING | BYTES => return Ok(Long::read(from)?.0),
        b'A' | TABLE => {
            let length = u32::read(&mut from.clone())? as usize;
            length.checked_add(4).ok_or(Malformed("a length is out of bounds"))?
        }
        _ => return Err(Malformed("a field has a type that nobody knows")),
    };
    take(from, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table) -> Bytes {
        let mut bytes = BytesMut::new();
        table.write(&mut bytes);
        bytes.freeze()
    }

    #[test]
    fn fields_of_every_type_pass_through_as_they_came() {
        let inner = Table::default().with("n", Field::number(7)).with("s", Field::string("x"));
        let list = Field { kind: b'A', bytes: Bytes::from_static(b"\0\0\0\x05I\0\0\0\x01") };
        let table = Table::default()
            .with("string", Field::string("text"))
            .with("flag", Field::flag(true))
            .with("small", Field::number(-1))
            .with("large", Field::number(i64::MAX))
            .with("nothing", Field { kind: b'V', bytes: Bytes::new() })
            .with("decimal", Field { kind: b'D', bytes: Bytes::from_static(b"\x02\0\0\0\x05") })
            .with("bytes", Field { kind: BYTES, bytes: Bytes::from_static(b"\0\xff") })
            .with("list", list)
            .with("table", Field::table(&inner));
        assert!(table.0.iter().all(|(_, field)| field.is_whole()));
        let bytes = written(&table);
        assert_eq!(Table::read(&mut bytes.clone()), Ok(table.clone()));
        assert_eq!(written(&table), bytes);
    }

    #[test]
    fn a_table_that_ends_too_soon_is_none() {
        let bytes = written(&Table::default().with("a", Field::string("text")).with("n", Field::number(1)));
        for end in 0..bytes.len() {
            assert!(Table::read(&mut bytes.slice(..end)).is_err(), "{end} bytes");
        }
        let unknown = Bytes::from_static(b"\0\0\0\x04\x01a?\0");
        assert!(Table::read(&mut unknown.clone()).is_err());
        let endless = Bytes::from_static(b"\0\0\0\x07\x01aF\xff\xff\xff\xff");
        assert!(Table::read(&mut endless.clone()).is_err());
    }

    #[test]
    fn a_field_that_lies_about_its_type_is_not_whole() {
        assert!(!Field { kind: INTEGER, bytes: Bytes::from_static(b"abc") }.is_whole());
        assert!(!Field { kind: b'?', bytes: Bytes::new() }.is_whole());
        assert!(!Field { kind: TABLE, bytes: Bytes::from_static(b"\0\0\0\x09") }.is_whole());
    }
}
