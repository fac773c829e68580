//! A plan as it is kept: with the names of what its counts count, so that it can be read after the settings have changed,
//! and so that other campaigns' plans find it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::Plan;
use super::rules::{Limit, Rules};
use crate::calendar::Day;
use crate::quota::Whose;

/// Prospects of whom it is told one by one why they could not be planned.
const TOLD_MAX: usize = 100;

/// A plan as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// What each of the plan's counts counts.
    pub limits: Vec<LimitName>,
    /// The distances for which its slots were cut, in milliseconds.
    pub spacing_ms: (u64, u64),
    /// The plan.
    pub plan: Plan,
    /// Whom it leaves out.
    #[serde(default, skip_serializing_if = "Unplanned::is_empty")]
    pub unplanned: Unplanned,
}

/// Prospects who are enrolled and could not be planned, or not wholly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unplanned {
    /// How many.
    pub count: u64,
    /// Who and why, of the first hundred. Never an address.
    pub told: Vec<String>,
}

impl Unplanned {
    /// Whether everybody was planned.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Notes one more of them, and why.
    pub fn note(&mut self, why: String) {
        self.count += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(why);
        }
    }

    /// Notes these as well.
    pub fn add(&mut self, others: Self) {
        self.count += others.count;
        let room = TOLD_MAX.saturating_sub(self.told.len());
        self.told.extend(others.told.into_iter().take(room));
    }
}

/// Whose mails are counted, on the days of which zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitName {
    /// Whose.
    pub whose: Whose,
    /// The zone.
    pub zone: String,
}

/// What another campaign's plan still means.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Whether it has the same sender.
    pub is_same_sender: bool,
    /// The first day on which nothing of it goes out any more, if it was ended.
    pub ended_on: Option<Day>,
}

impl Ledger {
    /// What was planned by these rules.
    pub fn new(rules: &Rules, plan: Plan) -> Self {
        let limits = rules.limits.iter().map(LimitName::of).collect();
        Self { limits, spacing_ms: spacing_ms(rules), plan, unplanned: Unplanned::default() }
    }

    /// The plan to go on with by these rules. What is counted now and wasn't then begins at nothing: whoever sends looks again.
    pub fn plan_for(&self, rules: &Rules) -> Plan {
        let mails = rules.limits.iter().map(|limit| self.mails(limit).cloned().unwrap_or_default()).collect();
        let taken = match self.spacing_ms == spacing_ms(rules) {
            true => self.plan.taken.clone(),
            false => Default::default(),
        };
        Plan { after: self.plan.after, mails, taken }
    }

    /// Counts this plan in the rules of another campaign of the same workspace.
    pub fn count_in(&self, rules: &mut Rules, other: Other) {
        if other.is_same_sender && other.ended_on.is_none() && self.spacing_ms == spacing_ms(rules) {
            for (first, last) in Vec::from(self.plan.taken.clone()) {
                rules.taken.insert_range(first, last);
            }
        }
        for limit in &mut rules.limits {
            let counts = match limit.whose {
                Whose::Workspace => true,
                Whose::Campaign => false,
                Whose::Sender => other.is_same_sender,
            };
            let Some(mails) = self.mails(limit).filter(|_| counts) else { continue };
            for (day, count) in mails.iter().filter(|(day, _)| other.ended_on.is_none_or(|end| **day < end)) {
                let used = limit.used.entry(*day).or_default();
                *used = used.saturating_add(*count);
            }
        }
    }

    fn mails(&self, limit: &Limit) -> Option<&BTreeMap<Day, u32>> {
        let name = LimitName::of(limit);
        let index = self.limits.iter().position(|known| *known == name)?;
        self.plan.mails.get(index)
    }
}

impl LimitName {
    fn of(limit: &Limit) -> Self {
        Self { whose: limit.whose, zone: limit.zone.name().to_owned() }
    }
}

