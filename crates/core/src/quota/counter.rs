//! What a quota has counted: rows, and how they change. A store writes them in the transaction of the claim.

use serde::{Deserialize, Serialize};

use crate::calendar::Day;
use crate::message::Name;
use crate::outcome::Outcome;
use crate::time::Timestamp;

use super::Period;

const HOUR_MS: i64 = 3_600_000;
/// So many whole or begun hours cover any 24 hours.
const ROLLING_HOURS: i64 = 25;

/// Whose mails are counted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Whose {
    /// All of a workspace's.
    Workspace = 0,
    /// A campaign's.
    Campaign = 1,
    /// A sender's.
    Sender = 2,
}

/// What is counted in one row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    /// A civil day in the workspace's zone.
    Day(Day),
    /// An hour, counted since 1970 began.
    Hour(i64),
}

/// Which row. Rows are locked in this order, by everybody: so no two instances wait for one another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterKey {
    /// The workspace.
    pub workspace: Name,
    /// Whose mails.
    pub whose: Whose,
    /// The name of whoever that is.
    pub name: Name,
    /// When.
    pub bucket: Bucket,
}

/// What has been counted in a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Count {
    /// Mails that went out, or may have.
    pub kept: u32,
    /// Mails that are claimed and have not come to an end.
    pub held: u32,
}

/// A row, and how many mails it can still take.
#[derive(Clone, Debug, PartialEq)]
pub struct Reservation {
    /// Which row.
    pub key: CounterKey,
    /// What it has counted.
    pub count: Count,
    /// What its quota admits in all, for mail of this urgency.
    pub limit: u32,
    /// What counts against that: this row, and those of the same period before it.
    pub used: u32,
}

impl Whose {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Workspace, Self::Campaign, Self::Sender];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Campaign => "campaign",
            Self::Sender => "sender",
        }
    }
}

impl Bucket {
    /// The row that counts a mail at this time, whose local day is known.
    pub fn at(period: Period, now: Timestamp, today: Day) -> Self {
        match period {
            Period::Day => Self::Day(today),
            Period::Rolling => Self::Hour(now.as_ms().div_euclid(HOUR_MS)),
        }
    }

    /// What a store calls it: 0 for a day and 1 for an hour, and its number.
    pub fn number(self) -> (u8, i64) {
        match self {
            Self::Day(day) => (0, day.number()),
            Self::Hour(hour) => (1, hour),
        }
    }

    /// The first row that still counts when this is the newest.
    pub fn oldest(self) -> Self {
        match self {
            Self::Day(day) => Self::Day(day),
            Self::Hour(hour) => Self::Hour(hour - ROLLING_HOURS + 1),
        }
    }

    /// When an hour no longer counts; of a day, its zone knows.
    pub fn forgotten_at(self) -> Option<Timestamp> {
        match self {
            Self::Day(_) => None,
            Self::Hour(hour) => Some(Timestamp::from_ms((hour + ROLLING_HOURS) * HOUR_MS)),
        }
    }
}

impl Count {
    /// All that counts.
    pub fn used(self) -> u32 {
        self.kept.saturating_add(self.held)
    }

    /// After so many more mails were claimed.
    pub fn hold(self, mails: u32) -> Self {
        Self { held: self.held.saturating_add(mails), ..self }
    }

    /// After a mail came to its end: what was sent or may have been is kept, what was not is given back.
    pub fn settle(self, outcome: &Outcome) -> Self {
        let held = self.held.saturating_sub(1);
        match may_have_gone_out(outcome) {
            true => Self { held, kept: self.kept.saturating_add(1) },
            false => Self { held, ..self },
        }
    }
}

/// Whether a try may have sent something, so that what it was counted stays counted.
pub fn may_have_gone_out(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Delivered { .. } | Outcome::HandedOff | Outcome::Partial(_) | Outcome::Lost { .. } => true,
        Outcome::Failed(_) | Outcome::Refused(_) | Outcome::Deferred { .. } | Outcome::Skipped { .. } => {
            false
        }
    }
}

/// What counts in a period, given the rows that were found.
pub fn used(newest: Bucket, rows: &[(Bucket, Count)]) -> u32 {
    let counts = rows.iter().filter(|(bucket, _)| newest.oldest() <= *bucket && *bucket <= newest);
    counts.fold(0, |sum, (_, count)| sum.saturating_add(count.used()))
}

