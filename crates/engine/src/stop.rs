//! How everything that runs is told to end: no more new work, finish what is in the air.

use tokio::sync::watch;

/// Held by whoever may say stop.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Held by everything that must hear it.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

/// A pair of the two.
pub fn stop_pair() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Says stop.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Whether it was said. A stopper that is gone has said it.
    pub fn is_stopped(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Ends when it is said.
    pub async fn stopped(&mut self) {
        // The only error is that the stopper is gone, which says the same.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}
