//! A clock that follows somebody else's: where several machines share a database, the database's time is everybody's.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redeliver_core::{MessageId, Timestamp};

use super::{Clock, Sleep, Steady, WallClock};

/// Readings that are remembered: the best of them counts.
const READINGS_MAX: usize = 8;

/// A clock that is told the time by another one, now and then, and goes on by this machine's uptime in between.
///
/// It is never ahead of the other one, and it never goes back. Before it is first told, it is this machine's.
#[derive(Debug)]
pub struct FollowedClock {
    machine: Arc<WallClock>,
    told: Mutex<Told>,
}

#[derive(Debug)]
struct Told {
    steady: Steady,
    readings: Readings,
}

impl FollowedClock {
    /// A clock that nobody has told anything yet.
    pub fn new() -> Arc<Self> {
        let told = Told { steady: Steady::new(Timestamp::default()), readings: Readings::default() };
        Arc::new(Self { machine: WallClock::new(Timestamp::default()), told: Mutex::new(told) })
    }

    /// Takes in what the other clock said. It was asked at the uptime `asked_at`, and the answer has just come. Says by
    /// how many milliseconds this machine's time of day is ahead of it; by fewer than none if it is behind.
    pub fn follow(&self, said: Timestamp, asked_at: Duration) -> i64 {
        let (wall, uptime) = (self.machine.now(), self.machine.uptime());
        let mut told = self.told();
        told.readings.add(said.as_ms(), asked_at, uptime);
        wall.as_ms() - told.readings.at(uptime).unwrap_or(said.as_ms())
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for FollowedClock {
    fn now(&self) -> Timestamp {
        let uptime = self.machine.uptime();
        let mut told = self.told();
        match told.readings.at(uptime) {
            Some(ms) => told.steady.tell(ms, uptime),
            None => self.machine.now(),
        }
    }

    fn uptime(&self) -> Duration {
        self.machine.uptime()
    }

    fn sleep(&self, span: Duration) -> Sleep {
        self.machine.sleep(span)
    }

    fn bits(&self) -> u128 {
        self.machine.bits()
    }

    fn message_id(&self, now: Timestamp) -> MessageId {
        self.machine.message_id(now)
    }
}

/// What the other clock said lately, each as the least that it can be ahead of this machine's uptime.
///
/// An answer was true at some moment between the question and its receipt. Taken for the time of the receipt it is a
/// little late, and never early. The one that was least under way comes closest.
#[derive(Debug, Default)]
struct Readings {
    least_ms: VecDeque<i64>,
}

impl Readings {
    fn add(&mut self, said_ms: i64, asked_at: Duration, heard_at: Duration) {
        let heard_ms = ms(heard_at);
        let least = said_ms - heard_ms;
        let most = least + heard_ms - ms(asked_at) + 1;
        // Earlier answers that this one rules out are of a clock that was set back since, or of another clock.
        if self.best().is_some_and(|best| best > most) {
            self.least_ms.clear();
        }
        if self.least_ms.len() == READINGS_MAX {
            self.least_ms.pop_front();
        }
        self.least_ms.push_back(least);
    }

    /// The other clock's time at this uptime, or a little less.
    fn at(&self, uptime: Duration) -> Option<i64> {
        self.best().map(|best| best + ms(uptime))
    }

    fn best(&self) -> Option<i64> {
        self.least_ms.iter().copied().max()
    }
}

fn ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn up(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn ids_sort_as_they_were_made() {
        let clock = FollowedClock::new();
        let ids: Vec<_> = (0..1_000).map(|_| clock.message_id(Timestamp::from_ms(1_000_000))).collect();
        assert!(ids.is_sorted());
    }

    #[test]
    fn what_was_said_is_taken_for_the_time_of_its_receipt() {
        let mut readings = Readings::default();
        assert_eq!(readings.at(up(5)), None);
        readings.add(1_000_000, up(100), up(140));
        assert_eq!(readings.at(up(140)), Some(1_000_000));
        assert_eq!(readings.at(up(1_140)), Some(1_001_000));
    }

    #[test]
    fn the_answer_that_was_least_under_way_counts() {
        let mut readings = Readings::default();
        readings.add(1_000_000, up(0), up(50));
        readings.add(1_000_100, up(100), up(101));
        assert_eq!(readings.at(up(101)), Some(1_000_100), "a better one moves it on");
        readings.add(1_000_200, up(200), up(290));
        assert_eq!(readings.at(up(290)), Some(1_000_289), "a worse one changes nothing");
    }

    #[test]
    fn it_is_never_ahead_of_the_clock_that_it_follows() {
        let mut readings = Readings::default();
        for n in 0..1_000_u64 {
            // The other clock is 7,000 ms ahead of our uptime; questions and answers take their time on the way.
            let (asked, read, heard) = (n * 100, n * 100 + n % 13, n * 100 + n % 13 + n % 29);
            readings.add(7_000 + read as i64, up(asked), up(heard));
            assert!(readings.at(up(heard)).unwrap() <= 7_000 + heard as i64);
        }
    }

    #[test]
    fn a_clock_that_was_set_back_is_followed_at_once() {
        let mut readings = Readings::default();
        readings.add(1_000_000, up(0), up(2));
        readings.add(940_000, up(100), up(102));
        assert_eq!(readings.at(up(102)), Some(940_000));
    }

    #[test]
    fn what_is_long_past_no_longer_counts() {
        let mut readings = Readings::default();
        readings.add(1_000_000, up(0), up(0));
        for n in 1..=READINGS_MAX as u64 {
            readings.add(1_000_000 + n as i64 * 1_000 - 3, up(n * 1_000 - 10), up(n * 1_000));
        }
        let last = up(READINGS_MAX as u64 * 1_000);
        assert_eq!(readings.at(last), Some(1_000_000 + ms(last) - 3));
    }

    #[test]
    fn the_time_that_is_told_never_goes_back() {
        let clock = FollowedClock::new();
        let before = clock.now();
        let asked_at = clock.uptime();
        let ahead = clock.follow(before.plus(Duration::from_secs(60)), asked_at);
        assert!((-61_000..=-59_000).contains(&ahead), "this machine is a minute behind: {ahead}");
        let told = clock.now();
        assert!(told >= before.plus(Duration::from_secs(60)));
        clock.follow(before, clock.uptime());
        assert!(clock.now() >= told);
    }
}
