//! A path with the names of attributes in braces: `/devices/{device_id}`.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// A path, in which attributes of a message take their places.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Attribute(String),
}

/// What a template comes to with a message's attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// A path.
    Path(String),
    /// None: the message has no attribute of this name.
    Lacks(String),
    /// None: the value of this attribute would lead somewhere else.
    Astray(String),
}

impl Template {
    /// Reads a path; an error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err("must begin with \"/\", such as \"/devices/{device_id}\"".to_owned());
        }
        if text.contains(|c: char| c.is_control() || c == ' ' || c == '#') {
            return Err("must have no spaces and no \"#\"".to_owned());
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or("has a \"{\" without its \"}\"")?;
            if name.is_empty() || name.contains('{') {
                return Err("has braces without the name of an attribute".to_owned());
            }
            parts.extend([Part::Text(before.to_owned()), Part::Attribute(name.to_owned())]);
            rest = after;
        }
        if rest.contains('}') {
            return Err("has a \"}\" without its \"{\"".to_owned());
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    /// The path for a message with these attributes.
    pub(super) fn fill(&self, attributes: &BTreeMap<String, String>) -> Filled {
        let mut path = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => path.push_str(text),
                Part::Attribute(name) => match attributes.get(name).map(String::as_str) {
                    None | Some("") => return Filled::Lacks(name.clone()),
                    // No encoding keeps these from meaning another place.
                    Some("." | "..") => return Filled::Astray(name.clone()),
                    Some(value) => push_encoded(&mut path, value),
                },
            }
        }
        Filled::Path(path)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            Part::Attribute(name) => write!(f, "{{{name}}}"),
        })
    }
}

fn push_encoded(path: &mut String, value: &str) {
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                path.push(char::from(byte))
            }
            _ => {
                let _ = write!(path, "%{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str, value: &str) -> Filled {
        let attributes = BTreeMap::from([("device_id".to_owned(), value.to_owned())]);
        Template::parse(template).unwrap().fill(&attributes)
    }

    #[test]
    fn an_attribute_takes_its_place_and_cannot_lead_elsewhere() {
        let path = |text: &str| Filled::Path(text.to_owned());
        assert_eq!(fill("/devices/{device_id}", "d-1"), path("/devices/d-1"));
        assert_eq!(
            fill("/devices/{device_id}/state?full=1", "a/b?c#d"),
            path("/devices/a%2Fb%3Fc%23d/state?full=1")
        );
        assert_eq!(fill("/d/{device_id}", "é"), path("/d/%C3%A9"));
        assert_eq!(fill("/d/{device_id}", "../keys"), path("/d/..%2Fkeys"));
        for astray in [".", ".."] {
            assert_eq!(fill("/d/{device_id}", astray), Filled::Astray("device_id".to_owned()));
        }
        assert_eq!(fill("/d/{device_id}", ""), Filled::Lacks("device_id".to_owned()));
        assert_eq!(fill("/d/{other}", "d-1"), Filled::Lacks("other".to_owned()));
        assert_eq!(fill("/alive", "d-1"), path("/alive"));
    }

    #[test]
    fn a_template_is_shown_as_it_was_written() {
        assert_eq!(Template::parse("/a/{b}/c").unwrap().to_string(), "/a/{b}/c");
    }

    #[test]
    fn what_is_no_template_says_why() {
        for wrong in ["", "devices/{device_id}", "/d/{", "/d/{}", "/d/}", "/d/{a{b}}", "/d e", "/d#e"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }
}
