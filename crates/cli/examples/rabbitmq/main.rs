//! How fast Redeliver is with RabbitMQ, beside a bare publisher and a bare consumer on the same broker in the same run.
//!
//! `make bench-rabbitmq`, or `cargo run --release -p redeliver-cli --example rabbitmq -- [MESSAGES [ROUNDS]]`
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "it measures, and what cannot go on has failed"
)]

mod bare;
mod ours;

use redeliver_cli::config::StoreUrl;
use redeliver_cli::threads;
use redeliver_servers::rabbitmq::RabbitmqServer;

use bare::Bare;
use ours::Ours;

/// As the binary has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The bytes of each message, as in the other benchmarks.
pub const BODY_BYTES: usize = 200;
/// Messages without a confirm, at most: the profile's `concurrency_max`.
pub const IN_FLIGHT: usize = 1_000;
/// Messages on their way to a consumer, at most: what an intake has by default.
pub const PREFETCH: u16 = 4_000;
/// Messages that are acknowledged at once, at most.
pub const BATCH: usize = 1_000;

fn main() {
    // As the binary has them, for whoever works on SQLite.
    let store = StoreUrl::parse("sqlite:bench.db").unwrap();
    threads::runtime(&store).unwrap().block_on(measure());
}

async fn measure() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().unwrap());
    let (count, rounds) = (arguments.next().unwrap_or(50_000), arguments.next().unwrap_or(5));
    let server = RabbitmqServer::start();
    let (bare, ours) = (Bare::to(&server.url()), Ours::to(&server.url()));
    println!("{count} messages of {BODY_BYTES} bytes, {rounds} rounds, in messages a second");
    for kind in ["classic", "quorum"] {
        let mut republish = Vec::new();
        let mut intake = Vec::new();
        for round in 0..rounds {
            let queue = |what: &str| format!("{kind}.{round}.{what}");
            for name in ["bare", "ours", "bare.source", "ours.source"] {
                bare.make(&queue(name), kind).await;
            }
            let plain = bare.publish(&queue("bare"), count, bare::body).await;
            republish.push((ours.republish(&queue("ours"), count).await, plain));
            for name in ["bare.source", "ours.source"] {
                bare.publish(&queue(name), count, bare::retry_message).await;
            }
            let plain = bare.consume(&queue("bare.source"), count).await;
            intake.push((ours.take_in(&queue("ours.source"), count).await, plain));
        }
        tell(&format!("republish to a {kind} queue"), republish);
        tell(&format!("intake from a {kind} queue"), intake);
    }
    bare.make("late", "quorum").await;
    ours.lateness("late").await;
}

/// Each round and the median of their ratios.
fn tell(job: &str, rounds: Vec<(f64, f64)>) {
    for (ours, bare) in &rounds {
        println!("{job}: {ours:.0} beside {bare:.0} bare: {:.2}", ours / bare);
    }
    let median = |all: &dyn Fn(&(f64, f64)) -> f64| {
        let mut sorted: Vec<f64> = rounds.iter().map(all).collect();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    println!(
        "{job}, median: {:.0} beside {:.0} bare, ratio {:.2}",
        median(&|(ours, _)| *ours),
        median(&|(_, bare)| *bare),
        median(&|(ours, bare)| ours / bare)
    );
}
