//! Writes the mails of a campaign from its templates. A variable that isn't there is an error, never an empty place.
//!
//! Memory and time are bounded: `check` refuses templates whose values could grow too large, and what is written has a limit.

mod check;
mod size;

use std::io;

use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};
use redeliver_core::campaign::{Campaign, FIELD_BYTES_MAX, Problem, Prospect};
use redeliver_core::email::{Email, Mailbox};

/// Steps of one rendering, so that no template runs for ever.
const FUEL: u64 = 100_000;
/// The longest subject, text or HTML that a template may write.
const OUTPUT_BYTES_MAX: usize = 2 << 20;

/// The templates of a campaign, read once.
pub(super) struct Templates {
    environment: Environment<'static>,
}

impl Templates {
    /// Reads them; an error names each that can't be.
    pub(super) fn new(campaign: &Campaign) -> Result<Self, Vec<Problem>> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        let mut problems = Vec::new();
        for (index, step) in campaign.steps.iter().enumerate() {
            let parts = [
                ("subject", Some(&step.subject)),
                ("text", step.text.as_ref()),
                ("html", step.html.as_ref()),
            ];
            for (part, source) in parts.into_iter().filter_map(|(part, source)| Some((part, source?))) {
                // What is HTML is escaped as such: the name says so.
                let name = format!("{}.{part}", step.order);
                // Before it is compiled: a compiler works out what is constant.
                let added = check::check(source).and_then(|()| {
                    environment.add_template_owned(name, source.clone()).map_err(|error| words(&error))
                });
                if let Err(problem) = added {
                    problems.push(Problem { field: format!("steps[{index}].{part}"), problem });
                }
            }
        }
        if problems.is_empty() { Ok(Self { environment }) } else { Err(problems) }
    }

    /// The mail of a step to a prospect; an error says what is missing.
    pub(super) fn write(&self, campaign: &Campaign, step: u32, prospect: &Prospect) -> Result<Email, String> {
        let mut values: std::collections::BTreeMap<&str, &str> =
            prospect.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        values.insert("id", &prospect.id);
        values.insert("email", &prospect.email);
        values.insert("zone", prospect.zone.as_deref().unwrap_or_default());
        // The templates were checked for fields of this length.
        if let Some((name, _)) = values.iter().find(|(_, value)| value.len() > FIELD_BYTES_MAX) {
            return Err(format!("step {step}: the field {name:?} has more than {FIELD_BYTES_MAX} bytes"));
        }
        let values = Value::from_serialize(&values);
        let part = |part: &str| -> Result<Option<String>, String> {
            let Ok(template) = self.environment.get_template(&format!("{step}.{part}")) else {
                return Ok(None);
            };
            let mut output = Output::default();
            let rendered = template.render_captured_to(&values, &mut output).map(drop);
            let text = rendered.map_err(|error| words(&error)).and_then(|()| output.into_text());
            text.map(Some).map_err(|problem| format!("step {step}, {part}: {problem}"))
        };
        let email = Email {
            from: campaign.from.clone(),
            to: vec![Mailbox { address: prospect.email.clone(), name: None }],
            subject: part("subject")?.unwrap_or_default(),
            text: part("text")?,
            html: part("html")?,
            ..Email::default()
        };
        match email.problems().first() {
            None => Ok(email),
            Some(wrong) => Err(format!("step {step}, {}: {}", wrong.field, wrong.problem)),
        }
    }
}

/// What a template writes, up to the limit.
#[derive(Default)]
struct Output(Vec<u8>);

impl Output {
    fn into_text(self) -> Result<String, String> {
        String::from_utf8(self.0).map_err(|_| "is no text".to_owned())
    }
}

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_BYTES_MAX {
            return Err(io::Error::other("the output is too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is wrong, without what was put in.
fn words(error: &Error) -> String {
    if error.kind() == ErrorKind::WriteFailure {
        return format!("would have more than {OUTPUT_BYTES_MAX} bytes: write less, or use shorter loops");
    }
    let line = error.line().map(|line| format!(" (line {line})")).unwrap_or_default();
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    format!("{what}{line}")
}

#[cfg(test)]
mod tests;
