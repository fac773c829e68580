//! What a mail takes of each quota when it goes out, and whether there is any left.

use super::settings::Sending;
use crate::calendar::Zone;
use crate::message::Name;
use crate::quota::{Bucket, CounterKey, Period, Quota, Urgency, Whose};
use crate::time::Timestamp;

const HOUR_MS: i64 = 3_600_000;

/// One row that a mail is counted in, and what that row may hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowance {
    /// Which row.
    pub key: CounterKey,
    /// What it may hold: the least of these.
    pub quotas: Vec<Quota>,
    /// The zone of its days.
    pub zone: Zone,
    /// Whether the mail may use what is kept for urgent ones.
    pub urgency: Urgency,
}

impl Allowance {
    /// Whether one more mail may go out, when so many count and there were so many sending days before.
    pub fn admits(&self, used: u64, sending_days_before: u32) -> bool {
        used < self.limit(sending_days_before)
    }

    /// How many mails count at most, when there were so many sending days before.
    pub fn limit(&self, sending_days_before: u32) -> u64 {
        let k = sending_days_before.saturating_add(1);
        let limits = self.quotas.iter().map(|quota| quota.on_sending_day(k, self.urgency));
        limits.min().map_or(u64::MAX, u64::from)
    }

    /// When there may be room again after there was none.
    pub fn again_at(&self, now: Timestamp) -> Timestamp {
        match self.key.bucket {
            Bucket::Day(day) => self.zone.day_start(day.next()).max(now),
            Bucket::Hour(hour) => Timestamp::from_ms((hour + 1) * HOUR_MS),
        }
    }
}

impl Sending {
    /// The rows that a mail of a campaign is counted in when it goes out now, in the order of their keys.
    pub fn allowances(
        &self,
        workspace: &Name,
        campaign: &str,
        sender: &str,
        now: Timestamp,
    ) -> Vec<Allowance> {
        let outer = self.quotas.iter().find(|(whose, ..)| *whose == Whose::Workspace).map(|(.., zone)| zone);
        let mut all: Vec<Allowance> = Vec::new();
        for (whose, quota, zone) in &self.quotas {
            let name: Name = match whose {
                Whose::Workspace => workspace.clone(),
                Whose::Campaign => campaign.into(),
                // Days of another zone are other days.
                Whose::Sender if outer.is_some_and(|outer| outer != zone) => {
                    format!("{sender} {}", zone.name()).into()
                }
                Whose::Sender => sender.into(),
            };
            let bucket = Bucket::at(quota.period, now, zone.local_day(now));
            let key = CounterKey { workspace: workspace.clone(), whose: *whose, name, bucket };
            match all.iter_mut().find(|allowance| allowance.key == key) {
                Some(known) => known.quotas.push(quota.clone()),
                None => {
                    let (quotas, zone) = (vec![quota.clone()], zone.clone());
                    all.push(Allowance { key, quotas, zone, urgency: self.urgency });
                }
            }
        }
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }

    /// The same, and one in which every mail of the campaign is counted on its day, whether a quota asks for that or not.
    pub fn counters(&self, workspace: &Name, campaign: &str, sender: &str, now: Timestamp) -> Vec<Allowance> {
        let mut all = self.allowances(workspace, campaign, sender, now);
        let zone = self.zone_of_days().clone();
        let bucket = Bucket::Day(zone.local_day(now));
        let (workspace, name) = (workspace.clone(), campaign.into());
        let key = CounterKey { workspace, whose: Whose::Campaign, name, bucket };
        if !all.iter().any(|allowance| allowance.key == key) {
            all.push(Allowance { key, quotas: Vec::new(), zone, urgency: self.urgency });
            all.sort_by(|a, b| a.key.cmp(&b.key));
        }
        all
    }

