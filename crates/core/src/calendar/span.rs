//! Stretches of time, and lists of them.

use std::time::Duration;

use crate::time::Timestamp;

/// The time from `from` until before `to`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first moment in it.
    pub from: Timestamp,
    /// The first moment after it.
    pub to: Timestamp,
}

impl Span {
    /// The time from `from` until before `to`.
    pub const fn new(from: Timestamp, to: Timestamp) -> Self {
        Self { from, to }
    }

    /// Whether there is no time in it.
    pub fn is_empty(self) -> bool {
        self.from >= self.to
    }

    /// Whether this moment is in it.
    pub fn has(self, at: Timestamp) -> bool {
        self.from <= at && at < self.to
    }

    /// How long it is.
    pub fn length(self) -> Duration {
        self.to.since(self.from)
    }

    /// What is in both.
    pub(crate) fn common(self, other: Self) -> Option<Self> {
        let both = Self { from: self.from.max(other.from), to: self.to.min(other.to) };
        (!both.is_empty()).then_some(both)
    }
}

/// Sorts spans, and joins those that touch.
pub(super) fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| span.from);
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.from <= last.to => last.to = last.to.max(span.to),
            _ => joined.push(span),
        }
    }
    joined
}

/// What is in both of two sorted lists.
pub(super) fn common(left: &[Span], right: &[Span]) -> Vec<Span> {
    let (mut i, mut j) = (0, 0);
    let mut both = Vec::new();
    while let (Some(a), Some(b)) = (left.get(i), right.get(j)) {
        both.extend(a.common(*b));
        if a.to <= b.to {
            i += 1;
        } else {
            j += 1;
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(list: &[(i64, i64)]) -> Vec<Span> {
        let at = Timestamp::from_ms;
        list.iter().map(|(from, to)| Span::new(at(*from), at(*to))).collect()
    }

    #[test]
    fn spans_that_touch_are_one() {
        assert_eq!(joined(spans(&[(5, 7), (0, 3), (3, 4), (6, 9)])), spans(&[(0, 4), (5, 9)]));
    }

    #[test]
    fn what_two_lists_have_in_common_is_in_both() {
        let check = |a: &[(i64, i64)], b: &[(i64, i64)], both: &[(i64, i64)]| {
            assert_eq!(common(&spans(a), &spans(b)), spans(both));
            assert_eq!(common(&spans(b), &spans(a)), spans(both));
        };
        check(&[(0, 10)], &[(2, 3), (5, 20)], &[(2, 3), (5, 10)]);
        check(&[(0, 2), (4, 6)], &[(2, 4), (6, 8)], &[]);
        check(&[], &[(0, 1)], &[]);
        check(&[(0, 4), (6, 9)], &[(3, 7), (8, 12)], &[(3, 4), (6, 7), (8, 9)]);
    }
}
