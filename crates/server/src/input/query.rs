//! Reads what stands behind the question mark.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;

use super::{unknown, unknown_names};
use crate::problem::{FieldProblem, Problem};

/// Parameters that are taken one by one.
#[derive(Debug, Default)]
pub struct Params {
    pairs: Vec<(String, String)>,
    asked: Vec<&'static str>,
    problems: Vec<FieldProblem>,
}

impl Params {
    /// The same without those that say nothing, as a form has them that was left empty.
    pub fn filled(mut self) -> Self {
        self.pairs.retain(|(_, text)| !text.trim().is_empty());
        self
    }

    /// A parameter's text.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.asked.push(name);
        let mut found = self.pairs.iter().filter(|(known, _)| known == name);
        let first = found.next()?.1.clone();
        if found.next().is_some() {
            self.problems.push(FieldProblem::new(name, "is said twice"));
        }
        Some(first)
    }

    /// A parameter's value, with what is wrong about it if it has none.
    pub fn get<T>(&mut self, name: &'static str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        match parse(&self.text(name)?) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.problems.push(FieldProblem::new(name, problem));
                None
            }
        }
    }

    /// Everything that was wrong, parameters that nobody asked for included.
    pub fn finish(mut self) -> Result<(), Problem> {
        let names = self.pairs.iter().map(|(name, _)| name.as_str());
        self.problems.extend(unknown_names(names, &self.asked));
        if self.problems.is_empty() { Ok(()) } else { Err(Problem::invalid(self.problems)) }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).map(|query| query.0);
        Ok(Self { pairs: pairs.unwrap_or_default(), ..Self::default() })
    }
}

/// One of these words.
pub fn word<T: Copy>(text: &str, find: impl Fn(&str) -> Option<T>, known: &[&str]) -> Result<T, String> {
    find(text).ok_or_else(|| {
        let unknown = unknown(text, known.iter().copied());
        format!("is one of {}; {text:?} {unknown}", known.join(", "))
    })
}

/// Yes or no.
pub fn flag(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("is true or false, not {other:?}")),
    }
}
