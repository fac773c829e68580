//! A campaign's calendar: how many of its mails were planned for each day, and how many that day takes.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::Plan;
use super::rules::{Limit, Rules};
use super::settings::Sending;
use crate::calendar::{Day, Zone};
use crate::quota::{Urgency, Whose};

/// One day of a campaign's calendar.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedDay {
    /// Its mails that were planned for it.
    pub planned: u32,
    /// Mails of others that were planned for it and count with them.
    pub others: u32,
    /// What the day takes, of all who count: the least of its quotas, each as far as its ramp-up has come. `None` if
    /// nothing bounds it.
    pub quota: Option<u32>,
}

impl Sending {
    /// The zone of the days that a campaign's mails are counted on: those of its own quota, else of its workspace's.
    pub fn zone_of_days(&self) -> &Zone {
        let own = self.quotas.iter().find(|(whose, ..)| *whose == Whose::Campaign);
        own.or(self.quotas.first()).map_or(&self.zone, |(.., zone)| zone)
    }
}

/// The days of a plan by its rules.
pub fn planned_days(rules: &Rules, plan: &Plan) -> BTreeMap<Day, PlannedDay> {
    let own = rules.limits.iter().position(|limit| limit.whose == Whose::Campaign).unwrap_or(0);
    let limits = rules.limits.iter().zip(&plan.mails);
    let takes: Vec<Takes<'_>> = limits.map(|(limit, mails)| Takes::of(limit, mails, rules.urgency)).collect();
    let Some(mails) = plan.mails.get(own) else { return BTreeMap::new() };
    let day = |(day, planned): (&Day, &u32)| {
        let quota = takes.iter().map(|takes| takes.on(*day)).min();
        let others = takes.iter().filter_map(|takes| takes.limit.used.get(day)).max();
        let quota = quota.filter(|quota| *quota < u32::MAX);
        (*day, PlannedDay { planned: *planned, others: others.copied().unwrap_or(0), quota })
    };
    mails.iter().map(day).collect()
}

/// What a limit takes on each day.
struct Takes<'a> {
    limit: &'a Limit,
    urgency: Urgency,
    /// The days with a mail sent or planned.
    days: BTreeSet<Day>,
}

impl<'a> Takes<'a> {
    fn of(limit: &'a Limit, mails: &BTreeMap<Day, u32>, urgency: Urgency) -> Self {
        let days = limit.used.iter().chain(mails).filter(|(_, count)| **count > 0).map(|(day, _)| *day);
        Self { limit, urgency, days: days.collect() }
    }

    fn on(&self, day: Day) -> u32 {
        let before = self.days.range(..day).count() as u32 + self.limit.sending_days_before;
        self.limit.quota.on_sending_day(before.saturating_add(1), self.urgency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::campaign::{Campaign, Enrolled, Planner, Settings};

    fn days(settings: &str, others: &[(&str, u32)]) -> Vec<(String, PlannedDay)> {
        let campaign: Campaign = serde_json::from_str(
            r#"{ "name": "a", "sequence_id": "s", "route": "email", "steps": [
                { "order": 1, "subject": "Hi", "text": "Hi" } ] }"#,
        )
        .unwrap();
        let settings: Settings = serde_json::from_str(settings).unwrap();
        let sending = Sending::new(&settings, None).unwrap();
        let mut rules = Rules::new(&campaign, &sending, "ada", Timestamp::from_ms(1_796_115_600_000));
        rules.limits[0].used = others.iter().map(|(day, used)| (day.parse().unwrap(), *used)).collect();
        let mut planner = Planner::new(rules.clone(), Plan::default());
        let mut mails = Vec::new();
        for position in 1..=7 {
            planner.plan(Enrolled { position, zone: None }, &mut mails).unwrap();
        }
        planned_days(&rules, planner.state()).into_iter().map(|(day, it)| (day.to_string(), it)).collect()
    }

    #[test]
    fn each_day_takes_what_its_quota_and_its_ramp_up_say() {
        let ramp_up = r#"{ "daily_quota": 5, "ramp_up": { "start": 1, "step": 2 } }"#;
        let day = |day: &str, planned, others, quota| {
            (day.to_owned(), PlannedDay { planned, others, quota: Some(quota) })
        };
        assert_eq!(
            days(ramp_up, &[]),
            [day("2026-12-01", 1, 0, 1), day("2026-12-02", 3, 0, 3), day("2026-12-03", 3, 0, 5)]
        );
        assert_eq!(
            days(ramp_up, &[("2026-11-30", 1), ("2026-12-01", 2)]),
            [day("2026-12-01", 1, 2, 3), day("2026-12-02", 5, 0, 5), day("2026-12-03", 1, 0, 5)]
        );
    }

    #[test]
    fn days_without_a_quota_are_counted_all_the_same() {
        let unbounded = PlannedDay { planned: 7, others: 0, quota: None };
        assert_eq!(days("{}", &[]), [("2026-12-01".to_owned(), unbounded)]);
    }
}
