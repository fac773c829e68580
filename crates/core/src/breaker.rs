//! A destination's breaker: stops trying when nothing answers, probes with one message, then starts slowly.
//!
//! Only failures of the connection count. The record is shared by the fleet; what is counted before it trips is local.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// When a breaker trips and how it recovers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Connection failures in a row that trip it.
    pub failures_max: u32,
    /// How long it stays open after its first trip; doubles with each failed probe.
    pub open_for: Duration,
    /// The longest it stays open.
    pub open_for_max: Duration,
    /// Messages that all instances together let through in the first second of recovery; doubles each second.
    pub recover_per_s: u32,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failures_max: 5,
            open_for: Duration::from_secs(15),
            open_for_max: Duration::from_secs(300),
            recover_per_s: 10,
        }
    }
}

/// How long the recovery lasts before the breaker is simply closed again.
pub const RECOVERY: Duration = Duration::from_secs(10);

/// A breaker that isn't simply closed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Nothing goes out before `probe_at`; then one message may try.
    Open {
        /// When a probe may go.
        probe_at: Timestamp,
        /// Trips without a good probe in between.
        trips: u32,
    },
    /// One message is trying; if nothing is heard of it by `until`, another may.
    Probing {
        /// When the probe counts as vanished.
        until: Timestamp,
        /// Trips without a good probe in between.
        trips: u32,
    },
    /// A probe got through: more and more messages may go.
    Recovering {
        /// Since when.
        since: Timestamp,
        /// Trips before, in case it fails again.
        trips: u32,
    },
}

/// What a breaker says about one message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Go.
    Pass,
    /// Go as the one probe, if this state can be written first.
    Probe(BreakerState),
    /// Go if all instances together have let no more than this many go since recovery began.
    Limited {
        /// When recovery began.
        since: Timestamp,
        /// How many may have gone by now, this one included.
        count_max: u64,
    },
    /// Wait until the breaker changes.
    Park,
}

impl BreakerState {
    /// Whether messages wait parked while it is in this state.
    pub fn parks(&self) -> bool {
        match self {
            Self::Open { .. } | Self::Probing { .. } => true,
            Self::Recovering { .. } => false,
        }
    }

    /// Whether one more message may go now. A probe has `probe_within` to say how it went.
    pub fn admit(&self, config: &BreakerConfig, now: Timestamp, probe_within: Duration) -> Admission {
        match *self {
            Self::Open { probe_at: at, trips } | Self::Probing { until: at, trips } if at <= now => {
                Admission::Probe(Self::Probing { until: now.plus(probe_within), trips })
            }
            Self::Open { .. } | Self::Probing { .. } => Admission::Park,
            Self::Recovering { since, .. } if now.since(since) >= RECOVERY => Admission::Pass,
            Self::Recovering { since, .. } => {
                let ms = now.since(since).as_millis() as u64;
                let count_max = u64::from(config.recover_per_s).max(1) << (ms / 1_000).min(32);
                Admission::Limited { since, count_max }
            }
        }
    }

    /// When keepers should look at it again: a probe can go, or the recovery is over.
    pub fn look_at(&self) -> Timestamp {
        match *self {
            Self::Open { probe_at, .. } => probe_at,
            Self::Probing { until, .. } => until,
            Self::Recovering { since, .. } => since.plus(RECOVERY),
        }
    }
}

/// The place of one instance among all that live.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Instances before it.
    pub before: u64,
    /// All instances, this one included; none if nobody has counted.
    pub all: u64,
}

impl Place {
    /// This instance's part of `count`. The parts of all instances add up to it.
    pub fn part_of(self, count: u64) -> u64 {
        let all = self.all.max(1);
        count / all + u64::from(self.before < count % all)
    }
}

