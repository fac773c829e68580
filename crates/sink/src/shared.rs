//! What all conversations of a sink have in common.

use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_rustls::TlsAcceptor;

use crate::mailbox::Mailbox;
use crate::options::{ClockFn, Limits, Seen, Tls, WatcherFn};
use crate::script::Playing;

pub(crate) struct Shared {
    pub limits: Limits,
    pub tls: Tls,
    pub acceptor: Option<TlsAcceptor>,
    pub login: Option<(String, String)>,
    pub mailbox: Mailbox,
    pub playing: Mutex<Playing>,
    /// Ever made.
    pub connections: AtomicUsize,
    pub clock: Option<ClockFn>,
    pub watcher: Option<WatcherFn>,
}

impl Shared {
    pub fn playing(&self) -> MutexGuard<'_, Playing> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn tell_watcher(&self, seen: &Seen) {
        if let Some(watcher) = &self.watcher {
            watcher(seen);
        }
    }
}
