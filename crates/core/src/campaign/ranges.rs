//! Whole numbers as the ranges that they make up: what is taken, or full.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A set of whole numbers, kept as ranges: its size is that of its gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(i64, i64)>", into = "Vec<(i64, i64)>")]
pub struct Ranges(BTreeMap<i64, i64>);

impl Ranges {
    /// The first number from this one on that is not in it.
    pub fn free_from(&self, number: i64) -> i64 {
        match self.0.range(..=number).next_back() {
            Some((_, last)) if *last >= number => last + 1,
            _ => number,
        }
    }

    /// Puts a number in.
    pub fn insert(&mut self, number: i64) {
        self.insert_range(number, number);
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// How many ranges it is.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts in every number from the first to the last. Whatever then overlaps or touches is one range.
    pub fn insert_range(&mut self, mut first: i64, mut last: i64) {
        while let Some((other_first, other_last)) = self.touching(first, last) {
            if other_first <= first && last <= other_last {
                return;
            }
            self.0.remove(&other_first);
            (first, last) = (first.min(other_first), last.max(other_last));
        }
        self.0.insert(first, last);
    }

    /// A range that overlaps these numbers or touches them. Of those that begin early enough, the last one ends last.
    fn touching(&self, first: i64, last: i64) -> Option<(i64, i64)> {
        let (other_first, other_last) = self.0.range(..=last.saturating_add(1)).next_back()?;
        (other_last.saturating_add(1) >= first).then_some((*other_first, *other_last))
    }
}

impl From<Vec<(i64, i64)>> for Ranges {
    fn from(list: Vec<(i64, i64)>) -> Self {
        let mut ranges = Self::default();
        list.into_iter().for_each(|(first, last)| ranges.insert_range(first, last));
        ranges
    }
}

impl From<Ranges> for Vec<(i64, i64)> {
    fn from(ranges: Ranges) -> Self {
        ranges.0.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_touches_is_one_range() {
        let mut ranges = Ranges::from(vec![(1, 3), (7, 9)]);
        ranges.insert(5);
        assert_eq!(ranges.len(), 3);
        ranges.insert_range(4, 6);
        assert_eq!(Vec::from(ranges), [(1, 9)]);
    }

    proptest! {
        #[test]
        fn it_is_the_set_that_was_put_in(list in prop::collection::vec((0i64..60, 0i64..6), 0..40)) {
            let mut plain = BTreeSet::new();
            let mut ranges = Ranges::default();
            for (first, more) in list {
                ranges.insert_range(first, first + more);
                plain.extend(first..=first + more);
            }
            for number in -1..70 {
                let free = (number..).find(|number| !plain.contains(number));
                prop_assert_eq!(Some(ranges.free_from(number)), free);
            }
            let listed = Vec::from(ranges.clone());
            prop_assert!(listed.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            prop_assert_eq!(Ranges::from(listed), ranges);
        }
    }
}
