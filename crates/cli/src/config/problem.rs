//! What is wrong with a config, and where, in words for the person who wrote it.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// Where something in a config stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In a text: a file or a profile.
    Text {
        /// Its place among the sources: profiles come before files.
        source: usize,
        /// The file's path, or the profile's name.
        name: Arc<str>,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1 in characters.
        column: usize,
    },
    /// In an environment variable.
    Variable(Arc<str>),
    /// Nowhere in particular.
    Nowhere,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { name, line, column, .. } => write!(f, "{name}:{line}:{column}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Nowhere => f.write_str("config"),
        }
    }
}

/// How bad a problem is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing starts with it.
    Error,
    /// It works, but not as somebody may think.
    Warning,
}

/// One thing that is wrong with a config.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, and what to do about it.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        write!(f, "{}: {word}{}", self.place, self.text)
    }
}

/// All problems of a config that can't be used, in the order of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.0 {
            writeln!(f, "{problem}")?;
        }
        let count = |severity| self.0.iter().filter(|problem| problem.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        write!(f, "{}", counted(errors, "error"))?;
        if warnings > 0 {
            write!(f, ", {}", counted(warnings, "warning"))?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Where readers put what they find.
#[derive(Debug, Default)]
pub struct Findings(RefCell<Vec<Problem>>);

impl Findings {
    /// Notes something that nothing can start with.
    pub fn error(&self, place: &Place, text: impl Into<String>) {
        self.add(place, Severity::Error, text.into());
    }

    /// Notes something that works, but not as somebody may think.
    pub fn warning(&self, place: &Place, text: impl Into<String>) {
        self.add(place, Severity::Warning, text.into());
    }

    /// Whether something was found that nothing can start with.
    pub fn has_errors(&self) -> bool {
        self.0.borrow().iter().any(|problem| problem.severity == Severity::Error)
    }

    /// The warnings, if nothing is worse; all problems otherwise. In the order of the text.
    pub fn into_warnings(self) -> Result<Vec<Problem>, Problems> {
        let has_errors = self.has_errors();
        let mut all = self.0.into_inner();
        all.sort();
        if has_errors { Err(Problems(all)) } else { Ok(all) }
    }

    fn add(&self, place: &Place, severity: Severity, text: String) {
        self.0.borrow_mut().push(Problem { place: place.clone(), severity, text });
    }
}

/// A count with its noun: `1 error`, `2 errors`.
pub fn counted(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// The closest of these words to one that isn't among them, put as a question.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near = known
        .into_iter()
        .map(|candidate| (likeness(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    near.map(|(_, candidate)| format!("did you mean \"{candidate}\"?"))
}

/// From 0 to 1. A single slip counts as much as a shared beginning, which is what short words need.
fn likeness(word: &str, other: &str) -> f64 {
    let one_slip = if strsim::osa_distance(word, other) <= 1 { 0.9 } else { 0.0 };
    strsim::jaro_winkler(word, other).max(one_slip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_offered_and_a_far_one_is_not() {
        let known = ["lease", "send_timeout", "retention"];
        assert_eq!(did_you_mean("sned_timeout", known).as_deref(), Some("did you mean \"send_timeout\"?"));
        assert_eq!(did_you_mean("ulr", ["url"]).as_deref(), Some("did you mean \"url\"?"));
        assert_eq!(did_you_mean("leese", known).as_deref(), Some("did you mean \"lease\"?"));
        assert_eq!(did_you_mean("colour", known), None);
    }

    #[test]
    fn problems_come_in_the_order_of_the_text_and_are_counted() {
        let at = |line| Place::Text { source: 0, name: "a.toml".into(), line, column: 1 };
        let findings = Findings::default();
        findings.error(&at(10), "ten");
        findings.warning(&at(9), "nine");
        findings.error(&Place::Variable("X".into()), "last");
        findings.error(&at(2), "two");
        let text = findings.into_warnings().unwrap_err().to_string();
        assert_eq!(
            text,
            "a.toml:2:1: two\na.toml:9:1: warning: nine\na.toml:10:1: ten\nenvironment variable X: last\n\
             3 errors, 1 warning"
        );
    }
}
