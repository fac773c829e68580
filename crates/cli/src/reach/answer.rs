//! An answer, and what people are told if it is a problem.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// What was answered.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// What the API says is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    title: String,
    detail: String,
    errors: Vec<FieldProblem>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct FieldProblem {
    field: String,
    problem: String,
}

impl Answer {
    /// Whether a part was done, and the rest is being done: asked again, it goes on.
    pub fn is_part(&self) -> bool {
        self.status == 202
    }

    /// The JSON that was answered, unless it is a problem.
    pub fn json(&self) -> Result<Value, Problem> {
        if self.status >= 300 {
            return Err(self.problem());
        }
        serde_json::from_slice(&self.body).map_err(|_| self.odd())
    }

    /// Whether it was done, whatever else was answered.
    pub fn done(&self) -> Result<(), Problem> {
        if self.status >= 300 { Err(self.problem()) } else { Ok(()) }
    }

    /// The lines of JSON that were answered, unless all of it is one problem.
    pub fn lines(&self) -> Result<Vec<Value>, Problem> {
        if self.status >= 300 {
            return Err(self.problem());
        }
        let lines = self.body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        lines.map(|line| serde_json::from_slice(line).map_err(|_| self.odd())).collect()
    }

    fn problem(&self) -> Problem {
        let said: Option<Problem> = serde_json::from_slice(&self.body).ok();
        let said = said.filter(|problem| !problem.detail.is_empty() || !problem.title.is_empty());
        Problem { status: self.status, ..said.unwrap_or_else(|| self.odd()) }
    }

    fn odd(&self) -> Problem {
        let detail = format!("the answer ({}) is not redeliver's: is the URL right?", self.status);
        Problem { status: self.status, detail, ..Problem::default() }
    }
}

/// In a line, or in a line for each field if there are several.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.detail.is_empty() { &self.title } else { &self.detail })?;
        if let [_, _, ..] = self.errors.as_slice() {
            for FieldProblem { field, problem } in &self.errors {
                write!(f, "\n  {field} {problem}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16, body: &str) -> String {
        Answer { status, body: body.into() }.json().unwrap_err().to_string()
    }

    #[test]
    fn only_what_is_still_being_done_is_a_part() {
        let is_part = |status| Answer { status, body: Vec::new() }.is_part();
        assert_eq!([200, 201, 202, 204, 422].map(is_part), [false, false, true, false, false]);
    }

    #[test]
    fn a_problem_is_said_with_its_fields_and_anything_else_is_doubted() {
        let one =
            r#"{"title":"Wrong","detail":"key is empty","errors":[{"field":"key","problem":"is empty"}]}"#;
        assert_eq!(said(422, one), "key is empty");
        let two = r#"{"detail":"2 fields are wrong","errors":[
            {"field":"key","problem":"is empty"},{"field":"email.to[0]","problem":"has no @"}]}"#;
        assert_eq!(said(422, two), "2 fields are wrong\n  key is empty\n  email.to[0] has no @");
        assert_eq!(said(401, r#"{"title":"A key is needed"}"#), "A key is needed");
        let doubt = "the answer (502) is not redeliver's: is the URL right?";
        for body in ["<html>", "", "{}", "[]"] {
            assert_eq!(said(502, body), doubt, "{body}");
        }
        assert_eq!(said(200, "<html>"), doubt.replace("502", "200"));
    }
}