    /// What can't be kept when mails go out.
    pub fn cannot_be_kept(&self) -> Option<&'static str> {
        let rolls_and_grows = |quota: &Quota| quota.period == Period::Rolling && quota.ramp_up.is_some();
        self.quotas
            .iter()
            .any(|(_, quota, _)| rolls_and_grows(quota))
            .then_some("a ramp-up counts local days: leave quota_period out, or the ramp-up")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::Settings;

    fn sending(workspace: &str, campaign: &str) -> Sending {
        let read = |text: &str| serde_json::from_str::<Settings>(text).unwrap();
        Sending::new(&read(workspace), Some(&read(campaign))).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_mail_is_counted_for_its_workspace_its_campaign_and_its_sender_once_each() {
        let sending = sending(
            r#"{ "daily_quota": 10, "sender_quota": 5, "zone": "Europe/Paris" }"#,
            r#"{ "daily_quota": 4, "sender_quota": 3 }"#,
        );
        let now = at("2026-12-01T22:30:00Z");
        let all = sending.allowances(&"w".into(), "c", "ada", now);
        let shown: Vec<(Whose, &str, u64)> =
            all.iter().map(|one| (one.key.whose, &*one.key.name, one.limit(0))).collect();
        assert_eq!(
            shown,
            [(Whose::Workspace, "w", 10), (Whose::Campaign, "c", 4), (Whose::Sender, "ada", 3)]
        );
        assert!(all[2].admits(2, 0) && !all[2].admits(3, 0));
        assert_eq!(all[0].again_at(now), at("2026-12-01T23:00:00Z"), "midnight in Paris");
    }

    #[test]
    fn a_campaigns_mails_are_counted_on_their_days_whatever_its_quotas_are() {
        let now = at("2026-12-01T22:30:00Z");
        for (campaign, rows) in [
            ("{}", 1),
            (r#"{ "daily_quota": 4 }"#, 1),
            (r#"{ "daily_quota": 4, "quota_period": "rolling" }"#, 2),
        ] {
            let all =
                sending(r#"{ "zone": "Europe/Paris" }"#, campaign).counters(&"w".into(), "c", "ada", now);
            assert_eq!(all.len(), rows, "{campaign}");
            assert!(all.is_sorted_by(|a, b| a.key < b.key));
            let day = all.iter().find(|one| one.key.bucket.number().0 == 0).unwrap();
            assert_eq!((day.key.whose, &*day.key.name), (Whose::Campaign, "c"));
        }
        let all = sending("{}", "{}").counters(&"w".into(), "c", "ada", now);
        assert!(all[0].admits(u64::MAX - 1, 0), "it bounds nothing");
    }

    #[test]
    fn what_is_kept_for_urgent_mail_is_there_for_urgent_mail_only() {
        let ordinary = sending(r#"{ "daily_quota": 10, "urgent_share": "20%" }"#, "{}");
        let urgent = Sending { urgency: Urgency::Urgent, ..ordinary.clone() };
        let limit = |sending: &Sending| {
            sending.allowances(&"w".into(), "c", "ada", at("2026-12-01T00:00:00Z"))[0].limit(0)
        };
        assert_eq!((limit(&ordinary), limit(&urgent)), (8, 10));
    }

    #[test]
    fn a_ramp_up_goes_by_the_sending_days_before() {
        let sending = sending(r#"{ "daily_quota": 50, "ramp_up": { "start": 20, "step": 20 } }"#, "{}");
        let all = sending.allowances(&"w".into(), "c", "ada", at("2026-12-01T00:00:00Z"));
        assert_eq!([0, 1, 2, 3].map(|before| all[0].limit(before)), [20, 40, 50, 50]);
    }

    #[test]
    fn any_24_hours_are_asked_again_with_the_next_hour() {
        let sending = sending(r#"{ "daily_quota": 50, "quota_period": "rolling" }"#, "{}");
        let now = at("2026-12-01T07:10:00Z");
        let all = sending.allowances(&"w".into(), "c", "ada", now);
        assert_eq!(all[0].again_at(now), at("2026-12-01T08:00:00Z"));
    }
}
