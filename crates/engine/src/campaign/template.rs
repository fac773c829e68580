//! Writes the mails of a campaign from its templates. A variable that isn't there is an error, never an empty place.

use minijinja::{Environment, Error, UndefinedBehavior, Value};
use redeliver_core::campaign::{Campaign, Problem, Prospect};
use redeliver_core::email::{Email, Mailbox};

/// Steps of one rendering, so that no template runs for ever.
const FUEL: u64 = 100_000;

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
                if let Err(error) = environment.add_template_owned(name, source.clone()) {
                    let field = format!("steps[{index}].{part}");
                    problems.push(Problem { field, problem: words(&error) });
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
        let values = Value::from_serialize(&values);
        let part = |part: &str| -> Result<Option<String>, String> {
            let Ok(template) = self.environment.get_template(&format!("{step}.{part}")) else {
                return Ok(None);
            };
            let rendered = template.render(&values);
            rendered.map(Some).map_err(|error| format!("step {step}, {part}: {}", words(&error)))
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

/// What is wrong, without what was put in.
fn words(error: &Error) -> String {
    let line = error.line().map(|line| format!(" (line {line})")).unwrap_or_default();
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    format!("{what}{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign(text: &str) -> Campaign {
        let step = serde_json::json!({ "order": 1, "subject": "Hi {{ first_name }}", "text": text,
            "html": "<p>{{ first_name }}</p>" });
        serde_json::from_value(serde_json::json!({
            "name": "a", "sequence_id": "s", "route": "email", "from": "bob@example.org", "steps": [step]
        }))
        .unwrap()
    }

    fn prospect(name: &str) -> Prospect {
        serde_json::from_value(
            serde_json::json!({ "id": "p", "email": "ada@example.org", "first_name": name }),
        )
        .unwrap()
    }

    #[test]
    fn a_mail_says_what_its_prospect_is_called_and_html_is_escaped() {
        let campaign = campaign("Dear {{ first_name }} <{{ email }}>");
        let templates = Templates::new(&campaign).unwrap_or_else(|_| panic!("they can be read"));
        let email = templates.write(&campaign, 1, &prospect("A&B")).unwrap();
        assert_eq!(email.subject, "Hi A&B");
        assert_eq!(email.text.as_deref(), Some("Dear A&B <ada@example.org>"));
        assert_eq!(email.html.as_deref(), Some("<p>A&amp;B</p>"));
    }

    #[test]
    fn what_is_missing_or_endless_or_breaks_out_is_an_error() {
        let check = |text: &str, name: &str, words: &str| {
            let campaign = campaign(text);
            let templates = Templates::new(&campaign).unwrap_or_else(|_| panic!("they can be read"));
            let wrong = templates.write(&campaign, 1, &prospect(name)).unwrap_err();
            assert!(wrong.contains(words), "{wrong}");
        };
        check("{{ last_name }}", "Ada", "step 1, text");
        check(
            "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
            "Ada",
            "step 1",
        );
        check("x", "A\r\nBcc: eve@example.org", "subject");
    }

    #[test]
    fn a_template_that_cannot_be_read_is_named() {
        let wrong = Templates::new(&campaign("{{ first_name")).err().unwrap_or_default();
        assert_eq!(wrong[0].field, "steps[0].text");
    }
}
