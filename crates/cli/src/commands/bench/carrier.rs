//! A transport that takes everything, at once or after a while, after as many failures as it is told, and notes how late
//! it was.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use redeliver_core::{Failure, Lane, Name, Outcome};
use redeliver_engine::transport::{Envelope, Transport};

/// The benchmark's transport.
#[derive(Default)]
pub(super) struct Carrier {
    /// Tries of each message that fail before one succeeds.
    failures: u32,
    /// Whether to note the lateness of each.
    notes: bool,
    /// Where only that of one priority is noted: which.
    noted: Option<Lane>,
    /// How long each carrying takes.
    latency: Duration,
    delivered: AtomicUsize,
    late_ms: Mutex<Vec<f64>>,
}

impl Carrier {
    /// Takes everything after this many failed tries.
    pub(super) fn failing(failures: u32) -> Self {
        Self { failures, ..Self::default() }
    }

    /// Takes everything and notes how late each was.
    pub(super) fn noting() -> Self {
        Self { notes: true, ..Self::default() }
    }

    /// Takes everything after a while, and notes how late those of one priority were.
    pub(super) fn noting_only(noted: Lane, latency: Duration) -> Self {
        Self { notes: true, noted: Some(noted), latency, ..Self::default() }
    }

    pub(super) fn delivered(&self) -> usize {
        self.delivered.load(Ordering::Relaxed)
    }

    /// How late the messages were, sorted, in milliseconds.
    pub(super) fn late_ms(&self) -> Vec<f64> {
        let mut late = std::mem::take(&mut *self.late_ms.lock().unwrap_or_else(PoisonError::into_inner));
        late.sort_by(f64::total_cmp);
        late
    }
}

#[async_trait]
impl Transport for Carrier {
    async fn carry(&self, envelope: &Envelope<'_>, _: Duration) -> Outcome {
        if envelope.message.attempts < self.failures {
            return Outcome::Failed(Failure::new("the benchmark wants another try").with_code("451"));
        }
        if self.notes && self.noted.is_none_or(|lane| lane == envelope.message.lane) {
            let now_ms =
                SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1_000.0;
            let late_ms = now_ms - envelope.message.due_at.as_ms() as f64;
            self.late_ms.lock().unwrap_or_else(PoisonError::into_inner).push(late_ms);
        }
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        self.delivered.fetch_add(1, Ordering::Relaxed);
        Outcome::Delivered { receipt: None }
    }

    fn destination(&self, _: &Envelope<'_>) -> Name {
        "bench".into()
    }

    /// The e-mail queue of the console is among the pages that are measured.
    fn carries_emails(&self) -> bool {
        true
    }
}
