//! Upper bounds of what a template's expressions can make, in bytes. Every rule over-estimates: a value is never larger than
//! its bound says.

use redeliver_core::campaign::FIELD_BYTES_MAX;

/// The longest text of a number: a float is written out in full.
const NUMBER_BYTES: u64 = 400;
/// What one item of a list costs besides its text.
const ITEM_BYTES: u64 = 64;
/// How much longer a text in a list is when the list is written: quotes and escapes.
const QUOTED_FACTOR: u64 = 8;
/// How much longer a text is once it is escaped for HTML (`'` becomes `&#x27;`).
pub(super) const ESCAPED_FACTOR: u64 = 6;
/// How much longer a text is in another case: `İ` has two bytes, and three in small letters.
const CASE_FACTOR: u64 = 3;

/// The filters that templates can use.
pub(super) const FILTERS: [&str; 31] = [
    "abs",
    "bool",
    "capitalize",
    "count",
    "d",
    "default",
    "e",
    "escape",
    "first",
    "float",
    "indent",
    "int",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "max",
    "min",
    "replace",
    "reverse",
    "round",
    "safe",
    "sort",
    "split",
    "string",
    "title",
    "trim",
    "unique",
    "upper",
];

/// An upper bound of a value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Of its text, and of what it takes in memory.
    pub(super) bytes: u64,
    /// How many items a loop over it visits.
    pub(super) items: u64,
    /// The bytes of its largest item.
    pub(super) item_bytes: u64,
    /// How deep lists are nested in it; 0 for what is no list.
    pub(super) depth: u32,
    /// Whether it is a number for certain.
    pub(super) is_number: bool,
    /// Whether it may be marked as HTML already, so that others are escaped when they are joined with it.
    pub(super) may_be_safe: bool,
}

/// An argument of a filter.
pub(super) struct Argument {
    pub(super) size: Size,
    /// Its text, or its number, if it is written out in the template.
    pub(super) constant: Option<minijinja::Value>,
}

impl Size {
    pub(super) const NUMBER: Self = Self { is_number: true, ..Self::text(NUMBER_BYTES) };
    pub(super) const FIELD: Self = Self::text(FIELD_BYTES_MAX as u64);

    pub(super) const fn text(bytes: u64) -> Self {
        Self { bytes, items: bytes, item_bytes: 4, depth: 0, is_number: false, may_be_safe: false }
    }

    /// A list, or the values of a map, of these.
    pub(super) fn list(items: impl IntoIterator<Item = Self>) -> Self {
        let mut list = Self { items: 0, item_bytes: 0, depth: 1, ..Self::text(ITEM_BYTES) };
        for item in items {
            let quoted = item.bytes.saturating_mul(QUOTED_FACTOR).saturating_add(ITEM_BYTES);
            list.bytes = list.bytes.saturating_add(quoted);
            list.items += 1;
            list.item_bytes = list.item_bytes.max(item.bytes);
            list.depth = list.depth.max(item.depth + 1);
            list.may_be_safe |= item.may_be_safe;
        }
        list
    }

    /// Numbers in a row.
    pub(super) fn range(items: u64) -> Self {
        let bytes = items.saturating_mul(ITEM_BYTES);
        Self { items, item_bytes: NUMBER_BYTES, depth: 1, ..Self::text(bytes) }
    }

    /// Either of two.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.max(other.bytes),
            items: self.items.max(other.items),
            item_bytes: self.item_bytes.max(other.item_bytes),
            depth: self.depth.max(other.depth),
            is_number: self.is_number && other.is_number,
            may_be_safe: self.may_be_safe || other.may_be_safe,
        }
    }

    /// Two texts, one behind the other.
    pub(super) fn followed_by(self, other: Self) -> Self {
        Self::text(self.bytes.saturating_add(other.bytes))
    }

    /// One of its items, or one of its attributes.
    pub(super) fn item(self) -> Self {
        let text = Self::text(self.item_bytes.max(NUMBER_BYTES));
        let depth = self.depth.saturating_sub(1);
        let item_bytes = if depth > 0 { text.bytes } else { 4 };
        Self { item_bytes, depth, may_be_safe: self.may_be_safe, ..text }
    }

    pub(super) fn times(self, factor: u64) -> Self {
        Self { may_be_safe: self.may_be_safe, ..Self::text(self.bytes.saturating_mul(factor)) }
    }

    /// A list of the parts of this.
    fn parts(self) -> Self {
        if self.depth > 0 {
            return self;
        }
        let items = self.items.saturating_add(1);
        let quoted = self.bytes.saturating_mul(QUOTED_FACTOR);
        let bytes = quoted.saturating_add(items.saturating_mul(ITEM_BYTES));
        Self { bytes, items, item_bytes: self.bytes, depth: 1, ..self }
    }

    /// What a filter makes of it; an error says what templates can't do.
    pub(super) fn filtered(self, name: &str, arguments: &[Argument]) -> Result<Self, String> {
        let first = arguments.first();
        let is_safe = self.may_be_safe || arguments.iter().any(|argument| argument.size.may_be_safe);
        let escaped = if is_safe { ESCAPED_FACTOR } else { 1 };
        Ok(match name {
            "trim" | "string" => Self { depth: 0, items: self.bytes, item_bytes: 4, ..self },
            "safe" => Self { may_be_safe: true, ..Self::text(self.bytes) },
            "escape" | "e" => Self { may_be_safe: true, ..self.times(ESCAPED_FACTOR) },
            "lower" | "upper" | "title" | "capitalize" => self.times(CASE_FACTOR),
            "length" | "count" | "int" | "float" | "round" | "abs" => Self::NUMBER,
            "bool" => Self::text(5),
            "default" | "d" => arguments.iter().fold(self, |size, argument| size.or(argument.size)),
            "first" | "last" | "min" | "max" => self.item(),
            "reverse" if self.depth > 0 => Self { depth: self.depth + 1, ..self },
            "reverse" => self,
            "list" | "sort" | "unique" | "split" | "lines" => self.parts(),
            "join" => {
                let between = first.map_or(0, |argument| argument.size.bytes);
                let joined = self.bytes.saturating_add(self.items.saturating_mul(between));
                Self { may_be_safe: is_safe, ..Self::text(joined.saturating_mul(escaped)) }
            }
            "replace" => {
                let [from, to] = arguments else {
                    return Err("the filter \"replace\" takes two texts".to_owned());
                };
                let input = self.bytes.saturating_mul(escaped);
                let to = to.size.bytes.saturating_mul(escaped);
                let from = from.constant.as_ref().and_then(|from| from.as_str()).map_or(0, str::len) as u64;
                let grown = match input.checked_div(from) {
                    Some(times) => input.saturating_add(times.saturating_mul(to.saturating_sub(from))),
                    // An empty text is found between any two characters.
                    None => input.saturating_add(input.saturating_add(1).saturating_mul(to)),
                };
                Self { may_be_safe: is_safe, ..Self::text(grown) }
            }
            "indent" => {
                let width = match first {
                    None => Some(4),
                    Some(width) => {
                        width.constant.as_ref().and_then(|width| u64::try_from(width.clone()).ok())
                    }
                };
                let width = width.ok_or("the filter \"indent\" takes a number that is written out")?;
                let lines = self.bytes.saturating_add(2);
                Self {
                    may_be_safe: is_safe,
                    ..Self::text(self.bytes.saturating_add(lines.saturating_mul(width)))
                }
            }
            other => {
                return Err(format!(
                    "templates cannot use the filter {other:?}; they can use {}",
                    FILTERS.join(", ")
                ));
            }
        })
    }
}
