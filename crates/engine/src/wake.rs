//! Tells a route's work where to look, and when. Only ever shortens a sleep.

use std::sync::atomic::{AtomicI64, Ordering};

use redeliver_core::{Lane, Message, State, Timestamp};
use tokio::sync::Notify;

use crate::store::ClaimKind;

/// A time for each lane and kind of message.
pub(crate) type Looks = [[Timestamp; 2]; 4];

/// Where something may be due, and from when on.
pub(crate) struct Wake {
    notify: Notify,
    looks: [[AtomicI64; 2]; 4],
}

impl Default for Wake {
    fn default() -> Self {
        let never = || AtomicI64::new(Timestamp::MAX.as_ms());
        Self { notify: Notify::new(), looks: std::array::from_fn(|_| std::array::from_fn(|_| never())) }
    }
}

impl Wake {
    /// This message may be claimed when it is due, if it waits.
    pub(crate) fn for_message(&self, message: &Message) {
        if let State::Waiting { parked_for: None } = message.state {
            self.at(message.lane, ClaimKind::of(message), message.due_at);
        }
    }

    /// Something of this lane and kind may be claimed from this time on.
    pub(crate) fn at(&self, lane: Lane, kind: ClaimKind, due_at: Timestamp) {
        self.looks[lane as usize][kind as usize].fetch_min(due_at.as_ms(), Ordering::Relaxed);
        self.notify.notify_one();
    }

    /// Anything may be due anywhere.
    pub(crate) fn everywhere(&self) {
        for look in self.looks.iter().flatten() {
            look.store(Timestamp::default().as_ms(), Ordering::Relaxed);
        }
        self.notify.notify_one();
    }

    /// There is something to do that needs no claim.
    pub(crate) fn only(&self) {
        self.notify.notify_one();
    }

    /// Ends when somebody has woken it; says where to look from when on.
    pub(crate) async fn woken(&self) -> Looks {
        self.notify.notified().await;
        let take =
            |look: &AtomicI64| Timestamp::from_ms(look.swap(Timestamp::MAX.as_ms(), Ordering::Relaxed));
        self.looks.each_ref().map(|lane| lane.each_ref().map(take))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_earliest_hint_of_a_lane_counts_and_is_told_once() {
        let wake = Wake::default();
        wake.at(Lane::High, ClaimKind::Trusted, Timestamp::from_ms(20));
        wake.at(Lane::High, ClaimKind::Trusted, Timestamp::from_ms(10));
        wake.at(Lane::High, ClaimKind::Trusted, Timestamp::from_ms(30));
        let looks = wake.woken().now_or_never().unwrap();
        assert_eq!(looks[Lane::High as usize][0], Timestamp::from_ms(10));
        assert!(looks.iter().flatten().filter(|at| **at == Timestamp::MAX).count() == 7);
        assert!(wake.woken().now_or_never().is_none());
    }

    #[test]
    fn everywhere_is_everywhere_at_once() {
        let wake = Wake::default();
        wake.everywhere();
        let looks = wake.woken().now_or_never().unwrap();
        assert!(looks.iter().flatten().all(|at| *at == Timestamp::default()));
    }
}
