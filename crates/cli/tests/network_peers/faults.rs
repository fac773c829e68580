//! The faults of a network, each on a proxy of its own before the same server, and what must hold whatever they do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, scope, spawn};
use std::time::Duration;

use redeliver_core::message::DeadReason;
use redeliver_core::{Message, State};
use redeliver_engine::store::{Filter, Store};
use redeliver_servers::proxy::{Fault, Proxy, Way};
use serde_json::Value;

use crate::process::face::KEY;
use crate::process::{Place, Process, run};
use crate::story::{breathe, until_some_within};

/// How long the slowest fault may take on a slow machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Sends of a message that may stay unconfirmed.
const UNCONFIRMED_MAX: usize = 5;

/// Enough attempts that no fault uses them up.
const POLICY: &str =
    "[policies.quick]\nbackoff = [\"200ms\"]\nmax_attempts = 1000\n[engine]\npoll_interval = \"100ms\"\n";

/// What happens to the connections of one route or intake.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: it works while the others don't.
    Clear,
    /// They are closed in the middle of messages and of answers.
    Cut,
    /// Everything on them is dropped without a word.
    BlackHole,
    /// Everything comes later than a heartbeat, and earlier than any time-out.
    Delay,
    /// The peer hears that nothing more will be sent.
    HalfClose,
    /// Every byte comes alone.
    Trickle,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::Clear, Self::Cut, Self::BlackHole, Self::Delay, Self::HalfClose, Self::Trickle];

    pub fn name(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Cut => "cut",
            Self::BlackHole => "black-hole",
            Self::Delay => "delay",
            Self::HalfClose => "half-close",
            Self::Trickle => "trickle",
        }
    }

    /// The time-outs of its connections: short where they are what ends a fault, and long where they must not pass.
    pub fn timeout(self) -> &'static str {
        if self == Self::BlackHole { "1s" } else { "50s" }
    }
}

/// A route or an intake, and the network that it goes by.
pub struct Lane {
    pub kind: Kind,
    pub proxy: Proxy,
    /// Where its connections are cut.
    pub cuts: &'static [(Way, usize)],
    pub delay: Duration,
}

impl Lane {
    pub fn all(port: u16, cuts: &'static [(Way, usize)], delay: Duration) -> Vec<Self> {
        Kind::ALL.into_iter().map(|kind| Self { kind, proxy: Proxy::before(port), cuts, delay }).collect()
    }

    /// Lets the network fail while `put` adds `count` messages, and heals it. `settled` waits until all that was added
    /// has ended.
    fn fail(&self, put: impl Fn(usize), settled: impl Fn()) {
        let Self { kind, proxy, cuts, delay } = self;
        let reconnects = |count: usize, what: &str| {
            let wanted = proxy.connections() + count;
            let what = format!("{}: a new connection after {what}", kind.name());
            move || wait_for(&what, || proxy.connections() >= wanted)
        };
        // Something to break.
        put(2);
        settled();
        match kind {
            Kind::Clear => {}
            Kind::Cut => {
                for (way, bytes) in *cuts {
                    let reconnected = reconnects(1, &format!("a cut, {way:?} {bytes}"));
                    proxy.cut_after(*way, *bytes);
                    put(2);
                    reconnected();
                    settled();
                }
            }
            Kind::BlackHole => {
                let reconnected = reconnects(2, "silence");
                proxy.set_both(Fault::BlackHole);
                put(3);
                reconnected();
                proxy.set_both(Fault::None);
                // Bytes are missing: no network goes on with such connections.
                proxy.cut();
            }
            Kind::Delay => {
                proxy.set_both(Fault::Delay(*delay));
                put(2);
                settled();
            }
            Kind::HalfClose => {
                for _ in 0..3 {
                    let reconnected = reconnects(1, "a half-close");
                    proxy.half_close();
                    put(2);
                    reconnected();
                    proxy.half_close();
                    settled();
                }
            }
            Kind::Trickle => {
                proxy.set_both(Fault::Trickle(Duration::from_millis(2)));
                put(2);
                settled();
            }
        }
        proxy.set_both(Fault::None);
        put(2);
        settled();
    }
}

/// A route for each lane, by a transport of its own, to a target with the lane's name if it needs one.
pub fn outbound(lanes: &[Lane], has_target: bool, transport: impl Fn(&Lane) -> String) -> String {
    let of_lane = |lane: &Lane| {
        let (name, transport) = (lane.kind.name(), transport(lane));
        let target = if has_target { format!("target = \"{name}\"\n") } else { String::new() };
        format!(
            "\n[transports.{name}]\n{transport}\n[routes.{name}]\ntransport = \"{name}\"\npolicy = \"quick\"\n\
             unconfirmed_max = {UNCONFIRMED_MAX}\n{target}"
        )
    };
    POLICY.to_owned() + &lanes.iter().map(of_lane).collect::<String>()
}

/// An intake and a route for each lane.
pub fn inbound(lanes: &[Lane], intake: impl Fn(&Lane) -> String) -> String {
    let of_lane = |lane: &Lane| {
        let (name, intake) = (lane.kind.name(), intake(lane));
        format!("\n[routes.{name}]\ntransport = \"script\"\npolicy = \"quick\"\n\n[intakes.{name}]\n{intake}")
    };
    let lanes: String = lanes.iter().map(of_lane).collect();
    format!("{POLICY}[transports.script]\nkind = \"scripted\"\n{lanes}")
}

