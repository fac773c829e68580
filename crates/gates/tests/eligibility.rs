//! The eligibility check against a service that really answers by HTTP, or really doesn't.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, Uri};
use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::breaker::BreakerConfig;
use redeliver_core::gate::Verdict;
use redeliver_core::outcome::Until;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Content, Message, MessageId, Policy, Route, Timestamp};
use redeliver_engine::clock::{Clock, ManualClock};
use redeliver_engine::gate::Gate;
use redeliver_gates::eligibility::{EligibilityConfig, EligibilityGate, Template};
use redeliver_servers::free_port;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const START: Timestamp = Timestamp::from_ms(1_800_000_000_000);

/// A service that knows devices by their first letter: `a` is active, `i` is not, `s` says nothing for a minute, `b` is
/// broken, `f` is somewhere else, `l` has a lot to say; nobody has heard of any other.
struct Devices {
    port: u16,
    asked: Arc<AtomicUsize>,
    task: Option<JoinHandle<()>>,
}

impl Devices {
    async fn start() -> Self {
        let mut devices = Self { port: free_port(), asked: Arc::default(), task: None };
        devices.resume().await;
        devices
    }

    async fn resume(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        let asked = Arc::clone(&self.asked);
        let answer = move |uri: Uri| {
            asked.fetch_add(1, Ordering::Relaxed);
            async move { answer(uri.path()).await }
        };
        let router = Router::new().fallback(answer);
        self.task = Some(tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }));
    }

    /// Takes it down: nobody listens there any more.
    async fn stop(&mut self) {
        let task = self.task.take().unwrap();
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

async fn answer(path: &str) -> (StatusCode, String) {
    let device = path.strip_prefix("/devices/").unwrap_or_default();
    match device.chars().next() {
        Some('a') => (StatusCode::OK, r#"{"active": true}"#.to_owned()),
        Some('i') => (StatusCode::OK, r#"{"active": false}"#.to_owned()),
        Some('s') => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            (StatusCode::OK, r#"{"active": true}"#.to_owned())
        }
        Some('b') => (StatusCode::INTERNAL_SERVER_ERROR, String::new()),
        Some('f') => (StatusCode::FOUND, String::new()),
        Some('l') => (StatusCode::OK, format!(r#"{{"active": true, "more": "{}"}}"#, "x".repeat(100_000))),
        _ => (StatusCode::NOT_FOUND, String::new()),
    }
}

fn message() -> Message {
    let policy = Policy {
        backoff: Backoff::Table(vec![Duration::from_secs(10)]),
        jitter: Jitter::None,
        max_attempts: 4,
        expires_after: None,
    };
    let route = Route::new("notification", "redis", policy);
    let new = NewMessage::new("notification", Content::default());
    admit(new, &route, MessageId::own(1), None, START).message
}

fn to(device: &str) -> Content {
    let mut content = Content::default();
    content.attributes.insert("device_id".to_owned(), device.to_owned());
    content
}

struct Rig {
    devices: Devices,
    clock: Arc<ManualClock>,
    gate: EligibilityGate,
}

impl Rig {
    async fn with(change: impl FnOnce(EligibilityConfig) -> EligibilityConfig) -> Self {
        let devices = Devices::start().await;
        let config = change(EligibilityConfig {
            url: Some(format!("http://127.0.0.1:{}/", devices.port)),
            path: Template::parse("/devices/{device_id}").unwrap(),
            // A busy machine is no device service that is down.
            timeout: Duration::from_secs(30),
            ..EligibilityConfig::default()
        });
        let clock = ManualClock::at(START);
        let gate = EligibilityGate::new(config, Arc::clone(&clock) as Arc<dyn Clock>).unwrap().unwrap();
        Self { devices, clock, gate }
    }

    async fn new() -> Self {
        Self::with(|config| config).await
    }

    async fn check(&self, device: &str) -> Verdict {
        self.gate.check(&message(), &to(device), self.clock.now()).await
    }

    /// Why a message to this device waits, and for how long.
    async fn deferred(&self, device: &str) -> (String, Duration) {
        match self.check(device).await {
            Verdict::Defer { until: Until::At(until), reason } => {
                (reason.to_string(), until.since(self.clock.now()))
            }
            other => panic!("{device}: {other:?}"),
        }
    }
}

fn skipped() -> Verdict {
    Verdict::Skip { reason: "ineligible".into() }
}

#[tokio::test]
async fn an_active_device_passes_and_an_inactive_or_unknown_one_is_skipped() {
    let rig = Rig::new().await;
    assert_eq!(rig.check("a-1").await, Verdict::Pass);
    assert_eq!(rig.check("i-1").await, skipped());
    assert_eq!(rig.check("nobody").await, skipped());
    assert_eq!(rig.devices.asked(), 3);
}

#[tokio::test]
async fn an_answer_counts_for_a_while_and_then_the_service_is_asked_again() {
    let rig = Rig::new().await;
    for _ in 0..3 {
        assert_eq!(rig.check("a-1").await, Verdict::Pass);
        assert_eq!(rig.check("i-1").await, skipped());
    }
    assert_eq!(rig.devices.asked(), 2);
    rig.clock.advance(Duration::from_secs(5));
    assert_eq!(rig.check("a-1").await, Verdict::Pass);
    assert_eq!(rig.devices.asked(), 3);
}

#[tokio::test]
async fn an_answer_that_is_none_defers_and_says_why() {
    let rig = Rig::new().await;
    for (device, why) in [("b-1", "status 500"), ("f-1", "status 302"), ("l-1", "more than 65536 bytes")] {
        let (reason, wait) = rig.deferred(device).await;
        assert!(reason.contains(why) && !reason.contains(device), "{reason}");
        assert_eq!(wait, Duration::from_secs(5));
    }
}

#[tokio::test]
async fn a_service_that_takes_too_long_defers() {
    let rig = Rig::with(|config| EligibilityConfig { timeout: Duration::from_millis(50), ..config }).await;
    let (reason, _) = rig.deferred("s-1").await;
    assert!(reason.contains("did not answer in time"), "{reason}");
}

#[tokio::test]
async fn a_service_that_is_down_is_left_alone_until_one_message_finds_it_back() {
    let breaker = BreakerConfig { failures_max: 3, ..EligibilityConfig::default().breaker };
    let mut rig = Rig::with(|config| EligibilityConfig { breaker, ..config }).await;
    rig.devices.stop().await;
    for device in ["a-1", "a-2", "a-3"] {
        let (reason, _) = rig.deferred(device).await;
        assert!(reason.contains("cannot be reached"), "{reason}");
    }
    let (reason, wait) = rig.deferred("a-4").await;
    assert!(reason.contains("does not answer"), "{reason}");
    assert_eq!(wait, Duration::from_secs(5));
    let known = rig.gate.known(&message(), &to("a-4"), rig.clock.now());
    assert!(
        matches!(&known, Some(Verdict::Defer { reason, .. }) if reason.contains("does not answer")),
        "{known:?}"
    );

    rig.devices.resume().await;
    assert_eq!(rig.devices.asked(), 0);
    rig.deferred("a-4").await;
    assert_eq!(rig.devices.asked(), 0, "it is left alone");
    rig.clock.advance(Duration::from_secs(5));
    assert_eq!(rig.check("a-4").await, Verdict::Pass);
    assert_eq!(rig.check("i-1").await, skipped());
    assert_eq!(
        rig.gate.known(&message(), &to("a-9"), rig.clock.now()),
        None,
        "nobody was asked about this one"
    );
}

#[tokio::test]
async fn a_message_about_nobody_is_not_asked_about_and_one_that_leads_astray_is_refused() {
    let rig = Rig::new().await;
    assert_eq!(rig.gate.check(&message(), &Content::default(), START).await, Verdict::Pass);
    assert!(
        matches!(rig.check("..").await, Verdict::Refuse(failure) if failure.code.as_deref() == Some("BAD_ATTRIBUTE"))
    );
    assert_eq!(rig.devices.asked(), 0);
}

#[tokio::test]
async fn without_a_service_there_is_no_gate() {
    let clock = || ManualClock::at(START) as Arc<dyn Clock>;
    assert!(EligibilityGate::new(EligibilityConfig::default(), clock()).unwrap().is_none());
    let config = EligibilityConfig { url: Some("nowhere".to_owned()), ..EligibilityConfig::default() };
    assert!(EligibilityGate::new(config, clock()).is_err());
}
