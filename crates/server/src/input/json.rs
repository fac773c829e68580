//! Reads a JSON object field by field. What isn't asked for by name is kept as the text that it was.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{unknown, unknown_names};
use crate::problem::{FieldProblem, Problem};

/// How deep what a caller sends may be nested, as serde_json has it for what it reads itself.
const DEPTH_MAX: usize = 127;

/// Fields of one object, at most. Nothing here has nearly as many.
const FIELDS_MAX: usize = 1_000;

/// An object of which fields are taken one by one.
pub struct Fields<'a> {
    entries: Vec<(String, &'a RawValue)>,
    asked: Vec<&'static str>,
    problems: Vec<FieldProblem>,
}

impl<'a> Fields<'a> {
    /// The fields of a text that must be one object.
    pub fn of(text: &'a str) -> Result<Self, Problem> {
        let entries: Entries<'a> = serde_json::from_str(text).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => {
                Problem::invalid(vec![FieldProblem::new("(body)", words(&error))])
            }
            _ => Problem::unreadable(format!("it is not JSON: {error}")),
        })?;
        let mut seen = HashSet::with_capacity(entries.0.len());
        let repeated = entries.0.iter().filter(|(name, _)| !seen.insert(name.as_str()));
        let problems = repeated.map(|(name, _)| FieldProblem::new(name, "is said twice")).collect();
        // The first of two is the one that is found.
        Ok(Self { entries: entries.0, asked: Vec::new(), problems })
    }

    /// A field's own text; `null` says nothing.
    pub fn raw(&mut self, name: &'static str) -> Option<&'a RawValue> {
        self.asked.push(name);
        let (_, value) = self.entries.iter().find(|(known, _)| known == name)?;
        if is_too_deep(value.get()) {
            self.wrong(name, format!("is nested more than {DEPTH_MAX} deep"));
            return None;
        }
        (value.get() != "null").then_some(*value)
    }

    /// Whether a field is said to be nothing.
    pub fn is_null(&mut self, name: &'static str) -> bool {
        self.asked.push(name);
        self.entries.iter().any(|(known, value)| known == name && value.get() == "null")
    }

    /// A field's value, if it is there and as it should be.
    pub fn get<T: DeserializeOwned>(&mut self, name: &'static str) -> Option<T> {
        let value = self.raw(name)?;
        let mut reader = serde_json::Deserializer::from_str(value.get());
        match serde_path_to_error::deserialize(&mut reader) {
            Ok(value) => Some(value),
            Err(error) => {
                let path = error.path().to_string();
                let within = match path.as_str() {
                    "." => name.to_owned(),
                    path if path.starts_with('[') => format!("{name}{path}"),
                    path => format!("{name}.{path}"),
                };
                let (field, problem) = explain(within, error.inner());
                self.wrong(field, problem);
                None
            }
        }
    }

    /// A field's value made into something else, with what is wrong about it if it can't be.
    pub fn parse<T: DeserializeOwned, U>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(T) -> Result<U, String>,
    ) -> Option<U> {
        match parse(self.get(name)?) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.wrong(name, problem);
                None
            }
        }
    }

    /// Notes that something is wrong with a field.
    pub fn wrong(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        self.problems.push(FieldProblem::new(field, problem));
    }

    /// Whether anything was wrong so far.
    pub fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Everything that was wrong, fields that nobody asked for included.
    pub fn finish(mut self) -> Result<(), Vec<FieldProblem>> {
        let names = self.entries.iter().map(|(name, _)| name.as_str());
        self.problems.extend(unknown_names(names, &self.asked));
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems) }
    }
}

/// The field that an error is about, and the error in words.
fn explain(field: String, error: &serde_json::Error) -> (String, String) {
    let said = words(error);
    let unknown_field = said.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
    match unknown_field {
        Some((name, expected)) => {
            let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
            let field = if field.ends_with(&format!(".{name}")) { field } else { format!("{field}.{name}") };
            (field, unknown(name, known))
        }
        None if said.contains("untagged enum") => {
            (field, "has none of the forms that it may have".to_owned())
        }
        None => (field, format!("is wrong: {said}")),
    }
}

