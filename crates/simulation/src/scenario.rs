//! What a seed draws: how many instances, which routes, how much trouble of which kind.

use std::collections::BTreeMap;
use std::time::Duration;

use redeliver_core::breaker::BreakerConfig;
use redeliver_core::limit::Rate;
use redeliver_core::policy::{Backoff, Jitter, Policy};
use redeliver_core::route::OnLost;
use redeliver_core::{Name, Route};
use redeliver_engine::Settings;

use crate::rng::Rng;
use crate::store::StoreFaults;

/// The options of one run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Engines on the one store.
    pub instances: usize,
    /// Things that clients do, in all.
    pub deeds: u64,
    /// How long the chaos lasts.
    pub chaos_ms: u64,
    /// How the store fails.
    pub store: StoreFaults,
    /// How often, in a thousand, a receiver makes trouble.
    pub trouble: u64,
    /// Kills and stops, in all.
    pub blows: u64,
    /// Whether the time of day jumps. Only where one clock decides alone.
    pub jumps: bool,
    /// The lease of every route.
    pub lease: Duration,
    /// Whether operators click.
    pub operators: bool,
    /// Whether one message takes down whoever carries it.
    pub poison: bool,
    /// What never heals.
    pub lasting: Lasting,
    /// Messages that come at once to one destination with limits.
    pub burst: u64,
}

/// A fault that outlasts the chaos: every message must still end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// Everything heals.
    Nothing,
    /// Receivers take every message and answer too late, or never.
    SilentReceivers,
    /// The store stays as slow as it was.
    SlowStore,
}

/// From and until when no heartbeat of the first process comes through.
fn unheard(rng: &mut Rng) -> (u64, u64) {
    if !rng.chance(150) {
        return (0, 0);
    }
    let from_ms = rng.between(1_000, 15_000);
    (from_ms, from_ms + rng.between(10_000, 30_000))
}

impl Scenario {
    /// What this seed draws.
    pub fn draw(rng: &mut Rng) -> Self {
        let instances = rng.between(1, 3) as usize;
        Self {
            instances,
            deeds: rng.between(3, 14),
            chaos_ms: rng.between(5_000, 40_000),
            store: StoreFaults {
                absent: *rng.pick(&[0, 0, 20, 100]),
                answer_lost: *rng.pick(&[0, 10, 50, 150]),
                slow: *rng.pick(&[0, 50, 300]),
                slow_ms_max: *rng.pick(&[5, 100, 2_000]),
                unheard_ms: unheard(rng),
            },
            trouble: *rng.pick(&[0, 200, 500, 800]),
            blows: rng.between(0, 4),
            jumps: instances == 1 && rng.chance(300),
            lease: Duration::from_secs(*rng.pick(&[7, 12, 30])),
            operators: rng.chance(600),
            poison: rng.chance(40),
            lasting: match rng.between(0, 19) {
                0 => Lasting::SilentReceivers,
                1 => Lasting::SlowStore,
                _ => Lasting::Nothing,
            },
            burst: *rng.pick(&[0, 0, 0, 12]),
        }
    }

    /// Whether nothing but a poisonous message goes wrong.
    pub fn is_calm(&self) -> bool {
        self.blows == 0
            && self.store.absent == 0
            && self.store.answer_lost == 0
            && self.store.slow == 0
            && self.store.unheard_ms == (0, 0)
    }

    /// How engines pace themselves in a run: coarser than in life, so that a run is short.
    pub fn settings(&self) -> Settings {
        Settings {
            poll_interval: Duration::from_secs(4),
            heartbeat: Duration::from_secs(3),
            keep_interval: Duration::from_secs(3),
            watch_interval: Duration::from_secs(10),
            prune_interval: Duration::from_secs(6),
            drain_timeout: Duration::from_secs(30),
            claim_batch_max: 2,
            release_batch_max: 10,
        }
    }

    /// The routes of every run: one for each way in which messages can travel.
    pub fn routes(&self) -> BTreeMap<Name, Route> {
        let policy = Policy {
            backoff: Backoff::Exponential {
                base: Duration::from_secs(1),
                factor: 2.0,
                cap: Duration::from_secs(5),
            },
            jitter: Jitter::Share(300),
            max_attempts: 4,
            expires_after: None,
        };
        let base = |name: &str, transport: &str| Route {
            lease: self.lease,
            send_timeout: Duration::from_secs(2),
            concurrency_max: 12,
            dead_letter: Some("dead".into()),
            losses_max: 3,
            unconfirmed_max: 3,
            retention: Duration::from_secs(15),
            key_retention: Some(Duration::from_secs(10_000)),
            retry_after_max: Duration::from_secs(8),
            ..Route::new(name, transport, policy.clone())
        };
        let breaker = BreakerConfig {
            failures_max: 2,
            open_for: Duration::from_secs(3),
            open_for_max: Duration::from_secs(8),
            recover_per_s: 2,
        };
        [
            base("retry", "direct"),
            Route { on_lost: OnLost::Hold, ..base("hold", "direct") },
            Route { report_within: Some(Duration::from_secs(6)), ..base("handoff", "outside") },
            Route {
                breaker: Some(breaker),
                rate: Some(Rate { per_s: 2.0 }),
                destination_concurrency_max: Some(2),
                ..base("limited", "direct")
            },
            Route { dead_letter: None, retention: Duration::from_secs(3_600), ..base("dead", "direct") },
        ]
        .into_iter()
        .map(|route| (route.name.clone(), route))
        .collect()
    }
}