fn spacing_ms(rules: &Rules) -> (u64, u64) {
    (rules.spacing.min.as_millis() as u64, rules.spacing.max.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::campaign::{Campaign, Enrolled, Planner, Sending, Settings};

    fn rules(settings: &str, sender: &str) -> Rules {
        let campaign: Campaign = serde_json::from_str(
            r#"{ "name": "a", "sequence_id": "s", "route": "email", "steps": [
                { "order": 1, "subject": "Hi", "text": "Hi" } ] }"#,
        )
        .unwrap();
        let settings: Settings = serde_json::from_str(settings).unwrap();
        let sending = Sending::new(&settings, None).unwrap();
        Rules::new(&campaign, &sending, sender, Timestamp::from_ms(1_796_115_600_000))
    }

    fn plan(rules: &Rules, plan: Plan, prospects: std::ops::RangeInclusive<u64>) -> (Ledger, Vec<Day>) {
        let mut planner = Planner::new(rules.clone(), plan);
        let mut mails = Vec::new();
        for position in prospects {
            planner.plan(Enrolled { position, zone: None }, &mut mails).unwrap();
        }
        (Ledger::new(rules, planner.state().clone()), mails.into_iter().map(|mail| mail.day).collect())
    }

    fn day(text: &str) -> Day {
        text.parse().unwrap()
    }

    #[test]
    fn whoever_could_not_be_planned_is_counted_and_the_first_are_told() {
        let mut unplanned = Unplanned::default();
        (0..250).for_each(|n| unplanned.note(format!("prospect p-{n}: no name")));
        assert_eq!((unplanned.count, unplanned.told.len()), (250, TOLD_MAX));
        let mut all = Unplanned { count: 1, told: vec!["prospect q: no name".to_owned()] };
        all.add(unplanned);
        assert_eq!(
            (all.count, all.told.len(), all.told[1].as_str()),
            (251, TOLD_MAX, "prospect p-0: no name")
        );
        let before: Ledger = serde_json::from_str(
            r#"{"limits":[],"spacing_ms":[0,0],"plan":{"after":3,"mails":[],"taken":[]}}"#,
        )
        .unwrap();
        assert!(before.unplanned.is_empty(), "a plan from before it was kept can be read");
    }

    #[test]
    fn a_second_campaign_gets_what_the_first_one_left_of_a_day() {
        let mut second = rules(r#"{ "daily_quota": 3 }"#, "ada");
        let (first, days) = plan(&second, Plan::default(), 1..=4);
        assert_eq!(days, [day("2026-12-01"), day("2026-12-01"), day("2026-12-01"), day("2026-12-02")]);
        first.count_in(&mut second, Other { is_same_sender: true, ended_on: None });
        let (_, days) = plan(&second, Plan::default(), 1..=3);
        assert_eq!(days, [day("2026-12-02"), day("2026-12-02"), day("2026-12-03")]);
    }

    #[test]
    fn what_was_ended_leaves_its_days_to_others() {
        let mut second = rules(r#"{ "daily_quota": 3 }"#, "ada");
        let (first, _) = plan(&second, Plan::default(), 1..=4);
        first.count_in(&mut second, Other { is_same_sender: true, ended_on: Some(day("2026-12-01")) });
        let (_, days) = plan(&second, Plan::default(), 1..=3);
        assert_eq!(days, [day("2026-12-01"); 3]);
    }

    #[test]
    fn a_plan_is_gone_on_with_after_the_settings_have_changed() {
        let before = rules(r#"{ "daily_quota": 3 }"#, "ada");
        let (ledger, _) = plan(&before, Plan::default(), 1..=4);
        let text = serde_json::to_string(&ledger).unwrap();
        let ledger: Ledger = serde_json::from_str(&text).unwrap();
        let after = rules(r#"{ "daily_quota": 4, "sender_quota": 9 }"#, "ada");
        let resumed = ledger.plan_for(&after);
        assert_eq!((resumed.after, resumed.mails.len()), (4, 2));
        let (_, days) = plan(&after, resumed, 5..=9);
        assert_eq!(days[..2], [day("2026-12-01"), day("2026-12-02")]);
    }
}
