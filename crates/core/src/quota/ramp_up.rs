//! How a quota grows from the first sending day on.

/// The longest table, and the last day that is looked at for the end of a ramp-up.
const DAYS_MAX: u32 = 1_000;

/// How a quota grows, sending day by sending day. It never falls.
#[derive(Clone, Debug, PartialEq)]
pub enum RampUp {
    /// `start` on the first day, and `step` more on each that follows.
    Linear {
        /// On the first day.
        start: u32,
        /// What each day adds.
        step: u32,
    },
    /// `start` on the first day, and each day `factor` times the day before, rounded down.
    Geometric {
        /// On the first day.
        start: u32,
        /// What each day is multiplied by.
        factor: f64,
    },
    /// Entry `k` on day `k`; after the last one the quota is whole.
    Table(Vec<u32>),
}

impl RampUp {
    /// What the `k`th day takes, counted from 1, before the quota's own limit.
    pub fn on_day(&self, k: u32) -> u32 {
        let before = k.max(1) - 1;
        match self {
            Self::Linear { start, step } => start.saturating_add(step.saturating_mul(before)),
            Self::Geometric { start, factor } => {
                (f64::from(*start) * factor.powi(before.min(DAYS_MAX) as i32)) as u32
            }
            Self::Table(days) => days.get(before as usize).copied().unwrap_or(u32::MAX),
        }
    }

    /// The first day that takes `limit` or more; the last that is looked at if none does.
    pub(super) fn reaches(&self, limit: u32) -> u32 {
        (1..=DAYS_MAX).find(|k| self.on_day(*k) >= limit).unwrap_or(DAYS_MAX + 1)
    }

    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Linear { start: 0, .. } | Self::Geometric { start: 0, .. } => {
                Err("must let something out on the first day: start is at least 1".to_owned())
            }
            Self::Linear { .. } => Ok(()),
            Self::Geometric { factor, .. } if (1.0..=1_000.0).contains(factor) => Ok(()),
            Self::Geometric { .. } => Err("never falls: factor is from 1 to 1000".to_owned()),
            Self::Table(days) if days.is_empty() || days.len() > DAYS_MAX as usize => {
                Err(format!("has from 1 to {DAYS_MAX} days"))
            }
            Self::Table(days) if days[0] == 0 => {
                Err("must let something out on the first day: it is at least 1".to_owned())
            }
            Self::Table(days) => match days.is_sorted() {
                true => Ok(()),
                false => Err("never falls: each day is at least the day before".to_owned()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_grows_in_its_own_way() {
        let check = |ramp_up: RampUp, days: [u32; 4]| {
            assert_eq!(ramp_up.check(), Ok(()));
            assert_eq!([1, 2, 3, 4].map(|k| ramp_up.on_day(k)), days, "{ramp_up:?}");
            assert_eq!(ramp_up.on_day(0), days[0]);
        };
        check(RampUp::Linear { start: 20, step: 20 }, [20, 40, 60, 80]);
        check(RampUp::Linear { start: u32::MAX, step: 9 }, [u32::MAX; 4]);
        check(RampUp::Geometric { start: 10, factor: 1.5 }, [10, 15, 22, 33]);
        check(RampUp::Table(vec![5, 5, 50]), [5, 5, 50, u32::MAX]);
        assert_eq!(RampUp::Geometric { start: 1, factor: 2.0 }.on_day(u32::MAX), u32::MAX);
    }

    #[test]
    fn one_that_falls_or_starts_with_nothing_is_refused() {
        for ramp_up in [
            RampUp::Linear { start: 0, step: 5 },
            RampUp::Geometric { start: 0, factor: 2.0 },
            RampUp::Geometric { start: 5, factor: 0.9 },
            RampUp::Geometric { start: 5, factor: f64::NAN },
            RampUp::Table(vec![]),
            RampUp::Table(vec![0]),
            RampUp::Table(vec![5, 4]),
        ] {
            assert!(ramp_up.check().is_err(), "{ramp_up:?}");
        }
    }

    #[test]
    fn it_is_known_from_which_day_on_it_is_whole() {
        assert_eq!(RampUp::Linear { start: 20, step: 20 }.reaches(70), 4);
        assert_eq!(RampUp::Table(vec![1, 2]).reaches(70), 3);
        assert_eq!(RampUp::Linear { start: 1, step: 0 }.reaches(70), DAYS_MAX + 1);
    }
}
