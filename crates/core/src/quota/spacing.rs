//! How far apart a sender's mails go out.
//!
//! Time is cut into cells that are as long as the mean distance, and each cell has one slot, somewhere in its first part.
//! Where in it is drawn from a hash of the sender and the cell, so whoever plans and whoever sends see the same slots,
//! whatever the order in which they take them; and slots of neighbouring cells are never closer than `min` nor further
//! apart than `max`.

use std::time::Duration;

use crate::draw::{mix, of_text, part};
use crate::time::Timestamp;

/// The shortest and the longest distance between two mails of a sender that follow one another.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Spacing {
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
}

/// The slots of one sender.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    seed: u64,
    phase_ms: i64,
    cell_ms: i64,
    min_ms: i64,
}

impl Spacing {
    /// From 30 to 90 seconds.
    pub const USUAL: Self = Self { min: Duration::from_secs(30), max: Duration::from_secs(90) };
    /// Any number of mails at once.
    pub const NONE: Self = Self { min: Duration::ZERO, max: Duration::ZERO };
    /// The longest distance that can be asked for.
    pub const LONGEST: Duration = Duration::from_secs(24 * 3_600);

    /// The slots of a sender; none if its mails need no distance.
    pub fn slots(self, sender: &str) -> Option<Slots> {
        let ms = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX / 4);
        let (min_ms, cell_ms) = (ms(self.min), (ms(self.min) + ms(self.max)) / 2);
        let seed = of_text(sender);
        (cell_ms > 0).then(|| Slots { seed, phase_ms: (seed % cell_ms as u64) as i64, cell_ms, min_ms })
    }

    /// At least as far apart as both.
    pub fn narrowed_by(self, other: Self) -> Self {
        Self { min: self.min.max(other.min), max: self.max.max(other.max) }
    }

    /// What is wrong with it.
    pub fn check(self) -> Result<(), String> {
        if self.min > self.max {
            return Err("the shortest distance comes first, then the longest".to_owned());
        }
        if self.max > Self::LONGEST {
            return Err("must be at most a day".to_owned());
        }
        Ok(())
    }
}

impl Slots {
    /// The time of a cell's slot.
    pub fn slot(&self, cell: i64) -> Timestamp {
        let play = Duration::from_millis((self.cell_ms - self.min_ms) as u64);
        self.begins(cell).plus(part(play, mix(self.seed ^ mix(cell as u64))))
    }

    /// The cell that a time is in.
    pub fn cell(&self, at: Timestamp) -> i64 {
        (at.as_ms() - self.phase_ms).div_euclid(self.cell_ms)
    }

    /// The first cell whose slot is not before a time.
    pub fn first_from(&self, at: Timestamp) -> i64 {
        let cell = self.cell(at);
        if self.slot(cell) >= at { cell } else { cell + 1 }
    }

    /// When the sender is free again after a mail at this time: the next slot, or the shortest distance where the mail was
    /// later than its own slot. From `min` to `max` later.
    pub fn free_at(&self, sent_at: Timestamp) -> Timestamp {
        let next = self.slot(self.cell(sent_at) + 1);
        next.max(sent_at.plus(Duration::from_millis(self.min_ms as u64)))
    }

    fn begins(&self, cell: i64) -> Timestamp {
        Timestamp::from_ms(cell * self.cell_ms + self.phase_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_distances_are_from_30_to_90_seconds_and_a_minute_on_average() {
        let slots = Spacing::USUAL.slots("ada@example.org").unwrap();
        let first = slots.first_from(Timestamp::from_ms(1_796_115_600_000));
        let count = 10_000;
        let distances: Vec<f64> = (first..first + count)
            .map(|cell| slots.slot(cell + 1).since(slots.slot(cell)).as_secs_f64())
            .collect();
        assert!(distances.iter().all(|distance| (30.0..=90.0).contains(distance)));
        assert!(distances.iter().any(|distance| *distance < 40.0));
        assert!(distances.iter().any(|distance| *distance > 80.0));
        let mean = distances.iter().sum::<f64>() / count as f64;
        assert!((59.0..61.0).contains(&mean), "{mean}");
    }

    #[test]
    fn no_distance_means_no_slots_and_a_fixed_one_is_kept_exactly() {
        assert_eq!(Spacing::NONE.slots("ada"), None);
        let span = Duration::from_secs(45);
        let slots = Spacing { min: span, max: span }.slots("ada").unwrap();
        assert_eq!(slots.slot(8).since(slots.slot(7)), span);
    }

    #[test]
    fn a_distance_the_wrong_way_round_is_refused() {
        let s = Duration::from_secs;
        assert!(Spacing { min: s(90), max: s(30) }.check().is_err());
        assert!(Spacing { min: s(0), max: s(90_000) }.check().is_err());
        assert_eq!(Spacing::USUAL.check(), Ok(()));
        let narrowed = Spacing::USUAL.narrowed_by(Spacing { min: s(10), max: s(120) });
        assert_eq!(narrowed, Spacing { min: s(30), max: s(120) });
    }

    proptest! {
        #[test]
        fn whatever_the_distances_they_are_kept(
            min_ms in 0u64..200_000, more_ms in 0u64..200_000, sender in "[a-z]{1,8}",
            at_ms in -1_000_000_000_000i64..4_000_000_000_000,
        ) {
            let spacing = Spacing { min: Duration::from_millis(min_ms), max: Duration::from_millis(min_ms + more_ms) };
            let at = Timestamp::from_ms(at_ms);
            let Some(slots) = spacing.slots(&sender) else { return Ok(()) };
            let cell = slots.first_from(at);
            prop_assert!(slots.slot(cell) >= at && slots.slot(cell - 1) < at);
            prop_assert_eq!(slots.cell(slots.slot(cell)), cell);
            let distance = slots.slot(cell + 1).since(slots.slot(cell));
            prop_assert!(spacing.min <= distance && distance <= spacing.max);
            let free = slots.free_at(at).since(at);
            prop_assert!(spacing.min <= free && free <= spacing.max, "{free:?}");
            // A mail that goes out in its slot holds up the next one by nothing.
            prop_assert_eq!(slots.free_at(slots.slot(cell)), slots.slot(cell + 1));
        }
    }
}
