//! Config texts as trees that remember where everything stood, and how one is laid over another.
//!
//! Nothing here knows what a key means.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::problem::{Findings, Place};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where.
    pub place: Place,
    /// What it is.
    pub value: Value,
}

/// What a key can hold.
#[derive(Clone, Debug)]
pub enum Value {
    /// A text in quotes.
    Text(String),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Flag(bool),
    /// A date or a time.
    Time(String),
    /// A list.
    List(Vec<Node>),
    /// A table, however it is written.
    Table(Table),
    /// What an environment variable holds: whatever the key wants it to be.
    Bare(String),
}

impl Value {
    /// What it is, for a sentence that says that it should have been something else.
    pub fn kind(&self) -> String {
        match self {
            Self::Text(text) | Self::Bare(text) => format!("{text:?}"),
            Self::Integer(number) => format!("the number {number}"),
            Self::Float(number) => format!("the number {number}"),
            Self::Flag(flag) => format!("{flag}"),
            Self::Time(time) => format!("the time {time}"),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
        }
    }
}

/// Keys with their values.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// One for each key.
    pub entries: Vec<Entry>,
}

/// One key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// Its value.
    pub node: Node,
}

impl Table {
    /// The entry of a key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Lays another table over this one: its keys win, and tables in both are laid over each other in turn.
    pub fn lay_over(&mut self, over: Self) {
        for entry in over.entries {
            match self.entries.iter_mut().find(|known| known.key == entry.key) {
                None => self.entries.push(entry),
                Some(known) => match (&mut known.node.value, entry.node.value) {
                    (Value::Table(below), Value::Table(above)) => {
                        known.place = entry.place;
                        below.lay_over(above);
                    }
                    (below, above) => {
                        *below = above;
                        known.place = entry.place;
                        known.node.place = entry.node.place;
                    }
                },
            }
        }
    }
}

/// A text with a name that people know it by.
#[derive(Clone, Debug)]
pub struct Text<'a> {
    /// Its place among the sources.
    pub source: usize,
    /// The file's path, or the profile's name.
    pub name: Arc<str>,
    /// The text itself.
    pub text: &'a str,
}

impl Text<'_> {
    /// Reads the text as TOML, noting everything in it that isn't.
    pub fn parse(&self, findings: &Findings) -> Table {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let said = error.message().trim().replace('\n', ", ");
            findings.error(&self.place(error.span().unwrap_or(0..0)), format!("not TOML: {said}"));
        }
        self.table(table.into_inner())
    }

    fn table(&self, table: DeTable<'_>) -> Table {
        let entry = |(key, value): (Spanned<DeString<'_>>, Spanned<DeValue<'_>>)| {
            let place = self.place(key.span());
            Entry { key: key.into_inner().into_owned(), place, node: self.node(value) }
        };
        Table { entries: table.into_iter().map(entry).collect() }
    }

    fn node(&self, value: Spanned<DeValue<'_>>) -> Node {
        let place = self.place(value.span());
        let value = match value.into_inner() {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(number) => Value::Integer(
                // A number that doesn't even fit here is out of every range.
                i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(i128::MAX),
            ),
            DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(flag) => Value::Flag(flag),
            DeValue::Datetime(time) => Value::Time(time.to_string()),
            DeValue::Array(items) => Value::List(items.into_iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Node { place, value }
    }

    fn place(&self, span: Range<usize>) -> Place {
        let before = &self.text[..self.text.floor_char_boundary(span.start)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Place::Text {
            source: self.source,
            name: self.name.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Reads what an environment variable holds as a TOML value, if it is one.
pub fn parse_bare(text: &str, place: &Place) -> Option<Value> {
    let value = DeValue::parse(text).ok()?;
    let text = Text { source: 0, name: "".into(), text };
    let mut node = text.node(value);
    node.move_to(place);
    Some(node.value)
}

impl Node {
    fn move_to(&mut self, place: &Place) {
        self.place = place.clone();
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.move_to(place)),
            Value::Table(table) => table.entries.iter_mut().for_each(|entry| {
                entry.place = place.clone();
                entry.node.move_to(place);
            }),
            Value::Text(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Flag(_)
            | Value::Time(_)
            | Value::Bare(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(source: usize, text: &str) -> Table {
        let findings = Findings::default();
        let table = Text { source, name: format!("{source}.toml").into(), text }.parse(&findings);
        assert_eq!(findings.into_warnings(), Ok(vec![]));
        table
    }

    fn find<'a>(table: &'a Table, path: &str) -> &'a Entry {
        let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
        let entry = table.get(key).unwrap();
        match (rest, &entry.node.value) {
            (None, _) => entry,
            (Some(rest), Value::Table(table)) => find(table, rest),
            (Some(_), other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_key_knows_its_line_and_column() {
        let table = parse(0, "# é\n[a.b]\n 'é' = 1\nc = { d = [\n true ] }\n");
        let check =
            |path: &str, place: &str| assert_eq!(find(&table, path).place.to_string(), place, "{path}");
        check("a", "0.toml:2:2");
        check("a.b", "0.toml:2:4");
        check("a.b.é", "0.toml:3:2");
        check("a.b.c.d", "0.toml:4:7");
        assert_eq!(find(&table, "a.b.é").node.place.to_string(), "0.toml:3:8");
    }

    #[test]
    fn all_that_is_not_toml_is_said_at_once() {
        let findings = Findings::default();
        Text { source: 0, name: "x".into(), text: "a = \nb = 1\nb = 2\nc = \"x\n" }.parse(&findings);
        let problems = findings.into_warnings().unwrap_err();
        let lines: Vec<String> = problems.0.iter().map(|problem| problem.place.to_string()).collect();
        assert!(problems.0.len() >= 3, "{problems}");
        assert!(
            lines[0].starts_with("x:1:") && lines.iter().any(|line| line.starts_with("x:3:")),
            "{lines:?}"
        );
    }

    #[test]
    fn the_upper_table_wins_key_by_key() {
        let mut table = parse(0, "x = 1\n[a]\nb = 1\nc = [1, 2]\n[a.d]\ne = 1\n");
        table.lay_over(parse(1, "[a]\nc = [3]\nd.f = 2\n[g]\nh = 1\n"));
        let at = |path: &str| find(&table, path).place.to_string();
        assert_eq!(at("x"), "0.toml:1:1");
        assert_eq!(at("a.b"), "0.toml:3:1");
        assert_eq!(at("a.c"), "1.toml:2:1");
        assert_eq!(at("a.d.e"), "0.toml:6:1");
        assert_eq!(at("a.d.f"), "1.toml:3:3");
        assert_eq!(at("g.h"), "1.toml:5:1");
        assert!(matches!(&find(&table, "a.c").node.value, Value::List(items) if items.len() == 1));
    }
}
