//! Brings what outside workers report by way of an intake to the sink; what nobody can read is kept as dead. Knows no source.

use std::sync::Arc;
use std::time::Duration;

use redeliver_core::report::Report;

use crate::bring::{Bring, Input};
use crate::intake::{Sink, Told};

/// How long a store is left alone after it failed; doubles with each failure.
const AWAY_WAIT: Duration = Duration::from_millis(100);
/// The longest that it is left alone.
const AWAY_WAIT_MAX: Duration = Duration::from_secs(5);

/// Brings the reports of one intake.
pub struct Hear {
    /// Keeps what is no report: it reads every input as what is wrong with it.
    bring: Bring,
}

impl Hear {
    /// Bad input is kept as this would; how it reads messages doesn't matter.
    pub fn new(bring: Bring) -> Self {
        let wrong = |bytes: &[u8]| Err(Report::from_json(bytes).err().unwrap_or_default());
        Self { bring: Bring { read: Arc::new(wrong), ..bring } }
    }

    /// Brings a batch until the sink has all of it, and ends only then.
    pub async fn hear(&self, sink: &dyn Sink, inputs: &[Input]) {
        let (mut reports, mut unread) = (Vec::new(), Vec::new());
        for input in inputs {
            match Report::from_json(&input.bytes) {
                Ok(report) if input.bytes.len() <= self.bring.bytes_max => reports.push(report),
                Ok(_) | Err(_) => unread.push(input.clone()),
            }
        }
        let mut wait = AWAY_WAIT;
        while !reports.is_empty() {
            match sink.report(reports.clone()).await {
                Ok(told) => {
                    self.tell(&reports, &told);
                    reports.clear();
                }
                Err(error) => {
                    tracing::warn!(
                        event = "intake.delayed", intake = %self.bring.name, error = %error,
                        "the store does not take what was reported: it is brought again"
                    );
                    self.bring.clock.sleep(wait).await;
                    wait = (wait * 2).min(AWAY_WAIT_MAX);
                }
            }
        }
        self.bring.bring(sink, &unread).await;
    }

    fn tell(&self, reports: &[Report], told: &[Told]) {
        for (report, told) in reports.iter().zip(told) {
            match told {
                Told::Applied | Told::Ignored => {}
                Told::NoMessage => tracing::warn!(
                    event = "report.dropped", intake = %self.bring.name, id = %report.message,
                    "a report on a message that is not known, or that nobody reports on"
                ),
            }
        }
    }
}
