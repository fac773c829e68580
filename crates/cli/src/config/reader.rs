//! Reads tables key by key. What is wrong is noted and reading goes on, so that all problems are said at once;
//! what nobody asked for is an unknown key.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use redeliver_core::Name;

use super::problem::{Findings, Place, did_you_mean};
use super::source::{Entry, Node, Table, Value, parse_bare};

/// A value with the place that it was read from.
#[derive(Clone, Debug)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub place: Place,
}

/// What all readers of one config share.
#[derive(Debug, Default)]
pub struct Reading {
    /// What was found to be wrong.
    pub findings: Findings,
    /// Every key that was asked for, as a path with `*` for the names that people choose.
    pub known: RefCell<BTreeSet<String>>,
}

/// Reads one table.
pub struct Reader<'a> {
    reading: &'a Reading,
    /// What people call the table: `routes.email`.
    path: String,
    /// The same with `*` for the names that people choose.
    pattern: String,
    place: Place,
    table: &'a Table,
    asked: RefCell<BTreeSet<&'static str>>,
    forgiven: Cell<bool>,
}

/// The longest name of a route, transport or policy.
pub const NAME_BYTES_MAX: usize = 64;

impl Reading {
    /// Reads the whole config.
    pub fn read<T>(&self, table: &Table, read: impl FnOnce(&Reader<'_>) -> T) -> T {
        self.table(String::new(), String::new(), Place::Nowhere, table, read)
    }

    fn table<T>(
        &self,
        path: String,
        pattern: String,
        place: Place,
        table: &Table,
        read: impl FnOnce(&Reader<'_>) -> T,
    ) -> T {
        let (asked, forgiven) = (RefCell::default(), Cell::new(false));
        let reader = Reader { reading: self, path, pattern, place, table, asked, forgiven };
        let value = read(&reader);
        if !reader.forgiven.get() {
            reader.note_unknown();
        }
        value
    }
}

impl Reader<'_> {
    /// Where problems go that are about more than one key.
    pub fn findings(&self) -> &Findings {
        &self.reading.findings
    }

    /// Where the table stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The value of a key, if it is there and as it should be.
    pub fn find<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Node) -> Result<T, String>,
    ) -> Option<Located<T>> {
        let entry = self.ask(key)?;
        match read(&entry.node) {
            Ok(value) => Some(Located { value, place: entry.place.clone() }),
            Err(wrong) => {
                self.findings().error(&entry.node.place, format!("{key} {wrong}"));
                None
            }
        }
    }

    /// The value of a key, or what it is without one.
    pub fn get<T>(&self, key: &'static str, default: T, read: impl FnOnce(&Node) -> Result<T, String>) -> T {
        self.find(key, read).map_or(default, |found| found.value)
    }

    /// Notes that a key is missing which has no default, with an example of it.
    pub fn require(&self, key: &'static str, example: &str) {
        if self.ask(key).is_none() {
            self.findings().error(&self.place, format!("{} needs {key}, such as {example}", self.header()));
        }
    }

    /// Where a key stands; where its table stands if it isn't there.
    pub fn place_of(&self, key: &'static str) -> &Place {
        self.table.get(key).map_or(&self.place, |entry| &entry.place)
    }

    /// Whether a key is there and holds a table.
    pub fn holds_table(&self, key: &'static str) -> bool {
        self.ask(key).is_some_and(|entry| matches!(entry.node.typed(), Value::Table(_)))
    }

    /// Takes every key of this table as known, because what it should hold can't be told.
    pub fn forgive(&self) {
        self.forgiven.set(true);
    }

    /// The items of a list, each as it should be; `None` if there is no list or something is wrong with it.
    pub fn list<T>(
        &self,
        key: &'static str,
        wanted: &str,
        read: impl Fn(&Node) -> Result<T, String>,
    ) -> Option<Located<Vec<T>>> {
        let items = self.find(key, |node| node.items(wanted))?;
        let mut all = Vec::new();
        for (i, item) in items.value.iter().enumerate() {
            match read(item) {
                Ok(value) => all.push(value),
                Err(wrong) => {
                    self.findings().error(&item.place, format!("entry {} of {key} {wrong}", i + 1));
                }
            }
        }
        (all.len() == items.value.len()).then_some(Located { value: all, place: items.place })
    }

    /// Reads the table under a key, an empty one if there is none.
    pub fn section<T>(&self, key: &'static str, read: impl FnOnce(&Reader<'_>) -> T) -> T {
        let table = self.find(key, Node::table);
        let (place, table) =
            table.map_or_else(|| (self.place.clone(), Table::default()), |found| (found.place, found.value));
        self.reading.table(self.path_of(key), self.pattern_of(key), place, &table, read)
    }

    /// Reads each table under a key, by the names that people chose for them.
    pub fn named<T>(
        &self,
        key: &'static str,
        mut read: impl FnMut(&Name, &Reader<'_>) -> T,
    ) -> BTreeMap<Name, Located<T>> {
        let Some(found) = self.find(key, Node::table) else { return BTreeMap::new() };
        let mut all = BTreeMap::new();
        for entry in &found.value.entries {
            let path = format!("{}.{}", self.path_of(key), entry.key);
            if let Err(wrong) = check_name(&entry.key) {
                self.findings().error(&entry.place, wrong);
            }
            let name: Name = entry.key.as_str().into();
            match entry.node.table() {
                Ok(table) => {
                    let pattern = format!("{}.*", self.pattern_of(key));
                    let value = self
                        .reading
                        .table(path, pattern, entry.place.clone(), &table, |reader| read(&name, reader));
                    all.insert(name, Located { value, place: entry.place.clone() });
                }
                Err(wrong) => self.findings().error(&entry.place, format!("{path} {wrong}")),
            }
        }
        all
    }

    fn ask(&self, key: &'static str) -> Option<&Entry> {
        self.asked.borrow_mut().insert(key);
        self.reading.known.borrow_mut().insert(self.pattern_of(key));
        self.table.get(key)
    }

    fn note_unknown(&self) {
        let asked = self.asked.borrow();
        for entry in self.table.entries.iter().filter(|entry| !asked.contains(entry.key.as_str())) {
            let hint = did_you_mean(&entry.key, asked.iter().copied()).unwrap_or_else(|| {
                format!("known are {}", asked.iter().copied().collect::<Vec<_>>().join(", "))
            });
            let within = if self.path.is_empty() { String::new() } else { format!(" in {}", self.header()) };
            self.findings().error(&entry.place, format!("unknown key \"{}\"{within}: {hint}", entry.key));
        }
    }

    /// The section that it reads, as a path.
    pub fn path(&self) -> &str {
        &self.path
    }

    fn header(&self) -> String {
        format!("[{}]", self.path)
    }

    fn path_of(&self, key: &str) -> String {
        join(&self.path, key)
    }

    fn pattern_of(&self, key: &str) -> String {
        join(&self.pattern, key)
    }
}

