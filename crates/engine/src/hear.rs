//! Brings what outside workers report by way of an intake to the sink; what nobody can read is kept as dead. Knows no source.

use std::sync::Arc;

use redeliver_core::Name;
use redeliver_core::report::Report;

use crate::bring::{Bring, Input};
use crate::intake::{Sink, Told};
use crate::parts::{Part, Parts};
use crate::store::StoreError;

/// Brings the reports of one intake.
pub struct Hear {
    /// Keeps what is no report: it reads every input as what is wrong with it.
    bring: Bring,
    /// The only workspace whose messages may be reported on; any if none.
    workspace: Option<Name>,
}

impl Hear {
    /// Bad input is kept as this would; how it reads messages doesn't matter.
    pub fn new(bring: Bring, workspace: Option<Name>) -> Self {
        let wrong = |bytes: &[u8]| Err(Report::from_json(bytes).err().unwrap_or_default());
        Self { bring: Bring { read: Arc::new(wrong), ..bring }, workspace }
    }

    /// Brings a batch until the sink has all of it, and ends only then.
    pub async fn hear(&self, sink: &dyn Sink, inputs: &[Input]) {
        let (mut reports, mut unread) = (Vec::new(), Vec::new());
        for input in inputs {
            match Report::from_json(&input.bytes) {
                Ok(report) if input.bytes.len() <= self.bring.bytes_max => {
                    reports.push((input, Report { workspace: self.workspace.clone(), ..report }));
                }
                Ok(_) | Err(_) => unread.push(input.clone()),
            }
        }
        let mut parts = Parts::of(reports.len());
        while let Some(part) = parts.next_part() {
            match self.say(sink, &reports, &part).await {
                Ok(()) => parts.taken(),
                Err(error) => {
                    if let Some(wait) = parts.failed(part, &error) {
                        tracing::warn!(
                            event = "intake.delayed", intake = %self.bring.name, error = %error,
                            "the store does not take what was reported: it is brought again"
                        );
                        self.bring.clock.sleep(wait).await;
                    }
                }
            }
        }
        self.bring.bring(sink, &unread).await;
    }

    /// Brings a part of what was reported; what the store can't take is kept as dead.
    async fn say(&self, sink: &dyn Sink, all: &[(&Input, Report)], part: &Part) -> Result<(), StoreError> {
        match part {
            Part::AsItIs(range) => {
                let reports: Vec<Report> =
                    all[range.clone()].iter().map(|(_, report)| report.clone()).collect();
                let told = sink.report(reports.clone()).await?;
                self.tell(&reports, &told);
            }
            Part::SetAside { index, why } => {
                sink.accept(vec![self.bring.set_aside(all[*index].0, why)]).await?;
            }
        }
        Ok(())
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
