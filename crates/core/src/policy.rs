//! When the next try is due, and when there is none.

use std::time::Duration;

use crate::draw::{mix, part};
use crate::message::MessageId;
use crate::time::{Timestamp, parse_span, show_span};

/// How a message is retried: the wait after each failed try, and how many tries there are.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The wait after each failed try, before jitter.
    pub backoff: Backoff,
    /// What is added to each wait so that messages that failed together don't return together.
    pub jitter: Jitter,
    /// Tries in total, the first one and those made elsewhere included.
    pub max_attempts: u32,
    /// How long after acceptance a message is worth sending, unless it says so itself.
    pub expires_after: Option<Duration>,
}

/// The waits of a policy before jitter.
#[derive(Clone, Debug, PartialEq)]
pub enum Backoff {
    /// Entry n after failed try n; the last one repeats.
    Table(Vec<Duration>),
    /// `base * factor^(n-1)`, never more than `cap`.
    Exponential {
        /// The wait after the first failed try.
        base: Duration,
        /// What each wait is multiplied by to give the next.
        factor: f64,
        /// The longest wait.
        cap: Duration,
    },
}

/// What is added to a wait, after its cap.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Jitter {
    /// Nothing.
    None,
    /// Up to this share of the wait on top, in thousandths.
    Share(u32),
    /// Up to this much on top.
    Span(Duration),
    /// Anything from nothing to the whole wait instead of the wait.
    Full,
}

/// One line of a timetable: when try `attempt` can happen, counted from the first try.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The try's number; the first is 1.
    pub attempt: u32,
    /// The shortest and longest wait before it.
    pub wait: Bounds,
    /// The earliest and latest time since the first try, if each try fails at once.
    pub since_first: Bounds,
}

/// A shortest and a longest span.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
}

impl Policy {
    /// The wait after failed try `n` of this message, jitter included: the same whenever it is asked.
    pub fn delay(&self, id: &MessageId, n: u32) -> Duration {
        self.jitter.pick(self.backoff.wait(n), draw(id, n))
    }

    /// When the message is due again after failed try `n`.
    pub fn due_after(&self, id: &MessageId, n: u32, now: Timestamp) -> Timestamp {
        now.plus(self.delay(id, n))
    }

    /// The least and the most that may pass after failed try `n`.
    pub fn wait(&self, n: u32) -> Bounds {
        self.jitter.bounds(self.backoff.wait(n))
    }

    /// The timetable: every try after the first with its bounds. At most `limit` lines.
    pub fn timetable(&self, limit: u32) -> Vec<Slot> {
        let mut since_first = Bounds { min: Duration::ZERO, max: Duration::ZERO };
        let mut slots = Vec::new();
        for n in 1..self.max_attempts.min(limit.saturating_add(1)) {
            let wait = self.wait(n);
            since_first.min = since_first.min.saturating_add(wait.min);
            since_first.max = since_first.max.saturating_add(wait.max);
            slots.push(Slot { attempt: n + 1, wait, since_first });
        }
        slots
    }

    /// What in this policy can never happen, in words for the person who wrote it.
    pub fn warnings(&self) -> Vec<String> {
        let Backoff::Table(entries) = &self.backoff else { return Vec::new() };
        let usable = self.max_attempts.saturating_sub(1) as usize;
        entries
            .get(usable..)
            .into_iter()
            .flatten()
            .enumerate()
            .map(|(i, wait)| {
                format!(
                    "backoff entry {} ({}) is never reached: after failed try {} of max_attempts = {} the message is dead",
                    usable + i + 1,
                    show_span(*wait),
                    self.max_attempts,
                    self.max_attempts
                )
            })
            .collect()
    }
}

impl Backoff {
    /// The wait after failed try `n` (counted from 1), before jitter.
    pub fn wait(&self, n: u32) -> Duration {
        let n = n.max(1);
        match self {
            Self::Table(entries) => {
                let last = entries.len().saturating_sub(1);
                entries.get((n as usize - 1).min(last)).copied().unwrap_or(Duration::ZERO)
            }
            Self::Exponential { base, factor, cap } => {
                let ms = base.as_millis() as f64 * factor.powi((n - 1).min(1_024) as i32);
                let cap_ms = cap.as_millis() as f64;
                Duration::from_millis(if ms < cap_ms { ms as u64 } else { cap_ms as u64 })
            }
        }
    }
}

