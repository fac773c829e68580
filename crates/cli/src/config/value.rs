//! What a single value can be read as. An error says what it must be, and goes on from the key's name.

use std::ops::RangeInclusive;
use std::time::Duration;

use redeliver_core::time::{parse_span, show_span};

use super::problem::did_you_mean;
use super::source::{Node, Value};

/// A thousandth of a second: the shortest span there is.
pub const MS: Duration = Duration::from_millis(1);
/// A second.
pub const SECOND: Duration = Duration::from_secs(1);
/// An hour.
pub const HOUR: Duration = Duration::from_secs(3_600);
/// A day.
pub const DAY: Duration = Duration::from_secs(24 * 3_600);
/// As long as anything may be told to wait: ten years.
pub const AGE: Duration = Duration::from_secs(3_650 * 24 * 3_600);

impl Node {
    /// Any text.
    pub fn text(&self) -> Result<String, String> {
        match &self.value {
            Value::Text(text) | Value::Bare(text) => Ok(text.clone()),
            other => Err(format!("must be a text in quotes, not {}", other.kind())),
        }
    }

    /// A text with a grammar of its own.
    pub fn parsed<T>(&self, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, String> {
        parse(&self.text()?).map_err(|wrong| format!("can't be read: {wrong}"))
    }

    /// One of a few words.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, String> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known = || words.iter().map(|(word, _)| *word);
            let listed: Vec<String> = known().map(|word| format!("\"{word}\"")).collect();
            let hint = did_you_mean(&text, known()).map(|hint| format!(": {hint}")).unwrap_or_default();
            format!("must be {}, not \"{text}\"{hint}", listed.join(" or "))
        })
    }

    /// A span of time between two others.
    pub fn span(&self, range: RangeInclusive<Duration>) -> Result<Duration, String> {
        let wanted = || format!("must be a span such as \"30s\" or \"1h30m\", not {}", self.value.kind());
        let text = self.text().map_err(|_| wanted())?;
        let span = parse_span(&text).map_err(|_| wanted())?;
        if !range.contains(&span) {
            let (min, max) = (show_span(*range.start()), show_span(*range.end()));
            return Err(format!("must be between {min} and {max}, not {}", show_span(span)));
        }
        Ok(span)
    }

    /// A whole number between two others.
    pub fn count(&self, range: RangeInclusive<u32>) -> Result<u32, String> {
        let number = match &self.value {
            Value::Integer(number) => Some(*number),
            Value::Bare(text) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| format!("must be a whole number, not {}", self.value.kind()))?;
        let fits = u32::try_from(number).ok().filter(|count| range.contains(count));
        fits.ok_or_else(|| format!("must be between {} and {}, not {number}", range.start(), range.end()))
    }

    /// A number between two others.
    pub fn number(&self, range: RangeInclusive<f64>) -> Result<f64, String> {
        let number = match &self.value {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            Value::Bare(text) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| format!("must be a number, not {}", self.value.kind()))?;
        if !range.contains(&number) {
            return Err(format!("must be between {} and {}, not {number}", range.start(), range.end()));
        }
        Ok(number)
    }

    /// Nothing, if it is the word that says so; else what `read` makes of it.
    pub fn unless<T>(
        &self,
        word: &str,
        read: impl FnOnce(&Self) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        match &self.value {
            Value::Text(text) | Value::Bare(text) if text == word => Ok(None),
            _ => read(self).map(Some).map_err(|wrong| format!("{wrong} (\"{word}\" is possible too)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::problem::Place;

    fn node(value: Value) -> Node {
        Node { place: Place::Nowhere, value }
    }

    #[test]
    fn a_variable_is_whatever_the_key_wants() {
        let bare = |text: &str| node(Value::Bare(text.to_owned()));
        assert_eq!(bare("17").count(1..=100), Ok(17));
        assert_eq!(bare("1.5").number(1.0..=2.0), Ok(1.5));
        assert_eq!(bare("17").text(), Ok("17".to_owned()));
        assert_eq!(bare("17s").span(MS..=HOUR), Ok(Duration::from_secs(17)));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        let text = |text: &str| node(Value::Text(text.to_owned()));
        let check = |wrong: Result<(), String>, said: &str| assert_eq!(wrong, Err(said.to_owned()));
        check(
            node(Value::Integer(30)).span(MS..=HOUR).map(drop),
            "must be a span such as \"30s\" or \"1h30m\", not the number 30",
        );
        check(text("0s").span(MS..=HOUR).map(drop), "must be between 1ms and 1h, not 0s");
        check(text("17").count(1..=100).map(drop), "must be a whole number, not \"17\"");
        check(
            node(Value::Integer(i128::MAX)).count(1..=9).map(drop),
            &format!("must be between 1 and 9, not {}", i128::MAX),
        );
        check(node(Value::Float(f64::NAN)).number(1.0..=2.0).map(drop), "must be between 1 and 2, not NaN");
        check(
            text("hodl").word(&[("retry", ()), ("hold", ())]),
            "must be \"retry\" or \"hold\", not \"hodl\": did you mean \"hold\"?",
        );
        check(
            node(Value::Flag(false)).unless("never", |node| node.span(MS..=HOUR)).map(drop),
            "must be a span such as \"30s\" or \"1h30m\", not false (\"never\" is possible too)",
        );
    }
}
