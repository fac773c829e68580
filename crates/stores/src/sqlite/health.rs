//! Whether the threads of a store can go on: the first reason why they cannot, for everybody who asks or waits.

use std::sync::Arc;

use redeliver_engine::store::StoreError;
use tokio::sync::watch;

use super::errors::{Fault, is_failed_sync};

/// Shared by all threads of one open database.
#[derive(Clone, Debug)]
pub(super) struct Health(Arc<watch::Sender<Option<StoreError>>>);

impl Default for Health {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Health {
    /// Fails once the store is broken, with the reason.
    pub(super) fn state(&self) -> Result<(), StoreError> {
        self.0.borrow().clone().map_or(Ok(()), Err)
    }

    /// Marks the store as broken, and gives the first reason for it.
    pub(super) fn break_off(&self, why: String) -> StoreError {
        let error = StoreError::Broken(why);
        self.0.send_if_modified(|broken| {
            let is_first = broken.is_none();
            broken.get_or_insert_with(|| error.clone());
            is_first
        });
        self.0.borrow().clone().unwrap_or(error)
    }

    /// The disk failed to sync: the kernel may have dropped what was written, and the next sync would not say so.
    pub(super) fn sync_failed(&self, error: &dyn std::fmt::Display) -> StoreError {
        self.break_off(format!(
            "the disk did not take what was written ({error}), so nothing more is accepted; \
             check the disk, then start redeliver again"
        ))
    }

    /// Marks the store as broken if this fault is a sync that failed within SQLite.
    pub(super) fn check(&self, fault: &Fault) {
        if is_failed_sync(fault) {
            self.sync_failed(fault);
        }
    }

    /// Waits until the store is broken, and gives the reason.
    pub(super) async fn broken(&self) -> StoreError {
        let mut state = self.0.subscribe();
        match state.wait_for(Option::is_some).await.map(|broken| broken.clone()) {
            Ok(Some(error)) => error,
            // The sender lives as long as this does.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Marks the store as broken if the current thread panics before this is dropped.
    pub(super) fn watch(&self, thread: &'static str) -> Watched {
        Watched { health: self.clone(), thread }
    }
}

/// Held by a thread for its whole life.
pub(super) struct Watched {
    health: Health,
    thread: &'static str,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.health.break_off(format!(
                "thread {} panicked, which is a bug; start redeliver again, and report the panic from its log",
                self.thread
            ));
        }
    }
}
