//! What is counted and what is written, heard by a recorder and a subscriber of these tests' own.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString,
};
use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Content, MessageId, Policy, Timestamp};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};

use super::*;

/// Keeps what is counted and measured, by name and labels.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<BTreeMap<String, f64>>>);

struct Cell(Heard, String);

impl Cell {
    fn add(&self, value: f64) {
        *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += value;
    }
}

impl CounterFn for Cell {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }

    fn absolute(&self, _: u64) {}
}

impl HistogramFn for Cell {
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl Heard {
    fn cell(&self, key: &Key) -> Arc<Cell> {
        let mut labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        labels.sort();
        Arc::new(Cell(self.clone(), format!("{}{{{}}}", key.name(), labels.join(","))))
    }

    fn value(&self, key: &str) -> Option<f64> {
        self.0.lock().unwrap().get(key).copied()
    }
}

impl Recorder for Heard {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell(key))
    }
}

/// Keeps the lines that are logged: level, then fields.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn route() -> Route {
    let backoff = Backoff::Table(vec![Duration::from_secs(1)]);
    Route::new(
        "email",
        "smtp",
        Policy { backoff, jitter: Jitter::None, max_attempts: 3, expires_after: None },
    )
}

fn message() -> Message {
    let new = NewMessage::new("email", Content::of_bytes("the-secret-body"));
    admit(new, &route(), MessageId::own(1), None, Timestamp::from_ms(1_000)).message
}

fn reason(name: &str) -> DeadReason {
    DeadReason::ALL.into_iter().find(|reason| reason.name() == name).unwrap()
}

fn happened(kind: Kind) -> Event {
    Event::of(&message(), kind, Timestamp::from_ms(2_000))
}

/// What is heard while this runs.
fn listen(run: impl FnOnce(&Telemetry)) -> (Heard, Vec<String>) {
    let (heard, lines) = (Heard::default(), Lines::default());
    metrics::with_local_recorder(&heard, || {
        tracing::subscriber::with_default(lines.clone(), || run(&Telemetry));
    });
    let lines = lines.0.lock().unwrap().clone();
    (heard, lines)
}

/// The lines that are logged while this runs.
pub(crate) fn lines(run: impl FnOnce()) -> Vec<String> {
    listen(|_| run()).1
}

#[test]
fn one_event_is_one_line_and_one_count() {
    let kinds = [
        (Kind::Accepted, "DEBUG"),
        (Kind::Delivered { lateness: Duration::from_secs(1) }, "DEBUG"),
        (Kind::AttemptFailed { code: Some("451".into()) }, "INFO"),
        (Kind::LeaseLost, "WARN"),
        (Kind::Dead { reason: reason("refused") }, "WARN"),
    ];
    for (kind, level) in kinds {
        let name = kind.name();
        let (heard, lines) = listen(|telemetry| telemetry.observe(&happened(kind)));
        assert_eq!(heard.value(&format!("{EVENTS}{{event={name},route=email}}")), Some(1.0));
        assert_eq!(lines.len(), 1, "{lines:?}");
        for words in [level, &format!("event=\"{name}\""), "id=", "route=email", "lane=\"medium\""] {
            assert!(lines[0].contains(words), "{words} in {}", lines[0]);
        }
        assert!(!lines[0].contains("secret"), "{}", lines[0]);
    }
}

#[test]
fn tries_losses_and_deaths_are_counted_by_what_they_came_to() {
    let (heard, _) = listen(|telemetry| {
        begin([route()].iter());
        telemetry.tried(&message(), &Outcome::HandedOff);
        telemetry.tried(&message(), &Outcome::Lost { reason: "no answer".into() });
        telemetry.tried(&message(), &Outcome::Lost { reason: "no answer".into() });
        telemetry.lease_lost(&message());
        telemetry.carrying(&message(), Duration::from_millis(250));
        telemetry.observe(&happened(Kind::Dead { reason: reason("expired") }));
    });
    for (key, value) in [
        ("redeliver_attempts_total{outcome=handed_off,route=email}", 1.0),
        ("redeliver_attempts_total{outcome=lost,route=email}", 2.0),
        ("redeliver_attempts_total{outcome=delivered,route=email}", 0.0),
        ("redeliver_leases_lost_total{route=email}", 1.0),
        ("redeliver_lateness_seconds{route=email}", 0.25),
        ("redeliver_dead_total{reason=expired,route=email}", 1.0),
        ("redeliver_dead_total{reason=poison,route=email}", 0.0),
        ("redeliver_store_failures_total{}", 0.0),
    ] {
        assert_eq!(heard.value(key), Some(value), "{key}");
    }
}

