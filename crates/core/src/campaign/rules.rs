//! What a plan goes by.

use std::collections::BTreeMap;

use super::definition::Campaign;
use super::ranges::Ranges;
use super::settings::Sending;
use crate::calendar::{Calendar, Day, Zone};
use crate::message::Name;
use crate::quota::{Quota, Spacing, Urgency, Whose};
use crate::time::Timestamp;

/// What a plan goes by: the same rules and the same prospects give the same plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// How many local days each step waits for its own previous one; the first for the start.
    pub delays_days: Vec<u32>,
    /// When mails go out. A recipient's own zone takes the place of its windows'.
    pub calendar: Calendar,
    /// The zone that days are counted in.
    pub zone: Zone,
    /// How many go out.
    pub limits: Vec<Limit>,
    /// How far apart they go out.
    pub spacing: Spacing,
    /// Who sends: one sender's mails keep their distance, in whichever campaign they are.
    pub sender: Name,
    /// The sender's slots that other campaigns have, by their cells.
    pub taken: Ranges,
    /// Nothing goes out before this.
    pub not_before: Timestamp,
    /// Whether its mails may use what is kept for urgent ones.
    pub urgency: Urgency,
}

/// A quota, and what others have used of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Whose mails it counts.
    pub whose: Whose,
    /// The quota. One of any 24 hours is planned by the day; whoever sends keeps to the hours.
    pub quota: Quota,
    /// The zone of its days.
    pub zone: Zone,
    /// Mails sent or planned on each day, those of this plan aside.
    pub used: BTreeMap<Day, u32>,
    /// Sending days before the first of `used`.
    pub sending_days_before: u32,
}

impl Rules {
    /// The rules for a campaign by its settings, with nothing used by others.
    pub fn new(campaign: &Campaign, sending: &Sending, sender: &str, now: Timestamp) -> Self {
        let limit = |(whose, quota, zone): &(Whose, Quota, Zone)| Limit {
            whose: *whose,
            quota: quota.clone(),
            zone: zone.clone(),
            used: BTreeMap::new(),
            sending_days_before: 0,
        };
        let mut limits: Vec<Limit> = sending.quotas.iter().map(limit).collect();
        if limits.is_empty() {
            // Nothing bounds it, and still its days are counted.
            limits.push(limit(&(Whose::Campaign, Quota::daily(u32::MAX), sending.zone.clone())));
        }
        Self {
            delays_days: campaign.in_order().iter().map(|step| step.delay_days).collect(),
            calendar: sending.calendar.clone(),
            zone: sending.zone.clone(),
            limits,
            spacing: sending.spacing,
            sender: sender.into(),
            taken: Ranges::default(),
            urgency: Urgency::of(campaign.lane()),
            not_before: campaign.start_at.map_or(now, |start_at| start_at.max(now)),
        }
    }
}
