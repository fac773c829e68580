//! A clock that stands still until it is moved by hand: for trying out in a minute what takes hours.

use std::sync::Arc;
use std::time::Duration;

use redeliver_core::Timestamp;
use tokio::sync::watch;

use super::{Clock, Sleep, WallClock};

/// The uptime at which it begins: never zero, which some take for "never heard of".
const BEGUN: Duration = Duration::from_secs(1);

/// A clock that only moves when somebody moves it.
#[derive(Debug)]
pub struct ManualClock {
    began_at: Timestamp,
    passed: watch::Sender<Duration>,
    /// Ids are drawn as ever: nothing about them waits for the time.
    bits: Arc<WallClock>,
}

impl ManualClock {
    /// A clock that stands at this time.
    pub fn at(time: Timestamp) -> Arc<Self> {
        let bits = WallClock::new(Timestamp::default());
        Arc::new(Self { began_at: time, passed: watch::Sender::new(Duration::ZERO), bits })
    }

    /// Moves it on, and wakes everybody whose time has come. Says what time it is then.
    pub fn advance(&self, span: Duration) -> Timestamp {
        self.passed.send_modify(|passed| *passed += span);
        self.now()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.began_at.plus(*self.passed.borrow())
    }

    fn uptime(&self) -> Duration {
        BEGUN + *self.passed.borrow()
    }

    fn sleep(&self, span: Duration) -> Sleep {
        self.sleep_until(self.uptime().saturating_add(span))
    }

    fn sleep_until(&self, uptime: Duration) -> Sleep {
        let mut passed = self.passed.subscribe();
        let until = uptime.saturating_sub(BEGUN);
        Box::pin(async move {
            // The only error is that the clock is gone: then nobody's time comes any more.
            if passed.wait_for(|passed| *passed >= until).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    fn bits(&self) -> u128 {
        self.bits.bits()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn it_moves_only_by_hand_and_wakes_those_whose_time_has_come() {
        let clock = ManualClock::at(Timestamp::from_ms(1_000));
        let (mut short, mut long) =
            (clock.sleep(Duration::from_secs(1)), clock.sleep(Duration::from_secs(2)));
        assert!((&mut short).now_or_never().is_none());
        assert_eq!(clock.advance(Duration::from_secs(1)), Timestamp::from_ms(2_000));
        assert!((&mut short).now_or_never().is_some());
        assert!((&mut long).now_or_never().is_none());
        clock.advance(Duration::from_secs(5));
        assert!((&mut long).now_or_never().is_some());
        assert_eq!(clock.now(), Timestamp::from_ms(7_000));
    }

    #[test]
    fn whoever_sleeps_until_a_time_is_not_held_up_by_a_clock_that_moves_meanwhile() {
        let clock = ManualClock::at(Timestamp::from_ms(1_000));
        let read = clock.uptime();
        clock.advance(Duration::from_secs(1));
        assert!(clock.sleep_until(read + Duration::from_secs(1)).now_or_never().is_some());
        assert!(clock.sleep_until(read + Duration::from_secs(2)).now_or_never().is_none());
    }
}
