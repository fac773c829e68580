//! Reads the fields of a JSON object that are known by name, and skips all others without keeping them: however a text is
//! built, reading it takes time in proportion to its length and no more memory than the fields that are asked for.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// A string.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// `null`.
    Null,
    /// Anything else, which is not kept.
    Other,
}

/// The fields of these names that an object has; of two of the same name, the last one. An error says where a text stops
/// being JSON, and repeats nothing of it.
pub fn read_fields(bytes: &[u8], names: &[&'static str]) -> Result<BTreeMap<&'static str, Field>, String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let fields = reader.deserialize_map(Object(names));
    let fields = fields.and_then(|fields| reader.end().map(|()| fields));
    fields.map_err(|error| match error.classify() {
        Category::Data => "the JSON is no object".to_owned(),
        _ => format!("no JSON beyond line {}, column {}", error.line(), error.column()),
    })
}

struct Object<'n>(&'n [&'static str]);

impl<'de> Visitor<'de> for Object<'_> {
    type Value = BTreeMap<&'static str, Field>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some(known) = map.next_key_seed(Known(self.0))? {
            match known {
                Some(name) => drop(fields.insert(name, map.next_value()?)),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(fields)
    }
}

/// Finds a name among those that are asked for.
struct Known<'n>(&'n [&'static str]);

impl<'de> DeserializeSeed<'de> for Known<'_> {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Known<'_> {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|name| **name == text).copied())
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_str<E>(self, text: &str) -> Result<Field, E> {
        Ok(Field::Text(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Field, E> {
        Ok(Field::Whole(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Field, E> {
        Ok(i64::try_from(number).map_or(Field::Other, Field::Whole))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_unit<E>(self) -> Result<Field, E> {
        Ok(Field::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Field, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest message that an intake takes by default.
    const BYTES_MAX: usize = 16 * 1_048_576;

    fn read(text: &str) -> Result<BTreeMap<&'static str, Field>, String> {
        read_fields(text.as_bytes(), &["id", "count"])
    }

    #[test]
    fn only_what_is_asked_for_is_kept() {
        let fields = read(r#"{"id": "a", "other": [1, {"id": 2}], "count": 7, "\u0069d": "b"}"#).unwrap();
        let wanted = [("count", Field::Whole(7)), ("id", Field::Text("b".to_owned()))];
        assert_eq!(fields, BTreeMap::from(wanted), "the last of two counts, in whatever way it is written");
        for (text, field) in [
            ("null", Field::Null),
            ("-1", Field::Whole(-1)),
            ("9223372036854775808", Field::Other),
            ("1.5", Field::Other),
            ("true", Field::Other),
            ("[[1]]", Field::Other),
            (r#"{"a": {}}"#, Field::Other),
        ] {
            let fields = read(&format!("{{\"count\": {text}}}")).unwrap();
            assert_eq!(fields.get("count"), Some(&field), "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_told_from_what_is_no_json() {
        for (text, wrong) in [
            ("[]", "no object"),
            ("7", "no object"),
            ("\"{}\"", "no object"),
            ("", "no JSON beyond line 1, column 0"),
            ("{", "no JSON"),
            ("{} {}", "no JSON"),
            ("{\"id\": 1e999}", "no JSON"),
            ("{\"id\": \"\u{7}\"}", "no JSON"),
        ] {
            assert!(read(text).unwrap_err().contains(wrong), "{text}: {:?}", read(text));
        }
        assert!(read_fields(b"{\"id\": \"\xff\"}", &["id"]).is_err());
    }

    /// As a tree, the second of these takes a hundred times its length.
    #[test]
    fn hostile_texts_as_large_as_may_be_leave_nothing_behind() {
        let fill = |piece: &str| piece.repeat(BYTES_MAX / piece.len() - 10);
        let keys: String = (0..BYTES_MAX / 13 - 10).map(|n| format!("\"{n:08}\":1,")).collect();
        for (what, text) in [
            ("different keys", format!("{{{keys}\"id\":\"x\"}}")),
            ("small objects", format!("{{\"count\":[{}0],\"id\":\"x\"}}", fill("{\"\":0},"))),
            ("the same key", format!("{{{}\"id\":\"x\"}}", fill("\"id\":\"y\","))),
            ("a long number", format!("{{\"other\":{},\"id\":\"x\"}}", fill("9999999999"))),
            (
                "deep nesting",
                format!("{{\"other\":{}{},\"id\":\"x\"}}", "[".repeat(8_000_000), "]".repeat(8_000_000)),
            ),
        ] {
            assert!(text.len() <= BYTES_MAX, "{what}");
            let fields = read(&text).unwrap();
            assert_eq!(fields.get("id"), Some(&Field::Text("x".to_owned())), "{what}");
            assert!(fields.len() <= 2, "{what}");
            // And without its end.
            let wrong = read(&text[..text.len() - 1]).unwrap_err();
            assert!(wrong.len() < 100, "{what}: {wrong}");
        }
    }
}
