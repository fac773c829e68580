//! When a campaign will be done, found out by planning it without writing anything down.

use std::collections::BTreeMap;

use super::plan::{Enrolled, Planner, Scheduled};
use crate::calendar::Day;
use crate::time::Timestamp;

/// What a plan comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    /// Prospects that were planned.
    pub prospects: u64,
    /// Mails in all.
    pub mails: u64,
    /// Prospects for whose last steps there is no room.
    pub without_room: u64,
    /// When the first goes out.
    pub first_at: Option<Timestamp>,
    /// When the last goes out, if nothing is retried.
    pub last_at: Option<Timestamp>,
    /// Each step by itself.
    pub steps: Vec<StepForecast>,
    /// Mails on each local day.
    pub days: BTreeMap<Day, u64>,
}

/// What one step comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepForecast {
    /// Mails.
    pub mails: u64,
    /// When the first goes out.
    pub first_at: Option<Timestamp>,
    /// When the last goes out.
    pub last_at: Option<Timestamp>,
}

/// Plans these prospects, counts what it comes to, and gives the planner back for those who follow.
pub fn forecast<'a>(
    mut planner: Planner,
    prospects: impl IntoIterator<Item = Enrolled<'a>>,
    forecast: &mut Forecast,
) -> Planner {
    let mut mails = Vec::new();
    for prospect in prospects {
        match planner.plan(prospect, &mut mails) {
            Ok(is_new) => forecast.prospects += u64::from(is_new),
            Err(_) => forecast.without_room += 1,
        }
        mails.drain(..).for_each(|mail| forecast.add(&mail));
    }
    planner
}

impl Forecast {
    fn add(&mut self, mail: &Scheduled) {
        let index = mail.step as usize - 1;
        if self.steps.len() <= index {
            self.steps.resize_with(index + 1, StepForecast::default);
        }
        let step = &mut self.steps[index];
        step.mails += 1;
        widen(&mut step.first_at, &mut step.last_at, mail.at);
        self.mails += 1;
        widen(&mut self.first_at, &mut self.last_at, mail.at);
        *self.days.entry(mail.day).or_default() += 1;
    }
}

fn widen(first_at: &mut Option<Timestamp>, last_at: &mut Option<Timestamp>, at: Timestamp) {
    *first_at = Some(first_at.map_or(at, |first| first.min(at)));
    *last_at = Some(last_at.map_or(at, |last| last.max(at)));
}