impl Node {
    /// The table that stands here.
    pub fn table(&self) -> Result<Table, String> {
        match self.typed() {
            Value::Table(table) => Ok(table),
            other => Err(format!("must be a table, not {}", other.kind())),
        }
    }

    /// The items of the list that stands here. A variable may also separate them by commas.
    fn items(&self, wanted: &str) -> Result<Vec<Self>, String> {
        match (self.typed(), &self.value) {
            (Value::List(items), _) => Ok(items),
            (_, Value::Bare(text)) => {
                let item = |text: &str| Self {
                    place: self.place.clone(),
                    value: Value::Bare(text.trim().to_owned()),
                };
                Ok(text.split(',').map(item).collect())
            }
            (other, _) => Err(format!("must be a list such as {wanted}, not {}", other.kind())),
        }
    }

    /// The value; of a variable, the list or table that it spells, if it spells one.
    pub(super) fn typed(&self) -> Value {
        match &self.value {
            Value::Bare(text) if text.trim_start().starts_with(['[', '{']) => {
                parse_bare(text.trim(), &self.place).unwrap_or_else(|| self.value.clone())
            }
            other => other.clone(),
        }
    }
}

/// Whether a name is one that people can give a route, a transport or a policy.
pub fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(format!("a name has 1 to {NAME_BYTES_MAX} characters, \"{name}\" has {}", name.len()));
    }
    if !name.chars().all(allowed) {
        return Err(format!("a name is made of a-z, 0-9, \"_\", \".\" and \"-\": not \"{name}\""));
    }
    Ok(())
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
