//! How a batch is brought to a store that may not take all of it: as a whole, and where one of it is to blame, by halves
//! down to that one. Decides only; whoever brings does it.

use std::ops::Range;
use std::time::Duration;

use crate::store::StoreError;

/// How long a store is left alone after it failed; doubles with each failure.
pub(crate) const AWAY_WAIT: Duration = Duration::from_millis(100);
/// The longest that it is left alone.
pub(crate) const AWAY_WAIT_MAX: Duration = Duration::from_secs(5);

/// What is to be brought next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// These of the batch, as they are.
    AsItIs(Range<usize>),
    /// This one, set aside: alone and as it is, the store can't take it.
    SetAside {
        /// Its place in the batch.
        index: usize,
        /// What the store said.
        why: String,
    },
}

/// The parts of a batch that a store has not answered for, in the order of the batch.
#[derive(Debug)]
pub struct Parts {
    /// The next one is the last.
    left: Vec<Part>,
    wait: Duration,
}

impl Parts {
    /// A whole batch of so many.
    pub fn of(count: usize) -> Self {
        let whole = (count > 0).then_some(Part::AsItIs(0..count));
        Self { left: whole.into_iter().collect(), wait: AWAY_WAIT }
    }

    /// The next one, which is either taken or has failed before the one after it is asked for.
    pub fn next_part(&mut self) -> Option<Part> {
        self.left.pop()
    }

    /// The store has answered.
    pub fn taken(&mut self) {
        self.wait = AWAY_WAIT;
    }

    /// The store has not taken a part. Says how long it is to be left alone before the next one, if at all.
    pub fn failed(&mut self, part: Part, error: &StoreError) -> Option<Duration> {
        let again = match (part, error) {
            (Part::AsItIs(range), StoreError::Unfit(why)) if range.len() == 1 => {
                self.left.push(Part::SetAside { index: range.start, why: why.clone() });
                return None;
            }
            (Part::AsItIs(range), StoreError::Unfit(_)) => {
                let middle = range.start + range.len() / 2;
                self.left.push(Part::AsItIs(middle..range.end));
                self.left.push(Part::AsItIs(range.start..middle));
                return None;
            }
            // It takes neither the message nor word of it: the fault is not the message's.
            (Part::SetAside { index, .. }, StoreError::Unfit(_)) => Part::AsItIs(index..index + 1),
            (
                part,
                StoreError::Unavailable(_)
                | StoreError::Full(_)
                | StoreError::Damaged(_)
                | StoreError::Broken(_),
            ) => part,
        };
        self.left.push(again);
        let wait = self.wait;
        self.wait = (wait * 2).min(AWAY_WAIT_MAX);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfit() -> StoreError {
        StoreError::Unfit("a text has a NUL character".to_owned())
    }

    fn away() -> StoreError {
        StoreError::Unavailable("no connection".to_owned())
    }

    /// Brings a batch to a store that takes no part with one of these in it. What it took, what was set aside, and in
    /// how many calls.
    fn bring(count: usize, bad: &[usize]) -> (Vec<usize>, Vec<usize>, usize) {
        let (mut taken, mut aside, mut calls) = (Vec::new(), Vec::new(), 0);
        let mut parts = Parts::of(count);
        while let Some(part) = parts.next_part() {
            calls += 1;
            match &part {
                Part::AsItIs(range) if bad.iter().any(|index| range.contains(index)) => {
                    assert_eq!(parts.failed(part, &unfit()), None, "the store is well");
                }
                Part::AsItIs(range) => taken.extend(range.clone()),
                Part::SetAside { index, why } => {
                    assert!(why.contains("NUL"));
                    aside.push(*index);
                }
            }
        }
        (taken, aside, calls)
    }

    #[test]
    fn only_those_that_are_to_blame_are_set_aside() {
        for (count, bad) in
            [(1_000, vec![]), (1_000, vec![617]), (7, vec![0, 3, 6]), (1, vec![0]), (0, vec![])]
        {
            let (taken, aside, calls) = bring(count, &bad);
            assert_eq!(aside, bad);
            assert_eq!(taken, (0..count).filter(|index| !bad.contains(index)).collect::<Vec<_>>());
            assert!(calls <= 1 + bad.len() * 22, "{calls} calls for {} of {count}", bad.len());
        }
    }

    #[test]
    fn a_store_that_is_away_is_left_alone_for_longer_and_longer() {
        let mut parts = Parts::of(3);
        let mut waits = Vec::new();
        for _ in 0..8 {
            let part = parts.next_part().unwrap();
            assert_eq!(part, Part::AsItIs(0..3));
            waits.extend(parts.failed(part, &away()).map(|wait| wait.as_millis()));
        }
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        parts.next_part().unwrap();
        parts.taken();
        assert_eq!(parts.next_part(), None);
    }

    #[test]
    fn a_store_that_takes_nothing_at_all_has_nothing_set_aside() {
        let as_it_is = Part::AsItIs(0..1);
        let mut parts = Parts::of(1);
        for wait_ms in [100, 200, 400] {
            assert_eq!(parts.next_part().as_ref(), Some(&as_it_is));
            assert_eq!(parts.failed(as_it_is.clone(), &unfit()), None);
            let word = parts.next_part().unwrap();
            assert!(matches!(word, Part::SetAside { index: 0, .. }), "{word:?}");
            assert_eq!(parts.failed(word, &unfit()), Some(Duration::from_millis(wait_ms)));
        }
        assert_eq!(
            parts.next_part(),
            Some(as_it_is),
            "it is brought as it is, once the store takes anything"
        );
    }
}
