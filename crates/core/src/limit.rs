//! How fast a destination may be spoken to: a bucket that fills at a steady rate.

use crate::time::Timestamp;

/// At most this many carryings a second, with a burst of as many as fit in one second.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Rate {
    /// Carryings a second.
    pub per_s: f64,
}

/// The bucket of one destination. Starts full.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Bucket {
    rate: Rate,
    tokens: f64,
    filled_at: Timestamp,
}

impl Rate {
    /// Reads `50/s`, `90/m` or `1000/h`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("not a rate such as 50/s, 90/m or 1000/h: {text:?}");
        let (count, unit) = text.trim().split_once('/').ok_or_else(bad)?;
        let count: f64 = count.trim().parse().map_err(|_| bad())?;
        let seconds = match unit.trim() {
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            _ => return Err(bad()),
        };
        if !(count.is_finite() && count > 0.0) {
            return Err(bad());
        }
        Ok(Self { per_s: count / seconds })
    }

    fn burst(self) -> f64 {
        self.per_s.max(1.0)
    }
}

impl Bucket {
    /// A full bucket.
    pub fn new(rate: Rate, now: Timestamp) -> Self {
        Self { rate, tokens: rate.burst(), filled_at: now }
    }

    /// How many carryings may start now.
    pub fn available(&mut self, now: Timestamp) -> usize {
        self.fill(now);
        self.tokens as usize
    }

    /// Takes one carrying's worth, or says when there will be one.
    pub fn take(&mut self, now: Timestamp) -> Result<(), Timestamp> {
        self.fill(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let wait_ms = ((1.0 - self.tokens) / self.rate.per_s * 1_000.0).ceil();
        Err(Timestamp::from_ms(now.as_ms().saturating_add((wait_ms as i64).max(1))))
    }

    /// Gives one back: it was taken, but nothing was sent.
    pub fn give_back(&mut self) {
        self.tokens = (self.tokens + 1.0).min(self.rate.burst());
    }

    fn fill(&mut self, now: Timestamp) {
        let seconds = now.since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + seconds * self.rate.per_s).min(self.rate.burst());
        self.filled_at = self.filled_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_are_read() {
        assert_eq!(Rate::parse("50/s"), Ok(Rate { per_s: 50.0 }));
        assert_eq!(Rate::parse("90/m"), Ok(Rate { per_s: 1.5 }));
        for text in ["", "50", "0/s", "-1/s", "inf/s", "5/d", "x/s"] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_empty_bucket_says_when_to_come_back() {
        let now = Timestamp::from_ms(0);
        let mut bucket = Bucket::new(Rate { per_s: 2.0 }, now);
        assert_eq!([bucket.take(now), bucket.take(now)], [Ok(()), Ok(())]);
        assert_eq!(bucket.take(now), Err(Timestamp::from_ms(500)));
        assert_eq!(bucket.take(Timestamp::from_ms(500)), Ok(()));
        bucket.give_back();
        assert_eq!(bucket.available(Timestamp::from_ms(500)), 1);
    }

    proptest! {
        #[test]
        fn no_second_has_more_than_twice_the_rate(per_s in 1u32..50, steps in prop::collection::vec(0i64..100, 1..400)) {
            let mut bucket = Bucket::new(Rate { per_s: f64::from(per_s) }, Timestamp::from_ms(0));
            let mut now = 0;
            let mut taken = Vec::new();
            for step in steps {
                now += step;
                if bucket.take(Timestamp::from_ms(now)).is_ok() {
                    taken.push(now);
                }
            }
            for start in &taken {
                let in_second = taken.iter().filter(|at| (*start..start + 1_000).contains(*at)).count();
                prop_assert!(in_second <= 2 * per_s as usize, "{in_second} in the second from {start}");
            }
        }
    }
}
