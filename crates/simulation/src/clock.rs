//! Virtual time: it stands still while anybody has something to do, and then jumps to the next thing that is due.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redeliver_core::Timestamp;
use redeliver_engine::clock::{Clock, Sleep, Steady};

use crate::rng::Rng;

/// When every run begins.
const START_MS: i64 = 1_796_115_600_000;

/// A clock that only the executor moves.
pub struct SimClock {
    inner: Mutex<Inner>,
}

struct Inner {
    uptime_ms: u64,
    /// What the time of day is ahead by, after jumps.
    ahead_ms: i64,
    steady: Steady,
    sequence: u64,
    timers: BTreeMap<(u64, u64), Waker>,
    rng: Rng,
}

impl SimClock {
    /// A clock at the start of a run.
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(Inner {
                uptime_ms: 1_000,
                ahead_ms: 0,
                steady: Steady::new(Timestamp::from_ms(START_MS)),
                sequence: 0,
                timers: BTreeMap::new(),
                rng: Rng::new(seed ^ 0xc10c),
            }),
        })
    }

    /// Moves to the next timer and wakes everybody whose time has come. False if nobody sleeps.
    pub fn advance(&self, not_past_ms: u64) -> bool {
        let mut inner = self.lock();
        let Some((&(at, _), _)) = inner.timers.first_key_value() else { return false };
        if at > not_past_ms {
            inner.uptime_ms = inner.uptime_ms.max(not_past_ms);
            return false;
        }
        inner.uptime_ms = inner.uptime_ms.max(at);
        let next = (inner.uptime_ms + 1, 0);
        let later = inner.timers.split_off(&next);
        let woken = std::mem::replace(&mut inner.timers, later);
        drop(inner);
        woken.into_values().for_each(Waker::wake);
        true
    }

    /// Milliseconds since the machine started.
    pub fn uptime_ms(&self) -> u64 {
        self.lock().uptime_ms
    }

    /// Sets the time of day ahead or back; uptime doesn't notice.
    pub fn jump(&self, ms: i64) {
        self.lock().ahead_ms += ms;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A clock as one instance holds it: shared time, bits of its own.
#[derive(Clone)]
pub struct SimHandle(pub Arc<SimClock>);

impl Clock for SimHandle {
    fn now(&self) -> Timestamp {
        let mut inner = self.0.lock();
        let wall_ms = START_MS + inner.uptime_ms as i64 + inner.ahead_ms;
        let uptime = Duration::from_millis(inner.uptime_ms);
        inner.steady.tell(wall_ms, uptime)
    }

    fn uptime(&self) -> Duration {
        Duration::from_millis(self.0.lock().uptime_ms)
    }

    fn sleep(&self, span: Duration) -> Sleep {
        let at_ms = self.0.lock().uptime_ms + (span.as_millis() as u64).max(1);
        Box::pin(Nap { clock: Arc::clone(&self.0), at_ms, key: None })
    }

    fn bits(&self) -> u128 {
        let mut inner = self.0.lock();
        let high = u128::from(inner.rng.draw());
        high << 64 | u128::from(inner.rng.draw())
    }
}

struct Nap {
    clock: Arc<SimClock>,
    at_ms: u64,
    key: Option<(u64, u64)>,
}

impl Future for Nap {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = Arc::clone(&self.clock);
        let mut inner = clock.lock();
        if let Some(key) = self.key.take() {
            inner.timers.remove(&key);
        }
        if inner.uptime_ms >= self.at_ms {
            return Poll::Ready(());
        }
        inner.sequence += 1;
        let key = (self.at_ms, inner.sequence);
        inner.timers.insert(key, context.waker().clone());
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Nap {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.clock.lock().timers.remove(&key);
        }
    }
}
