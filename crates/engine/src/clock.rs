//! The only place that reads the time or draws bits.
#![allow(clippy::disallowed_methods, reason = "this is the clock")]

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redeliver_core::{InstanceId, MessageId, Timestamp};

mod followed;
mod manual;

pub use followed::FollowedClock;
pub use manual::ManualClock;

/// A future that ends when its time has come.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Says what time it is, how long this machine has been up, and wakes sleepers.
pub trait Clock: Send + Sync + 'static {
    /// The time of day. It decides what is due.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment, suspensions counted. It never jumps; it decides what a lease has left.
    fn uptime(&self) -> Duration;

    /// Ends when this much time has passed.
    fn sleep(&self, span: Duration) -> Sleep;

    /// Ends at this uptime, also if the clock has moved since whoever asks has read it.
    fn sleep_until(&self, uptime: Duration) -> Sleep {
        self.sleep(uptime.saturating_sub(self.uptime()))
    }

    /// Bits that nobody else has, for ids.
    fn bits(&self) -> u128;

    /// A fresh message id.
    fn message_id(&self, now: Timestamp) -> MessageId {
        MessageId::fresh(now, ten(self.bits()))
    }

    /// A fresh instance id.
    fn instance_id(&self) -> InstanceId {
        InstanceId(self.bits() as u64)
    }
}

/// A time of day that never goes back. When the machine's is set back, this one goes on at half its pace until it
/// has been caught up with: nothing is early by it, and nothing stands still.
#[derive(Copy, Clone, Debug)]
pub struct Steady {
    told_ms: i64,
    told_at: Duration,
}

impl Steady {
    /// A steady time that begins no earlier than this.
    pub fn new(not_before: Timestamp) -> Self {
        Self { told_ms: not_before.as_ms(), told_at: Duration::ZERO }
    }

    /// The time to tell when the machine's time of day and uptime are these.
    pub fn tell(&mut self, wall_ms: i64, uptime: Duration) -> Timestamp {
        if wall_ms >= self.told_ms || self.told_at.is_zero() {
            *self = Self { told_ms: self.told_ms.max(wall_ms), told_at: uptime };
        } else {
            let passed_ms = uptime.saturating_sub(self.told_at).as_millis() as i64 / 2;
            if passed_ms > 0 {
                *self = Self { told_ms: self.told_ms + passed_ms, told_at: uptime };
            }
        }
        Timestamp::from_ms(self.told_ms)
    }
}

/// The machine's clocks.
#[derive(Debug)]
pub struct WallClock {
    steady: Mutex<Steady>,
    seed: u128,
    drawn: AtomicU64,
    turns: Turns,
}

impl WallClock {
    /// A clock that never tells a time before `not_before`.
    pub fn new(not_before: Timestamp) -> Arc<Self> {
        let mut seed = [0; 16];
        if getrandom::fill(&mut seed).is_err() {
            // Without the system's randomness, the time and the process still tell ids apart.
            let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |span| span.as_nanos());
            seed = (nanos ^ (u128::from(std::process::id()) << 96)).to_le_bytes();
        }
        Arc::new(Self {
            steady: Mutex::new(Steady::new(not_before)),
            seed: u128::from_le_bytes(seed),
            drawn: AtomicU64::new(0),
            turns: Turns::default(),
        })
    }
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let ms = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
        self.steady.lock().unwrap_or_else(PoisonError::into_inner).tell(ms, self.uptime())
    }

    fn uptime(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    }

    fn sleep(&self, span: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(span))
    }

    fn bits(&self) -> u128 {
        let n = self.drawn.fetch_add(1, Ordering::Relaxed);
        scramble(self.seed, n)
    }

    /// Ids of one millisecond sort as they were made: a store writes what comes together to one place, and lists it in its order.
    fn message_id(&self, now: Timestamp) -> MessageId {
        let mut bits = ten(self.bits());
        bits[..2].copy_from_slice(&self.turns.take(now).to_be_bytes());
        MessageId::fresh(now, bits)
    }
}

/// The first ten bytes of so many bits.
fn ten(bits: u128) -> [u8; 10] {
    let bytes = bits.to_le_bytes();
    std::array::from_fn(|n| bytes[n])
}

/// Whose turn it is within a millisecond: the last one, and behind it the turns that were taken in it.
#[derive(Debug, Default)]
struct Turns(AtomicU64);

impl Turns {
    /// What an id has for its place within a millisecond.
    const BITS: u32 = 12;
    const LAST: u64 = (1 << Self::BITS) - 1;

    /// The next turn. When all are taken, those that come then share the last one, and have only the rest of their bits to themselves.
    fn take(&self, now: Timestamp) -> u16 {
        let first = u64::try_from(now.as_ms()).unwrap_or(0) << Self::BITS;
        let next = |taken: u64| if taken < first { first } else { (taken + 1).min(taken | Self::LAST) };
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| Some(next(taken)));
        (next(before.unwrap_or_else(|taken| taken)) & Self::LAST) as u16
    }
}

/// The n-th value of a sequence that never repeats: two rounds over a counter, keyed by the seed.
fn scramble(seed: u128, n: u64) -> u128 {
    let round = |key: u64, value: u64| {
        let mut z = value.wrapping_add(key).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let high = round(seed as u64, n);
    let low = round((seed >> 64) as u64, high ^ n.rotate_left(32));
    u128::from(high) << 64 | u128::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_never_goes_back() {
        let ahead = Timestamp::from_ms(WallClock::new(Timestamp::default()).now().as_ms() + 3_600_000);
        assert!(WallClock::new(ahead).now() >= ahead);
    }

    #[test]
    fn a_clock_that_was_set_back_goes_on_at_half_its_pace_until_it_is_caught_up_with() {
        let mut steady = Steady::new(Timestamp::default());
        let mut tell = |wall_s: i64, uptime_s| {
            steady.tell(wall_s * 1_000, Duration::from_secs(uptime_s)).as_ms() / 1_000
        };
        assert_eq!(tell(1_000, 1), 1_000);
        assert_eq!(tell(900, 1), 1_000);
        assert_eq!(tell(910, 11), 1_005);
        assert_eq!(tell(1_109, 210), 1_109, "caught up");
        assert_eq!(tell(1_110, 211), 1_110);
    }

    #[test]
    fn bits_differ_and_two_clocks_draw_apart() {
        let (a, b) = (WallClock::new(Timestamp::default()), WallClock::new(Timestamp::default()));
        let drawn: std::collections::HashSet<u128> = (0..10_000).flat_map(|_| [a.bits(), b.bits()]).collect();
        assert_eq!(drawn.len(), 20_000);
    }

    #[test]
    fn ids_sort_as_they_were_made() {
        let clock = WallClock::new(Timestamp::default());
        let at = |ms| (0..4_096).map(|_| clock.message_id(Timestamp::from_ms(ms))).collect::<Vec<_>>();
        let (first, second) = (at(1_000_000), at(1_000_001));
        assert!(first.iter().chain(&second).is_sorted());
        let all: std::collections::HashSet<_> =
            [first, second, at(1_000_001), at(999_999)].into_iter().flatten().collect();
        assert_eq!(all.len(), 4 * 4_096, "also where there are more of them than turns, or they come late");
    }

    #[test]
    fn uptime_moves_on() {
        let clock = WallClock::new(Timestamp::default());
        assert!(clock.uptime() <= clock.uptime());
    }
}