impl Jitter {
    /// Reads `none`, `full`, a share such as `30%`, or a span such as `1s`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text {
            "none" => return Ok(Self::None),
            "full" => return Ok(Self::Full),
            _ => {}
        }
        if let Some(share) = text.strip_suffix('%') {
            let percent: f64 = share.trim().parse().map_err(|_| format!("not a percentage: {text:?}"))?;
            if !(0.0..=100.0).contains(&percent) {
                return Err(format!("jitter is between 0% and 100%, not {text}"));
            }
            return Ok(Self::Share((percent * 10.0).round() as u32));
        }
        parse_span(text).map(Self::Span).map_err(|_| {
            format!("jitter is none, full, a share such as 30% or a span such as 1s, not {text:?}")
        })
    }

    /// Writes what [`Jitter::parse`] reads.
    pub fn show(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Full => "full".to_owned(),
            Self::Share(thousandths) if thousandths % 10 == 0 => format!("{}%", thousandths / 10),
            Self::Share(thousandths) => format!("{}%", f64::from(thousandths) / 10.0),
            Self::Span(span) => show_span(span),
        }
    }

    fn bounds(self, wait: Duration) -> Bounds {
        Bounds { min: self.pick(wait, 0), max: self.pick(wait, u64::MAX) }
    }

    /// The wait with its jitter, for a draw that is even over all of `u64`.
    fn pick(self, wait: Duration, draw: u64) -> Duration {
        match self {
            Self::None => wait,
            Self::Share(thousandths) => wait + part(wait * thousandths / 1_000, draw),
            Self::Span(span) => wait + part(span, draw),
            Self::Full => part(wait, draw),
        }
    }
}

/// An even draw that depends on the message and the try, and on nothing else.
fn draw(id: &MessageId, n: u32) -> u64 {
    let mut state = u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    id.each_byte(|byte| state = mix(state ^ u64::from(byte)));
    mix(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(list: &[u64]) -> Vec<Duration> {
        list.iter().map(|s| Duration::from_secs(*s)).collect()
    }

    fn policy(backoff: Backoff, jitter: &str, max_attempts: u32) -> Policy {
        Policy { backoff, jitter: Jitter::parse(jitter).unwrap(), max_attempts, expires_after: None }
    }

    #[test]
    fn the_last_entry_of_a_table_repeats() {
        let table = Backoff::Table(seconds(&[60, 300]));
        assert_eq!([1, 2, 3, 9].map(|n| table.wait(n).as_secs()), [60, 300, 300, 300]);
        assert_eq!(table.wait(0).as_secs(), 60);
        assert_eq!(Backoff::Table(vec![]).wait(1), Duration::ZERO);
    }

    #[test]
    fn an_exponential_backoff_stops_growing_at_its_cap() {
        let backoff =
            Backoff::Exponential { base: Duration::from_secs(2), factor: 2.0, cap: Duration::from_secs(60) };
        assert_eq!([1, 2, 5, 6, 4_000_000_000].map(|n| backoff.wait(n).as_secs()), [2, 4, 32, 60, 60]);
    }

    #[test]
    fn an_entry_past_the_budget_is_warned_of() {
        let eight = policy(
            Backoff::Table(seconds(&[60, 300, 900, 3_600, 10_800, 21_600, 43_200, 86_400])),
            "none",
            8,
        );
        assert_eq!(eight.warnings().len(), 1);
        assert!(
            eight.warnings()[0].starts_with("backoff entry 8 (1d) is never reached"),
            "{:?}",
            eight.warnings()
        );
        assert!(policy(Backoff::Table(seconds(&[60, 300, 900])), "none", 4).warnings().is_empty());
    }

    #[test]
    fn jitter_is_read_and_written() {
        for text in ["none", "full", "30%", "2.5%", "1s", "250ms"] {
            assert_eq!(Jitter::parse(text).unwrap().show(), text);
        }
        for text in ["", "31", "-3%", "101%", "lots"] {
            assert!(Jitter::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_timetable_of_one_try_is_empty() {
        assert!(policy(Backoff::Table(seconds(&[60])), "none", 1).timetable(100).is_empty());
    }

    proptest! {
        #[test]
        fn a_delay_is_repeatable_and_inside_its_bounds(id in any::<u128>(), n in 1u32..20, share in 0u32..=1000) {
            let id = MessageId::own(id);
            let backoff = Backoff::Exponential { base: Duration::from_secs(10), factor: 2.0, cap: Duration::from_secs(300) };
            for jitter in [Jitter::None, Jitter::Full, Jitter::Share(share), Jitter::Span(Duration::from_secs(1))] {
                let policy = Policy { backoff: backoff.clone(), jitter, max_attempts: 20, expires_after: None };
                let wait = policy.delay(&id, n);
                let bounds = jitter.bounds(backoff.wait(n));
                prop_assert_eq!(wait, policy.delay(&id, n));
                prop_assert!(bounds.min <= wait && wait <= bounds.max);
            }
        }

        #[test]
        fn draws_are_even(seed in any::<u64>()) {
            let wait = Duration::from_secs(100);
            let count = 400u32;
            let sum: Duration = (0..count)
                .map(|i| Jitter::Full.pick(wait, draw(&MessageId::own(u128::from(seed) << 64 | u128::from(i)), 1)))
                .sum();
            let mean = (sum / count).as_secs_f64();
            prop_assert!((35.0..65.0).contains(&mean), "mean of full jitter over 100 s was {mean}");
        }
    }
}
