//! Leaves a service alone that doesn't answer. What is counted is this instance's own, and may be lost with it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redeliver_core::Timestamp;
use redeliver_core::breaker::{Admission, BreakerConfig, BreakerState, after_answer, after_failure};

/// The longest that a message waits for its turn while the service recovers, or for the word of a probe.
const TURN: Duration = Duration::from_secs(1);

/// One service's breaker.
#[derive(Debug)]
pub(super) struct Breaker {
    config: BreakerConfig,
    /// How long a probe may take before another may go.
    probe_within: Duration,
    local: Mutex<Local>,
}

#[derive(Debug, Default)]
struct Local {
    /// Failures in a row.
    failures: u32,
    state: Option<BreakerState>,
    /// Questions since the recovery began.
    gone: u64,
}

impl Breaker {
    pub(super) fn new(config: BreakerConfig, probe_within: Duration) -> Self {
        Self { config, probe_within, local: Mutex::default() }
    }

    /// Whether the service may be asked now; if not, when to come again.
    pub(super) fn admit(&self, now: Timestamp) -> Result<(), Timestamp> {
        let mut local = self.local();
        let Some(state) = local.state else { return Ok(()) };
        match state.admit(&self.config, now, self.probe_within) {
            Admission::Pass => {
                local.state = None;
                Ok(())
            }
            Admission::Probe(probing) => {
                local.state = Some(probing);
                Ok(())
            }
            Admission::Limited { count_max, .. } if local.gone < count_max => {
                local.gone += 1;
                Ok(())
            }
            Admission::Limited { .. } => Err(now.plus(TURN)),
            // A probe mostly takes a moment, and not as long as it may.
            Admission::Park if matches!(state, BreakerState::Probing { .. }) => {
                Err(state.look_at().min(now.plus(TURN)))
            }
            Admission::Park => Err(state.look_at()),
        }
    }

    /// Until when the service is left alone, if it is.
    pub(super) fn closed_until(&self, now: Timestamp) -> Option<Timestamp> {
        let state = self.local().state.filter(BreakerState::parks)?;
        Some(state.look_at()).filter(|until| *until > now)
    }

    /// The service answered.
    pub(super) fn answered(&self, now: Timestamp) {
        let mut local = self.local();
        local.failures = 0;
        if let Some(next) = local.state.and_then(|state| after_answer(&state, now)) {
            local.state = Some(next);
            local.gone = 0;
        }
    }

    /// The service did not answer, or not as it should. Says whether it is left alone from now on.
    pub(super) fn failed(&self, now: Timestamp) -> bool {
        let mut local = self.local();
        local.failures = local.failures.saturating_add(1);
        match after_failure(local.state.as_ref(), local.failures, &self.config, now) {
            Some(next) => {
                local.state = Some(next);
                true
            }
            None => false,
        }
    }

    fn local(&self) -> MutexGuard<'_, Local> {
        self.local.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64) -> Timestamp {
        Timestamp::from_ms(s * 1_000)
    }

    #[test]
    fn a_service_that_fails_is_left_alone_then_probed_by_one_and_asked_again() {
        let config = BreakerConfig { recover_per_s: 2, ..BreakerConfig::default() };
        let breaker = Breaker::new(config, Duration::from_secs(4));
        for _ in 0..4 {
            assert!(!breaker.failed(at(0)));
            assert_eq!(breaker.admit(at(0)), Ok(()));
        }
        assert!(breaker.failed(at(0)));
        assert_eq!((breaker.admit(at(1)), breaker.closed_until(at(1))), (Err(at(15)), Some(at(15))));
        assert_eq!(breaker.admit(at(15)), Ok(()), "the probe");
        assert_eq!(
            breaker.admit(at(15)),
            Err(at(16)),
            "the others wait for its word, and not for all its time"
        );
        assert!(breaker.failed(at(16)));
        assert_eq!(breaker.admit(at(20)), Err(at(46)), "twice as long");
        assert_eq!(breaker.admit(at(46)), Ok(()));
        breaker.answered(at(46));
        assert_eq!(breaker.closed_until(at(46)), None);
        assert_eq!([0; 3].map(|_| breaker.admit(at(46))), [Ok(()), Ok(()), Err(at(47))], "slowly at first");
        assert_eq!([0; 9].map(|_| breaker.admit(at(60))), [Ok(()); 9]);
    }
}
