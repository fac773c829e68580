//! A campaign as it is written: its steps, its prospects, and what is wrong with them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::key::check_id;
use super::settings::Settings;
use super::{Found, Problem};
use crate::calendar::Zone;
use crate::email::{Mailbox, NAME_BYTES_MAX, SUBJECT_BYTES_MAX, check_address};
use crate::message::Lane;
use crate::time::Timestamp;

/// The most steps of one campaign.
pub const STEPS_MAX: usize = 50;
/// The longest wait between two steps.
pub const DELAY_DAYS_MAX: u32 = 3_650;
/// The longest template of a body.
const BODY_BYTES_MAX: usize = 1 << 20;
/// The most fields of a prospect besides its own.
const FIELDS_MAX: usize = 100;
/// The longest field of a prospect, with its name.
pub const FIELD_BYTES_MAX: usize = 4_096;

/// Steps for prospects, from one sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Campaign {
    /// What people call it.
    pub name: String,
    /// What its keys call it.
    pub sequence_id: String,
    /// The way its mails travel.
    pub route: String,
    /// Who writes; the route's own sender if it doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Mailbox>,
    /// The priority of its mails, in a word. Those of `critical` and `high` ones may use what quotas keep for urgent mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Its steps.
    pub steps: Vec<Step>,
    /// Its own settings, which only narrow its workspace's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// Nothing goes out before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
}

/// One mail of a campaign, as a template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its number, from 1.
    pub order: u32,
    /// How many local days after its own previous step it goes out at the earliest; the first one's count from the start.
    #[serde(default)]
    pub delay_days: u32,
    /// What it is about.
    pub subject: String,
    /// Its words as plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its words as HTML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
}

/// Somebody who is written to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prospect {
    /// What its keys call them.
    pub id: String,
    /// Their address.
    pub email: String,
    /// Where they live, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// What templates can say about them.
    #[serde(flatten)]
    pub fields: BTreeMap<String, String>,
}

impl Campaign {
    /// Everything that is wrong with it. Its settings are judged together with its workspace's.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = Found::default();
        if self.name.trim().is_empty() || self.name.len() > NAME_BYTES_MAX {
            found.note("name", format!("must have from 1 to {NAME_BYTES_MAX} bytes"));
        }
        found.take("sequence_id", check_id(&self.sequence_id));
        if self.route.is_empty() {
            found.note("route", "is missing");
        }
        if let Some(from) = &self.from {
            found.take("from.address", check_address(&from.address));
        }
        if self.priority.as_deref().is_some_and(|word| Lane::from_name(word).is_none()) {
            found.note("priority", format!("is one of {}", Lane::ALL.map(Lane::name).join(", ")));
        }
        if self.steps.is_empty() || self.steps.len() > STEPS_MAX {
            found.note("steps", format!("must be from 1 to {STEPS_MAX}, not {}", self.steps.len()));
        }
        let mut orders = BTreeSet::new();
        for (i, step) in self.steps.iter().enumerate() {
            step.check(&format!("steps[{i}]"), &mut found);
            if !orders.insert(step.order) {
                found.note(format!("steps[{i}].order"), format!("{} is another step's as well", step.order));
            }
        }
        let is_counted = orders.iter().zip(1u32..).all(|(order, expected)| *order == expected);
        if orders.len() == self.steps.len() && !is_counted {
            found.note("steps", "must be counted 1, 2, 3 and so on by their order, none left out");
        }
        found.0
    }

    /// The lane of its mails.
    pub fn lane(&self) -> Lane {
        self.priority.as_deref().and_then(Lane::from_name).unwrap_or_default()
    }

    /// Its steps, first to last.
    pub fn in_order(&self) -> Vec<&Step> {
        let mut steps: Vec<&Step> = self.steps.iter().collect();
        steps.sort_by_key(|step| step.order);
        steps
    }
}

