//! Brings what outside workers report by way of an intake to the sink; what nobody can read is kept as dead. Knows no source.

use redeliver_core::Name;
use redeliver_core::report::Report;

use crate::aside;
use crate::bring::{Bring, Input};
use crate::intake::{Sink, Told};
use crate::parts::{AWAY_WAIT, AWAY_WAIT_MAX};

/// Brings the reports of one intake.
pub struct Hear {
    /// Keeps what is no report.
    bring: Bring,
    /// The only workspace whose messages may be reported on; any if none.
    workspace: Option<Name>,
}

impl Hear {
    /// Bad input is kept as this would; how it reads messages doesn't matter.
    pub fn new(bring: Bring, workspace: Option<Name>) -> Self {
        Self { bring, workspace }
    }

    /// Brings a batch until the sink has all of it, and ends only then.
    pub async fn hear(&self, sink: &dyn Sink, inputs: &[Input]) {
        let read =
            |input: &Input| self.bring.within_limit(input).and_then(|()| Report::from_json(&input.bytes));
        let bytes = inputs.iter().map(|input| input.bytes.len()).sum();
        let read: Vec<_> = aside::run(bytes, || inputs.iter().map(|input| (input, read(input))).collect());
        let (mut said, mut reports, mut unread) = (Vec::new(), Vec::new(), Vec::new());
        for (input, read) in read {
            match read {
                Ok(report) => {
                    said.push(input);
                    reports.push(Report { workspace: self.workspace.clone(), ..report });
                }
                Err(why) => unread.push((input, self.bring.unreadable(input, why))),
            }
        }
        let told = self.say(sink, &reports).await;
        let mut set_aside = Vec::new();
        for ((input, report), told) in said.into_iter().zip(&reports).zip(told) {
            match told {
                Told::Applied | Told::Ignored => {}
                Told::NoMessage => tracing::warn!(
                    event = "report.dropped", intake = %self.bring.name, id = %report.message,
                    "a report on a message that is not known, or that nobody reports on"
                ),
                Told::Unfit(why) => set_aside.push((input, self.bring.set_aside(input, &why))),
            }
        }
        self.bring.keep(sink, set_aside).await;
        self.bring.keep(sink, unread).await;
    }

    /// Says what was reported until the sink has answered for it.
    async fn say(&self, sink: &dyn Sink, reports: &[Report]) -> Vec<Told> {
        let mut wait = AWAY_WAIT;
        while !reports.is_empty() {
            match sink.report(reports.to_vec()).await {
                Ok(told) => return told,
                Err(error) => tracing::warn!(
                    event = "intake.delayed", intake = %self.bring.name, error = %error,
                    "the store does not take what was reported: it is brought again"
                ),
            }
            self.bring.clock.sleep(wait).await;
            wait = (wait * 2).min(AWAY_WAIT_MAX);
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use futures_util::FutureExt;
    use redeliver_core::accept::NewMessage;
    use redeliver_core::{AttemptId, MessageId, Timestamp};

    use super::*;
    use crate::clock::WallClock;
    use crate::emit::tests::lines;
    use crate::intake::Accepted;
    use crate::store::StoreError;

    /// Can keep no report, and has no route for what nobody can read.
    struct Nowhere;

    #[async_trait]
    impl Sink for Nowhere {
        async fn accept(&self, batch: Vec<NewMessage>) -> Result<Vec<Accepted>, StoreError> {
            Ok(vec![Accepted::NoRoute; batch.len()])
        }

        async fn report(&self, batch: Vec<Report>) -> Result<Vec<Told>, StoreError> {
            Ok(vec![Told::Unfit("a text has a NUL character".to_owned()); batch.len()])
        }
    }

    #[test]
    fn a_report_that_is_kept_nowhere_is_told_of_before_it_is_gone() {
        let bring = Bring {
            name: "reports".into(),
            read: Arc::new(|_| Err(String::new())),
            rejects: "rejects".into(),
            bytes_max: 1_000,
            clock: WallClock::new(Timestamp::default()),
        };
        let attempt = AttemptId { message: MessageId::own(1), generation: 0, attempt: 1 };
        let report = format!(r#"{{"attempt_id": "{attempt}", "outcome": "delivered"}}"#);
        let input = Input { bytes: report.into(), place: "reports:1".into() };
        let hear = Hear::new(bring, None);
        let lines = lines(|| assert!(hear.hear(&Nowhere, &[input]).now_or_never().is_some()));
        for event in ["input.refused", "intake.dropped"] {
            assert_eq!(lines.iter().filter(|line| line.contains(event)).count(), 1, "{lines:?}");
        }
    }
}
