//! `/v1/campaigns/{campaign}/prospects`: whom it writes to, as NDJSON or CSV.
//!
//! The good lines of a body are enrolled in one commit, or none of them is; every bad one is told with its line.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use redeliver_core::campaign::Prospect;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::find;
use crate::Server;
use crate::auth::Caller;
use crate::input::{Params, Segment, body};
use crate::openapi::{ProspectLines, Reported};
use crate::problem::Problem;

/// Problems of lines that are told; the rest is only counted.
const TOLD_MAX: usize = 1_000;

/// What became of the lines.
#[derive(Serialize, ToSchema)]
pub struct Enrolment {
    /// Prospects that are new.
    pub enrolled: u64,
    /// Prospects whose id was known: they stay as they were.
    pub known: u64,
    /// Lines that were refused.
    pub refused: u64,
    /// What is wrong with which line; the first thousand.
    pub errors: Vec<LineProblem>,
}

/// What is wrong with a line.
#[derive(Serialize, ToSchema)]
pub struct LineProblem {
    /// Its number, from 1.
    pub line: u64,
    /// Which field.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// How prospects are written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Form {
    Ndjson,
    Csv,
}

/// Lines that were read, good and bad.
#[derive(Default)]
struct Read {
    prospects: Vec<Prospect>,
    refused: u64,
    errors: Vec<LineProblem>,
}

/// Enrol prospects: a line each, with an id, an email and whatever its templates want
#[utoipa::path(post, path = "/v1/campaigns/{campaign}/prospects", operation_id = "enrol_prospects", tag = "campaigns", params(("campaign" = String, Path)),
    request_body(content((ProspectLines = "application/x-ndjson"), (ProspectLines = "text/csv"))),
    responses((status = 200, description = "What became of each line", body = Enrolment), Reported))]
