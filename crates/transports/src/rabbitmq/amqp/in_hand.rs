//! What came and whoever takes it has not let go of: how many bytes that is, and whether there is room for more.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts what is in hand.
#[derive(Debug)]
pub(super) struct InHand {
    bytes: watch::Sender<usize>,
    bytes_max: usize,
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
        Arc::new(Self { bytes: watch::Sender::new(0), bytes_max: bytes_max.max(1) })
    }

    /// Takes so many bytes into the hand.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Weight {
        self.bytes.send_modify(|all| *all += bytes);
        Weight { _part: Some(Arc::new(Part { of: Arc::clone(self), bytes })) }
    }

    pub(super) fn is_full(&self) -> bool {
        *self.bytes.borrow() >= self.bytes_max
    }

    /// Ends when there is room for something more.
    pub(super) async fn has_room(&self) {
        let mut bytes = self.bytes.subscribe();
        // The only error is that the sender is gone, and it is held here.
        let _ = bytes.wait_for(|bytes| *bytes < self.bytes_max).await;
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.of.bytes.send_modify(|all| *all -= self.bytes);
    }
}

impl PartialEq for Weight {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Weight {}