/// What a breaker becomes when the connection failed once more: `failures` in a row, this one included.
pub fn after_failure(
    state: Option<&BreakerState>,
    failures: u32,
    config: &BreakerConfig,
    now: Timestamp,
) -> Option<BreakerState> {
    let trips = match state {
        None if failures >= config.failures_max => 1,
        // Carryings that began before it tripped come home late; they say nothing new.
        None | Some(BreakerState::Open { .. }) => return None,
        Some(BreakerState::Probing { trips, .. } | BreakerState::Recovering { trips, .. }) => {
            trips.saturating_add(1)
        }
    };
    let open_for = config.open_for.saturating_mul(1 << (trips - 1).min(16)).min(config.open_for_max);
    Some(BreakerState::Open { probe_at: now.plus(open_for), trips })
}

/// What a breaker becomes when the destination answered, whatever it said.
pub fn after_answer(state: &BreakerState, now: Timestamp) -> Option<BreakerState> {
    match *state {
        BreakerState::Open { trips, .. } | BreakerState::Probing { trips, .. } => {
            Some(BreakerState::Recovering { since: now, trips })
        }
        BreakerState::Recovering { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(30);

    fn at(s: i64) -> Timestamp {
        Timestamp::from_ms(s * 1_000)
    }

    #[test]
    fn it_trips_on_failures_in_a_row_and_not_before() {
        let config = BreakerConfig::default();
        assert_eq!(after_failure(None, 4, &config, at(0)), None);
        assert_eq!(
            after_failure(None, 5, &config, at(0)),
            Some(BreakerState::Open { probe_at: at(15), trips: 1 })
        );
    }

    #[test]
    fn an_open_breaker_parks_until_its_time_and_then_lets_one_probe() {
        let config = BreakerConfig::default();
        let open = BreakerState::Open { probe_at: at(15), trips: 1 };
        assert_eq!(open.admit(&config, at(14), WITHIN), Admission::Park);
        let probing = BreakerState::Probing { until: at(45), trips: 1 };
        assert_eq!(open.admit(&config, at(15), WITHIN), Admission::Probe(probing));
        assert_eq!(probing.admit(&config, at(16), WITHIN), Admission::Park);
        assert!(matches!(probing.admit(&config, at(45), WITHIN), Admission::Probe(_)));
    }

    #[test]
    fn each_failed_probe_doubles_the_wait_up_to_its_limit() {
        let config = BreakerConfig::default();
        let mut state = BreakerState::Probing { until: at(0), trips: 1 };
        let mut waits = Vec::new();
        for _ in 0..6 {
            let Some(BreakerState::Open { probe_at, trips }) = after_failure(Some(&state), 1, &config, at(0))
            else {
                panic!("a failed probe opens")
            };
            waits.push(probe_at.as_ms() / 1_000);
            state = BreakerState::Probing { until: at(0), trips };
        }
        assert_eq!(waits, [30, 60, 120, 240, 300, 300]);
    }

    #[test]
    fn a_good_probe_starts_a_slow_recovery() {
        let config = BreakerConfig::default();
        let recovering = after_answer(&BreakerState::Probing { until: at(0), trips: 2 }, at(100)).unwrap();
        let count_max = |s| match recovering.admit(&config, at(s), WITHIN) {
            Admission::Limited { count_max, .. } => count_max,
            other => panic!("{other:?}"),
        };
        assert_eq!([100, 101, 103].map(count_max), [10, 20, 80]);
        assert_eq!(recovering.admit(&config, at(110), WITHIN), Admission::Pass);
        assert!(!recovering.parks());
        assert_eq!(recovering.look_at(), at(110));
    }

    #[test]
    fn the_parts_of_all_instances_add_up() {
        for (count, all) in [(10, 1), (10, 3), (2, 3), (0, 2), (640, 7)] {
            let parts = (0..all).map(|before| Place { before, all }.part_of(count));
            assert_eq!(parts.sum::<u64>(), count, "{count} for {all}");
        }
        assert_eq!(Place::default().part_of(10), 10, "nobody has counted");
    }

    #[test]
    fn latecomers_of_an_open_breaker_change_nothing() {
        let open = BreakerState::Open { probe_at: at(15), trips: 1 };
        assert_eq!(after_failure(Some(&open), 9, &BreakerConfig::default(), at(1)), None);
    }
}