pub async fn enrol(
    State(server): State<Server>,
    caller: Caller,
    Segment(campaign): Segment,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Enrolment>, Problem> {
    params.finish()?;
    find(&server, &caller, &campaign).await?;
    let form = form(&headers)?;
    let whole = body::whole(&server, &headers, body).await?;
    let read = match form {
        Form::Ndjson => server.parsing.run(whole.text.len(), || ndjson(&whole.text)).await,
        Form::Csv => server.parsing.run(whole.text.len(), || csv(&whole.text)).await?,
    };
    let enrolled = match read.prospects.is_empty() {
        true => Vec::new(),
        false => server.engine.enrol(&campaign, read.prospects).await?,
    };
    let new = enrolled.iter().filter(|is_new| **is_new).count() as u64;
    Ok(Json(Enrolment {
        enrolled: new,
        known: enrolled.len() as u64 - new,
        refused: read.refused,
        errors: read.errors,
    }))
}

fn form(headers: &HeaderMap) -> Result<Form, Problem> {
    let said = |name| {
        let value = headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        value.map(|value| value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    };
    if let Some(encoding) = said(header::CONTENT_ENCODING)
        && encoding != "identity"
    {
        return Err(Problem::unsupported_type(format!("send it as it is, not encoded as {encoding}")));
    }
    match said(header::CONTENT_TYPE).as_deref() {
        Some("application/x-ndjson" | "application/ndjson") => Ok(Form::Ndjson),
        Some("text/csv") => Ok(Form::Csv),
        other => Err(Problem::unsupported_type(format!(
            "prospects come as application/x-ndjson or text/csv, not {}",
            other.unwrap_or("without a Content-Type")
        ))),
    }
}

impl Read {
    fn wrong(&mut self, line: u64, problems: impl IntoIterator<Item = (String, String)>) {
        self.refused += 1;
        for (field, problem) in problems {
            if self.errors.len() < TOLD_MAX {
                self.errors.push(LineProblem { line, field, problem });
            }
        }
    }

    fn take(&mut self, line: u64, prospect: Prospect) {
        let problems = prospect.problems();
        match problems.is_empty() {
            true => self.prospects.push(prospect),
            false => {
                self.wrong(line, problems.into_iter().map(|problem| (problem.field, problem.problem)));
            }
        }
    }
}

fn ndjson(text: &str) -> Read {
    let mut read = Read::default();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Map<String, Value>>(line) {
            Err(error) => {
                let said = error.to_string();
                let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
                read.wrong(number, [("(line)".to_owned(), format!("is no JSON object: {said}"))]);
            }
            Ok(object) => match of_object(object) {
                Ok(prospect) => read.take(number, prospect),
                Err(problems) => read.wrong(number, problems),
            },
        }
    }
    read
}

/// A prospect as JSON has it: texts, and numbers and yes or no as texts.
fn of_object(object: Map<String, Value>) -> Result<Prospect, Vec<(String, String)>> {
    let (mut fields, mut problems) = (BTreeMap::new(), Vec::new());
    for (name, value) in object {
        match value {
            Value::Null => {}
            Value::String(text) => drop(fields.insert(name, text)),
            Value::Number(_) | Value::Bool(_) => drop(fields.insert(name, value.to_string())),
            Value::Array(_) | Value::Object(_) => {
                problems.push((name, "is a text, a number, true or false".to_owned()));
            }
        }
    }
    let prospect = of_fields(fields);
    if problems.is_empty() { Ok(prospect) } else { Err(problems) }
}

/// Whoever these fields are about. What is missing is an empty text, which is then told.
fn of_fields(mut fields: BTreeMap<String, String>) -> Prospect {
    let id = fields.remove("id").unwrap_or_default();
    let email = fields.remove("email").unwrap_or_default();
    let zone = fields.remove("zone");
    Prospect { id, email, zone, fields }
}

/// CSV as RFC 4180 has it, its first line naming the columns. An empty cell says nothing.
fn csv(text: &str) -> Result<Read, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let unreadable = |error: csv::Error| Problem::unreadable(format!("it is not CSV: {error}"));
    let columns: Vec<String> =
        reader.headers().map_err(unreadable)?.iter().map(|name| name.trim().to_owned()).collect();
    for name in ["id", "email"] {
        if !columns.iter().any(|column| column == name) {
            return Err(Problem::invalid(vec![crate::problem::FieldProblem::new(
                name,
                "is missing: the first line names the columns, such as id,email,first_name,zone",
            )]));
        }
    }
    let mut read = Read::default();
    let (mut line, mut counted) = (1, 0);
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        // The reader's own count stops at the CR of the line before.
        let start = record.position().map_or(counted, |at| at.byte() as usize);
        let start = text.len() - text.get(start..).unwrap_or_default().trim_start_matches(['\r', '\n']).len();
        line += text.get(counted..start).unwrap_or_default().matches('\n').count() as u64;
        counted = start;
        if record.len() != columns.len() {
            let problem = format!("has {} cells, and there are {} columns", record.len(), columns.len());
            read.wrong(line, [("(line)".to_owned(), problem)]);
            continue;
        }
        let cells = columns.iter().zip(&record).filter(|(_, cell)| !cell.is_empty());
        let fields = cells.map(|(name, cell)| (name.clone(), cell.to_owned())).collect();
        read.take(line, of_fields(fields));
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(read: &Read) -> Vec<(u64, &str)> {
        read.errors.iter().map(|error| (error.line, error.field.as_str())).collect()
    }

    #[test]
    fn lines_of_json_are_read_and_each_bad_one_is_named() {
        let read = ndjson(
            "{\"id\": 7, \"email\": \"a@example.org\", \"vip\": true, \"zone\": null}\n\n{\"id\": \"x\"}\nno\n{\"id\": \"y\", \"email\": \"y@example.org\", \"tags\": []}\n",
        );
        assert_eq!(read.prospects.len(), 1);
        assert_eq!((&*read.prospects[0].id, &*read.prospects[0].fields["vip"]), ("7", "true"));
        assert_eq!(told(&read), [(3, "email"), (4, "(line)"), (5, "tags")]);
        assert_eq!(read.refused, 3);
    }

    #[test]
    fn csv_with_quotes_and_line_breaks_is_read_and_an_empty_cell_says_nothing() {
        let read = csv("\u{feff}id,email,first_name,zone\r\n1,a@example.org,\"O\"\"Neil,\nAda\",\r\n2,b@example.org\r\n3,nobody,Bob,Mars/Base\r\n")
            .unwrap();
        assert_eq!(read.prospects.len(), 1);
        assert_eq!(read.prospects[0].fields["first_name"], "O\"Neil,\nAda");
        assert_eq!(read.prospects[0].zone, None);
        assert_eq!(told(&read), [(4, "(line)"), (5, "email"), (5, "zone")]);
        assert_eq!(csv("name\nx\n").err().map(|problem| problem.status), Some(422));
    }
}