/// Takes up to `wanted` mails from all of these rows at once. Says how many, and gives the rows as they are to be
/// written, in the order of their keys.
pub fn reserve(mut rows: Vec<Reservation>, wanted: u32) -> (u32, Vec<Reservation>) {
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    let granted = rows.iter().map(|row| row.limit.saturating_sub(row.used)).fold(wanted, u32::min);
    for row in &mut rows {
        row.count = row.count.hold(granted);
        row.used = row.used.saturating_add(granted);
    }
    (granted, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Failure, Until};
    use proptest::prelude::*;

    fn row(whose: Whose, name: &str, used: u32, limit: u32) -> Reservation {
        let bucket = Bucket::Day("2026-12-01".parse().unwrap());
        let key = CounterKey { workspace: "default".into(), whose, name: name.into(), bucket };
        Reservation { key, count: Count { kept: used, held: 0 }, limit, used }
    }

    #[test]
    fn the_smallest_room_decides_and_every_row_counts_it() {
        let rows = vec![
            row(Whose::Sender, "ada", 0, 50),
            row(Whose::Workspace, "default", 95, 100),
            row(Whose::Campaign, "c-1", 3, 10),
        ];
        let (granted, rows) = reserve(rows, 9);
        assert_eq!(granted, 5);
        assert!(rows.iter().all(|row| row.count.held == 5));
        assert_eq!(
            rows.iter().map(|row| row.key.whose).collect::<Vec<_>>(),
            [Whose::Workspace, Whose::Campaign, Whose::Sender]
        );
        assert_eq!(reserve(rows, 1).0, 0);
    }

    #[test]
    fn rows_are_in_one_order_whatever_the_order_in_which_they_are_asked_for() {
        let (a, b) = (row(Whose::Sender, "ada", 0, 5), row(Whose::Sender, "bob", 0, 5));
        let keys =
            |rows: Vec<Reservation>| reserve(rows, 1).1.into_iter().map(|row| row.key).collect::<Vec<_>>();
        assert_eq!(keys(vec![a.clone(), b.clone()]), keys(vec![b, a]));
    }

    #[test]
    fn what_went_out_is_kept_and_so_is_what_was_lost_and_the_rest_is_given_back() {
        let held = Count { kept: 7, held: 2 };
        let (kept, back) = (Count { kept: 8, held: 1 }, Count { kept: 7, held: 1 });
        let until = Until::At(Timestamp::default());
        for (outcome, after) in [
            (Outcome::Delivered { receipt: None }, kept),
            (Outcome::HandedOff, kept),
            (Outcome::Partial(Vec::new()), kept),
            (Outcome::Lost { reason: "".into() }, kept),
            (Outcome::Failed(Failure::new("451")), back),
            (Outcome::Refused(Failure::new("550")), back),
            (Outcome::Deferred { until, reason: "".into() }, back),
            (Outcome::Skipped { reason: "".into() }, back),
        ] {
            assert_eq!(held.settle(&outcome), after, "{outcome:?}");
        }
        assert_eq!(Count::default().settle(&Outcome::HandedOff), Count { kept: 1, held: 0 });
    }

    #[test]
    fn a_rolling_day_is_never_shorter_than_24_hours() {
        let day: Day = "2026-12-01".parse().unwrap();
        let at = |ms: i64| Bucket::at(Period::Rolling, Timestamp::from_ms(ms), day);
        for minute in 0..60 {
            let sent_ms = minute * 60_000;
            let (sent, just_within) = (at(sent_ms), at(sent_ms + 24 * HOUR_MS - 1));
            assert_eq!(used(just_within, &[(sent, Count { kept: 3, held: 1 })]), 4);
            assert_eq!(used(at(25 * HOUR_MS), &[(sent, Count { kept: 3, held: 1 })]), 0);
        }
        assert_eq!(at(0).forgotten_at(), Some(Timestamp::from_ms(25 * HOUR_MS)));
        let today = Bucket::at(Period::Day, Timestamp::default(), day);
        let yesterday = Bucket::Day(day.plus(-1));
        let one = Count { kept: 1, held: 0 };
        assert_eq!(used(today, &[(today, one), (yesterday, one)]), 1);
    }

    proptest! {
        #[test]
        fn no_row_is_ever_over_its_limit(
            limits in prop::collection::vec(0u32..40, 1..4), asks in prop::collection::vec((0u32..10, any::<bool>()), 0..60),
        ) {
            let mut rows: Vec<Reservation> =
                limits.iter().enumerate().map(|(i, limit)| row(Whose::Sender, &format!("s{i}"), 0, *limit)).collect();
            let mut kept = 0;
            for (wanted, goes_out) in asks {
                let (granted, mut after) = reserve(rows, wanted);
                prop_assert!(granted <= wanted);
                let outcome = if goes_out { Outcome::HandedOff } else { Outcome::Failed(Failure::new("no")) };
                for row in &mut after {
                    prop_assert!(row.count.used() <= row.limit);
                    for _ in 0..granted {
                        row.count = row.count.settle(&outcome);
                    }
                    row.used = row.count.used();
                }
                kept += if goes_out { granted } else { 0 };
                let expected = Count { kept, held: 0 };
                prop_assert!(after.iter().all(|row| row.count == expected));
                rows = after;
            }
        }
    }
}