impl Step {
    fn check(&self, field: &str, found: &mut Found) {
        if self.delay_days > DELAY_DAYS_MAX {
            found.note(format!("{field}.delay_days"), format!("must be at most {DELAY_DAYS_MAX}"));
        }
        if self.subject.trim().is_empty() || self.subject.len() > SUBJECT_BYTES_MAX {
            found.note(format!("{field}.subject"), format!("must have from 1 to {SUBJECT_BYTES_MAX} bytes"));
        }
        if self.text.is_none() && self.html.is_none() {
            found.note(format!("{field}.text"), "is missing, and there is no html either");
        }
        for (name, body) in [("text", &self.text), ("html", &self.html)] {
            if body.as_ref().is_some_and(|body| body.len() > BODY_BYTES_MAX) {
                found.note(format!("{field}.{name}"), format!("must have at most {BODY_BYTES_MAX} bytes"));
            }
        }
    }
}

impl Prospect {
    /// Everything that is wrong with it.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = Found::default();
        found.take("id", check_id(&self.id));
        found.take("email", check_address(&self.email));
        if let Some(zone) = &self.zone {
            found.take("zone", zone.parse::<Zone>());
        }
        if self.fields.len() > FIELDS_MAX {
            found.note("fields", format!("must be at most {FIELDS_MAX}, not {}", self.fields.len()));
        }
        for (name, value) in &self.fields {
            if name.is_empty() || name.len() + value.len() > FIELD_BYTES_MAX {
                found.note(
                    name.as_str(),
                    format!("must have a name, and at most {FIELD_BYTES_MAX} bytes with it"),
                );
            }
        }
        found.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign() -> Campaign {
        serde_json::from_str(
            r#"{ "name": "Spring", "sequence_id": "seq-1", "route": "email", "from": "ada@example.org", "steps": [
                { "order": 2, "delay_days": 3, "subject": "Again", "html": "<p>Hi</p>" },
                { "order": 1, "subject": "Hi {{ first_name }}", "text": "Hello" } ],
               "settings": { "zone": "Europe/Paris" }, "start_at": "2027-03-08T00:00:00Z" }"#,
        )
        .unwrap()
    }

    fn fields(problems: Vec<Problem>) -> Vec<String> {
        problems.into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn a_campaign_as_the_api_has_it_is_read_and_is_well() {
        let campaign = campaign();
        assert_eq!(campaign.problems(), []);
        assert_eq!(campaign.in_order().iter().map(|step| step.order).collect::<Vec<_>>(), [1, 2]);
        let again: Campaign = serde_json::from_value(serde_json::to_value(&campaign).unwrap()).unwrap();
        assert_eq!(again, campaign);
    }

    #[test]
    fn everything_that_is_wrong_is_found_at_once() {
        let mut bad = campaign();
        bad.name = " ".to_owned();
        bad.sequence_id = "a:b".to_owned();
        bad.from = Some(Mailbox { address: "nobody".to_owned(), name: None });
        bad.steps[0] = Step { order: 1, delay_days: 4_000, subject: "".into(), text: None, html: None };
        assert_eq!(
            fields(bad.problems()),
            [
                "name",
                "sequence_id",
                "from.address",
                "steps[0].delay_days",
                "steps[0].subject",
                "steps[0].text",
                "steps[1].order"
            ]
        );
        bad = campaign();
        bad.priority = Some("urgent".to_owned());
        assert_eq!(fields(bad.problems()), ["priority"]);
        bad.priority = Some("high".to_owned());
        assert_eq!((bad.problems(), bad.lane()), (Vec::new(), Lane::High));
        bad.steps[0].order = 3;
        assert_eq!(fields(bad.problems()), ["steps"]);
        bad.steps.clear();
        assert_eq!(fields(bad.problems()), ["steps"]);
    }

    #[test]
    fn a_prospect_keeps_what_templates_can_say_about_it() {
        let prospect: Prospect = serde_json::from_str(
            r#"{ "id": "p-1", "email": "ada@example.org", "first_name": "Ada", "zone": "Asia/Tokyo" }"#,
        )
        .unwrap();
        assert_eq!(prospect.problems(), []);
        assert_eq!(prospect.fields["first_name"], "Ada");
        let bad = Prospect {
            id: "a:b".to_owned(),
            email: "x".to_owned(),
            zone: Some("Mars/Base".to_owned()),
            ..prospect
        };
        assert_eq!(fields(bad.problems()), ["id", "email", "zone"]);
    }
}
