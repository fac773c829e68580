//! What came and whoever takes it has not let go of: how many bytes that is, and whether there is room for more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Counts what is in hand.
#[derive(Debug)]
pub(super) struct InHand {
    bytes: AtomicUsize,
    bytes_max: usize,
    /// There is room where there was none.
    has_room: Notify,
}

/// A part of what is in hand, until the last copy of this is dropped. One is as good as another.
#[derive(Clone, Debug, Default)]
pub struct Weight {
    _part: Option<Arc<Part>>,
}

#[derive(Debug)]
struct Part {
    of: Arc<InHand>,
    bytes: usize,
}

impl InHand {
    /// Room for so many bytes, and always for something.
    pub(super) fn new(bytes_max: usize) -> Arc<Self> {
        let bytes_max = bytes_max.max(1);
        Arc::new(Self { bytes: AtomicUsize::new(0), bytes_max, has_room: Notify::new() })
    }

    /// Takes so many bytes into the hand.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Weight {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
        Weight { _part: Some(Arc::new(Part { of: Arc::clone(self), bytes })) }
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::SeqCst) >= self.bytes_max
    }

    /// Ends when there is room for something more. One waits at a time: whoever reads.
    pub(super) async fn has_room(&self) {
        while self.is_full() {
            self.has_room.notified().await;
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let before = self.of.bytes.fetch_sub(self.bytes, Ordering::SeqCst);
        if before >= self.of.bytes_max && before - self.bytes < self.of.bytes_max {
            // Said before anybody waits, it is heard by whoever waits next, who looks once more.
            self.of.has_room.notify_one();
        }
    }
}

impl PartialEq for Weight {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Weight {}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn whoever_reads_waits_until_there_is_room() {
        let in_hand = InHand::new(10);
        let weights = [6, 6, 6].map(|bytes| in_hand.take(bytes));
        let mut reading = Box::pin(in_hand.has_room());
        let [first, second, third] = weights;
        drop(first.clone());
        assert_eq!((&mut reading).now_or_never(), None, "somebody still has it");
        drop(first);
        assert_eq!((&mut reading).now_or_never(), None, "12 bytes are left");
        drop(second);
        assert_eq!(reading.now_or_never(), Some(()));
        // Word of room that nobody waited for is no room later.
        let more = in_hand.take(6);
        drop(third);
        let fourth = in_hand.take(6);
        let mut reading = Box::pin(in_hand.has_room());
        assert_eq!((&mut reading).now_or_never(), None);
        drop((more, fourth));
        assert_eq!(reading.now_or_never(), Some(()));
    }
}
