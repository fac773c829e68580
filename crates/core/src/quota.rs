//! How many mails may go out: for each workspace, campaign and sender, on each day, and how far apart.
//!
//! What has been counted is kept in rows ([`counter`]); what a row allows is decided here. A quota is asked with every
//! claim, so that a retry obeys it as a first try does.

mod counter;
mod ramp_up;
mod spacing;

use crate::message::Lane;

pub use counter::{Bucket, Count, CounterKey, Reservation, Whose, may_have_gone_out, reserve, used};
pub use ramp_up::RampUp;
pub use spacing::{Slots, Spacing};

/// At most so many mails in a period.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    /// Mails in each period, once it is fully ramped up.
    pub limit: u32,
    /// What is counted together.
    pub period: Period,
    /// How it begins, if not at once with the whole of it.
    pub ramp_up: Option<RampUp>,
    /// What is kept for urgent mail, in thousandths.
    pub urgent_share: u16,
}

/// What is counted together.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Period {
    /// A civil day in the workspace's zone.
    Day,
    /// Any 24 hours, counted by the hour: never too many, at worst an hour later than it could be.
    Rolling,
}

/// Whether a mail may use what is kept for urgent ones.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It may not.
    Ordinary,
    /// It may.
    Urgent,
}

impl Urgency {
    /// That of a mail of this priority: the two before the ordinary are urgent.
    pub const fn of(lane: Lane) -> Self {
        match lane {
            Lane::Critical | Lane::High => Self::Urgent,
            Lane::Medium | Lane::Low => Self::Ordinary,
        }
    }
}

impl Quota {
    /// A quota of so many mails on each civil day.
    pub const fn daily(limit: u32) -> Self {
        Self { limit, period: Period::Day, ramp_up: None, urgent_share: 0 }
    }

    /// How many mails the `k`th sending day takes: the `k`th local day, from 1, with a mail sent or planned.
    pub fn on_sending_day(&self, k: u32, urgency: Urgency) -> u32 {
        let limit = self.ramp_up.as_ref().map_or(self.limit, |ramp_up| ramp_up.on_day(k).min(self.limit));
        match urgency {
            Urgency::Urgent => limit,
            Urgency::Ordinary => limit - self.kept_for_urgent(limit),
        }
    }

    /// The first sending day from which on it takes the same number every day; the last day counted if it grows longer.
    pub fn is_whole_from(&self) -> u32 {
        self.ramp_up.as_ref().map_or(1, |ramp_up| ramp_up.reaches(self.limit))
    }

    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        if self.limit == 0 {
            return Err("must be at least 1".to_owned());
        }
        if self.urgent_share > 900 {
            return Err("at most 90% can be kept for urgent mail".to_owned());
        }
        if self.on_sending_day(1, Urgency::Ordinary) == 0 {
            return Err("leaves nothing for ordinary mail on the first day".to_owned());
        }
        Ok(())
    }

    /// At least one, where something is kept at all and there is more than one.
    fn kept_for_urgent(&self, limit: u32) -> u32 {
        let kept = (u64::from(limit) * u64::from(self.urgent_share)).div_ceil(1_000) as u32;
        kept.min(limit.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_whole_at_once_or_grows_by_its_ramp_up() {
        let quota = Quota { ramp_up: Some(RampUp::Linear { start: 20, step: 20 }), ..Quota::daily(70) };
        let on = |k| quota.on_sending_day(k, Urgency::Ordinary);
        assert_eq!([1, 2, 3, 4, 5, u32::MAX].map(on), [20, 40, 60, 70, 70, 70]);
        assert_eq!(quota.is_whole_from(), 4);
        assert_eq!(Quota::daily(70).is_whole_from(), 1);
        assert_eq!(Quota::daily(70).on_sending_day(1, Urgency::Ordinary), 70);
    }

    #[test]
    fn a_share_is_kept_for_urgent_mail_and_never_all_of_it() {
        let quota = Quota { urgent_share: 100, ..Quota::daily(25) };
        assert_eq!(quota.on_sending_day(1, Urgency::Ordinary), 22);
        assert_eq!(quota.on_sending_day(1, Urgency::Urgent), 25);
        let one = Quota { urgent_share: 900, ..Quota::daily(1) };
        assert_eq!(one.on_sending_day(1, Urgency::Ordinary), 1);
    }

    #[test]
    fn a_quota_that_lets_nothing_out_is_refused() {
        assert!(Quota::daily(0).check().is_err());
        assert!(Quota { urgent_share: 901, ..Quota::daily(10) }.check().is_err());
        assert!(Quota { ramp_up: Some(RampUp::Table(vec![0, 5])), ..Quota::daily(10) }.check().is_err());
        assert_eq!(Quota { urgent_share: 200, ..Quota::daily(10) }.check(), Ok(()));
    }
}
