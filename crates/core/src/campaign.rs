//! Campaigns: steps × prospects, each step a mail with a time of its own.
//!
//! What a campaign is and what is wrong with it ([`definition`]), when its workspace and it let mails out
//! ([`settings`]), what each mail is called ([`key`]), and the times of all of them ([`plan`]). Nothing here is stored: a
//! plan is a stream of times, and its state is a value that can be written down and gone on with.

mod allowance;
mod days;
mod definition;
mod ends;
mod follow;
mod forecast;
mod key;
mod ledger;
mod life;
mod mail;
mod plan;
mod ranges;
mod rules;
mod settings;

pub use allowance::Allowance;
pub use days::{PlannedDay, planned_days};
pub use definition::{Campaign, DELAY_DAYS_MAX, FIELD_BYTES_MAX, Prospect, STEPS_MAX, Step};
pub use ends::{Ends, EndsMoved};
pub use follow::{Follows, follows};
pub use forecast::{Forecast, StepForecast, forecast};
pub use key::{BadKey, ID_BYTES_MAX, StepKey};
pub use ledger::{Ledger, LimitName, Other, Unplanned};
pub use life::{CampaignAction, CampaignState, NotNow};
pub use mail::{MailOf, STEP_TYPE};
pub use plan::{Enrolled, NoRoom, PLAN_DAYS_MAX, Plan, Planner, Scheduled};
pub use ranges::Ranges;
pub use rules::{Limit, Rules};
pub use settings::{Interval, Sending, Settings, WrittenRampUp};

/// What is wrong with a campaign, a prospect or settings: which field, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field, such as `steps[1].subject`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Collects problems.
#[derive(Debug, Default)]
struct Found(Vec<Problem>);

impl Found {
    fn note(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        self.0.push(Problem { field: field.into(), problem: problem.into() });
    }

    /// The value, or a note of what is wrong with it.
    fn take<T, E: ToString>(&mut self, field: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.note(field, error.to_string())).ok()
    }
}