/// Lets every lane fail at once. `put` adds the messages of these numbers to a lane, `settled` waits until so many of it
/// have ended.
pub fn fail_all(
    lanes: &[Lane],
    put: impl Fn(&Lane, std::ops::Range<usize>) + Sync,
    settled: impl Fn(&Lane, usize) + Sync,
) {
    scope(|threads| {
        for lane in lanes {
            let (put, settled) = (&put, &settled);
            threads.spawn(move || {
                let count = std::cell::Cell::new(0);
                let put = |more: usize| {
                    let first = count.replace(count.get() + more);
                    put(lane, first..first + more);
                };
                lane.fail(put, || settled(lane, count.get()));
            });
        }
    });
}

pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    until_some_within(PATIENCE, what, || is_so().then_some(()));
}

/// A server that runs while the network fails, and is asked all the time whether it is well.
pub struct Subject {
    pub place: Place,
    pub process: Process,
    http: reqwest::blocking::Client,
    is_over: Arc<AtomicBool>,
    health: Option<JoinHandle<Vec<String>>>,
}

impl Subject {
    pub fn start(config: &str) -> Self {
        let place = Place::new(config).with_variable("REDELIVER_ADMIN_KEY", KEY);
        let process = place.serve();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::blocking::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let (asking, url, over) = (http.clone(), format!("{}/healthz", process.url()), Arc::clone(&is_over));
        let health = spawn(move || {
            let mut wrong = Vec::new();
            while !over.load(Ordering::Relaxed) {
                match asking.get(&url).send() {
                    Ok(answer) if answer.status().is_success() => {}
                    other => wrong.push(format!("{other:?}")),
                }
                for _ in 0..20 {
                    breathe();
                }
            }
            wrong
        });
        Self { place, process, http, is_over, health: Some(health) }
    }

    /// Submits messages; all of them are accepted.
    pub fn accept(&self, messages: &Value) {
        let request = self.http.post(format!("{}/v1/messages", self.process.url())).bearer_auth(KEY);
        let answer = request.json(messages).send().unwrap();
        let (status, text) = (answer.status(), answer.text().unwrap());
        assert!(status.is_success() && !text.contains("\"error"), "{status}: {text}");
    }

    pub fn messages(&self, route: &str) -> Vec<Message> {
        let filter = Filter { route: Some(route.into()), limit: 1_000, ..Filter::default() };
        run(self.place.client().list(filter)).unwrap()
    }

    /// Waits until `count` messages of a route have ended.
    pub fn settled(&self, route: &str, count: usize) {
        let what = format!("{count} messages of {route} have ended");
        let ended = |message: &Message| message.state.ended_at().is_some();
        let is_so = || {
            let messages = self.messages(route);
            messages.len() == count && messages.iter().all(ended)
        };
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wait_for(&what, is_so))).is_err() {
            panic!("{what}: {:#?}\n{}", self.messages(route), self.process.log());
        }
    }

    /// Holds the messages of a route against what came to its receiver, by their keys.
    pub fn judge(&self, route: &str, copies: &BTreeMap<String, usize>) {
        let messages = self.messages(route);
        let known = |key: &String| messages.iter().any(|message| message.key.as_deref() == Some(key));
        assert!(copies.keys().all(known), "{route}: something came that nobody sent: {copies:?}");
        let (mut dead, mut repeats) = (0, 0);
        for message in &messages {
            let key = message.key.as_deref().unwrap();
            let came = copies.get(key).copied().unwrap_or_default();
            match message.state {
                State::Delivered { .. } => {
                    assert!(came > 0, "{key} is delivered and never came: {message:?}")
                }
                State::Dead { reason: DeadReason::Uncertain, .. } => dead += 1,
                _ => panic!("{route}: {message:?}"),
            }
            let unconfirmed = message.possible_duplicates as usize;
            assert!(
                came <= 1 + unconfirmed && came <= UNCONFIRMED_MAX,
                "{key} came {came} times: {message:?}"
            );
            assert_eq!(message.losses, 0, "{message:?}");
            repeats += came.saturating_sub(1);
        }
        println!("{route}: {} messages, {dead} uncertain, {repeats} repeats", messages.len());
        let doubtful = messages.iter().filter(|message| message.possible_duplicates > 0).count();
        match route {
            "clear" => assert_eq!((dead, doubtful), (0, 0), "no answer is lost: {messages:?}"),
            "cut" => assert!(doubtful > 0, "no cut has met a message or its answer: {messages:?}"),
            _ => {}
        }
    }

    /// Ends it. It was well all the time.
    pub fn end(mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let wrong = self.health.take().unwrap().join().unwrap();
        assert!(wrong.is_empty(), "{wrong:?}");
        let metrics = self.http.get(format!("{}/metrics", self.process.url())).bearer_auth(KEY).send();
        let metrics = metrics.unwrap().text().unwrap();
        let lost: Vec<&str> =
            metrics.lines().filter(|line| line.starts_with("redeliver_leases_lost_total{")).collect();
        assert!(!lost.is_empty() && lost.iter().all(|line| line.ends_with(" 0")), "{lost:?}");
        let beats =
            metrics.lines().any(|line| line.starts_with("redeliver_heartbeat_lateness_seconds_count"));
        assert!(beats, "{metrics}");
    }
}