/// What an error says, without the place in a text that the caller never saw as we did.
fn words(error: &serde_json::Error) -> String {
    let said = error.to_string();
    said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said).to_owned()
}

/// Whether a text is nested too deep that is known to be JSON. Each level takes two bytes, so that most are too short.
fn is_too_deep(json: &str) -> bool {
    json.len() > 2 * DEPTH_MAX && json.starts_with(['[', '{']) && depth(json) > DEPTH_MAX
}

/// How deep a text is nested that is known to be JSON.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// An object's fields in their order, those that are said twice included.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    if entries.len() == FIELDS_MAX {
                        return Err(A::Error::custom(format_args!("it has more than {FIELDS_MAX} fields")));
                    }
                    entries.push(entry);
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_map(Object).map(Entries)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "how long reading takes is what is tested")]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let mut fields = Fields::of(text).unwrap();
        let _: Option<u32> = fields.get("count");
        let _: Option<Vec<String>> = fields.get("names");
        let problems = fields.finish().err().unwrap_or_default();
        problems.into_iter().map(|wrong| format!("{} {}", wrong.field, wrong.problem)).collect()
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once_by_its_field() {
        assert_eq!(problems(r#"{"count": 1, "names": null}"#), [""; 0]);
        assert_eq!(
            problems(r#"{"count": "1", "names": ["a", 2], "cuont": 1, "count": 2}"#),
            [
                "count is said twice",
                "count is wrong: invalid type: string \"1\", expected u32",
                "names[1] is wrong: invalid type: integer `2`, expected a string",
                "cuont is unknown: did you mean \"count\"?",
            ]
        );
    }

    #[test]
    fn what_is_no_object_is_told_from_what_is_no_json() {
        for (text, status) in
            [("[]", 422), ("1", 422), ("", 400), ("{", 400), ("{} {}", 400), ("{'a':1}", 400)]
        {
            assert_eq!(Fields::of(text).err().map(|problem| problem.status), Some(status), "{text}");
        }
    }

    /// Reads an object of so many different fields, and gives how long that took and what was wrong.
    fn read_fields(count: usize) -> (Duration, Problem) {
        let fields: Vec<String> = (0..count).map(|n| format!("\"k{n}\":1")).collect();
        let text = format!("{{{}}}", fields.join(","));
        let begun = Instant::now();
        let problem = match Fields::of(&text) {
            Ok(mut fields) => {
                let _: Option<u32> = fields.get("count");
                fields.finish().map_err(Problem::invalid).unwrap_err()
            }
            Err(problem) => problem,
        };
        (begun.elapsed(), problem)
    }

    #[test]
    fn an_object_of_forty_thousand_fields_is_refused_at_once_and_in_few_words() {
        let (took, problem) = read_fields(40_000);
        let bytes = serde_json::to_string(&problem).unwrap().len();
        assert!(took < Duration::from_secs(1), "it took {took:?}");
        assert_eq!((problem.status, problem.errors.len()), (422, 1));
        assert!(bytes < 1_000 && problem.detail.contains("more than 1000 fields"), "{problem:?}");
    }

    #[test]
    fn a_hundred_problems_are_listed_and_the_rest_are_counted() {
        let (_, problem) = read_fields(FIELDS_MAX);
        assert_eq!(problem.errors.len(), 100);
        assert_eq!(problem.detail, "1000 fields are wrong; the first 100 are listed");
        assert!(serde_json::to_string(&problem).unwrap().len() < 20_000);
    }

    #[test]
    fn a_problem_repeats_little_of_a_long_name_or_value() {
        let long = "x".repeat(1_000_000);
        for text in [format!(r#"{{"{long}": 1}}"#), format!(r#"{{"count": "{long}"}}"#)] {
            let said = problems(&text).concat();
            assert!(said.len() < 2_000, "{} bytes", said.len());
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        let nested = |depth: usize| format!("{{\"names\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
        let read = |text: &str| Fields::of(text).unwrap().raw("names").is_some();
        assert!(read(&nested(DEPTH_MAX)) && !read(&nested(DEPTH_MAX + 1)) && !read(&nested(100_000)));
        assert!(read(&format!("{{\"names\": \"{}\\\"[\"}}", "[".repeat(500))));
    }
}