#[test]
fn a_store_that_fails_is_an_error_that_names_what_was_being_done() {
    let error = crate::store::StoreError::Unavailable("database is locked".to_owned());
    let (heard, lines) = listen(|telemetry| telemetry.store_failed("claiming due messages", &error));
    assert_eq!(heard.value("redeliver_store_failures_total{}"), Some(1.0));
    for words in ["ERROR", "event=\"store.failed\"", "claiming due messages", "database is locked"] {
        assert!(lines[0].contains(words), "{words} in {}", lines[0]);
    }
}

fn happened_to_a_row(kind: Kind) -> Event {
    let row = Message { id: MessageId::Row("email-log:7".into()), ..message() };
    Event::of(&row, kind, Timestamp::from_ms(2_000))
}

#[test]
fn every_scheduling_of_a_row_is_logged_or_why_not() {
    let kinds = [
        (Kind::HandedOff, "INFO"),
        (Kind::Deferred { reason: "the broker is away".into() }, "INFO"),
        (Kind::Parked { gate: "hold:sender:ada@example.org".into() }, "INFO"),
        (Kind::Dead { reason: reason("attempts_exhausted") }, "WARN"),
    ];
    for (kind, level) in kinds {
        let (_, lines) = listen(|telemetry| telemetry.observe(&happened_to_a_row(kind)));
        assert!(lines[0].starts_with(level) && lines[0].contains("id=email-log:7"), "{lines:?}");
        assert!(!lines[0].contains("ada@"), "{lines:?}");
    }
}

#[test]
fn rows_that_were_published_and_given_up_are_counted_under_the_documents_names() {
    let (heard, _) = listen(|telemetry| {
        begin([Route { table: Some("email-log".into()), ..route() }].iter());
        telemetry.observe(&happened_to_a_row(Kind::HandedOff));
        telemetry.observe(&happened_to_a_row(Kind::HandedOff));
        telemetry.observe(&happened_to_a_row(Kind::Deferred { reason: "the broker is away".into() }));
        telemetry.observe(&happened_to_a_row(Kind::Dead { reason: reason("attempts_exhausted") }));
        // What is no row is none of theirs.
        telemetry.observe(&happened(Kind::HandedOff));
        telemetry.observe(&happened(Kind::Dead { reason: reason("refused") }));
    });
    assert_eq!(heard.value("email_retries_requeued_total{}"), Some(2.0));
    assert_eq!(heard.value("email_retries_dead_total{}"), Some(1.0));
}

#[test]
fn a_gate_is_logged_without_a_senders_address() {
    let parked = |gate: &str| {
        let (_, lines) = listen(|telemetry| telemetry.observe(&happened(Kind::Parked { gate: gate.into() })));
        lines[0].clone()
    };
    assert!(parked("hold:destination:mx.example.org").contains("gate=\"hold:destination:mx.example.org\""));
    assert!(parked("hold:sender:ada@example.org").contains("gate=\"hold:sender\""));
}

#[test]
fn a_part_of_a_campaign_is_one_line_with_what_was_scheduled_known_and_left_out() {
    let planned = |unplanned| Planned { campaign: "c-1", scheduled: 5, skipped: 2, unplanned };
    let (heard, lines) = listen(|telemetry| {
        telemetry.planned(&planned(0));
        telemetry.planned(&planned(3));
    });
    assert_eq!(heard.value("redeliver_campaign_mails_total{result=scheduled}"), Some(10.0));
    assert_eq!(heard.value("redeliver_campaign_mails_total{result=skipped}"), Some(4.0));
    assert!(lines[0].starts_with("INFO") && lines[0].contains("campaign.planned"), "{lines:?}");
    assert!(lines[1].starts_with("WARN") && lines[1].contains("unplanned"), "{lines:?}");
}

#[test]
fn what_is_used_of_quotas_is_counted_by_whose_they_are() {
    let (heard, _) = listen(|telemetry| {
        begin([route()].iter());
        telemetry.quota(Whose::Workspace, Counted::Used);
        telemetry.quota(Whose::Workspace, Counted::Returned);
        telemetry.quota(Whose::Sender, Counted::Full);
    });
    for (key, value) in [
        ("redeliver_quota_total{result=used,whose=workspace}", 1.0),
        ("redeliver_quota_total{result=returned,whose=workspace}", 1.0),
        ("redeliver_quota_total{result=full,whose=sender}", 1.0),
        ("redeliver_quota_total{result=used,whose=campaign}", 0.0),
    ] {
        assert_eq!(heard.value(key), Some(value), "{key}");
    }
}
