//! How fast Redeliver is with RabbitMQ, beside a bare publisher and a bare consumer on the same broker in the same run.
//!
//! `make bench-rabbitmq`, or `cargo run --release -p redeliver-cli --example rabbitmq -- [MESSAGES [ROUNDS [republish|intake|lateness]]]`
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "it measures, and what cannot go on has failed"
)]

mod bare;
mod ours;

use std::time::Duration;

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

/// A broker is quiet that works for less than a tenth of this time.
const QUIET: Duration = Duration::from_millis(500);

fn main() {
    // As the binary has them, for whoever works on SQLite.
    let store = StoreUrl::parse("sqlite:bench.db").unwrap();
    let measured = async { tokio::spawn(measure()).await.unwrap() };
    threads::runtime(&store).unwrap().block_on(measured);
}

async fn measure() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize| arguments.get(n).map(|text| text.parse::<usize>().unwrap());
    let (count, rounds) = (number(0).unwrap_or(50_000), number(1).unwrap_or(5));
    let wants = |job: &str| arguments.get(2).is_none_or(|only| only == job);
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
            let (to_bare, to_ours) = (queue("bare"), queue("ours"));
            let (of_bare, of_ours) = (queue("bare.source"), queue("ours.source"));
            if wants("republish") {
                let bare = bare.publish(&to_bare, count, bare::body);
                republish.push(in_turn(round, &server, ours.republish(&to_ours, count), bare).await);
            }
            if wants("intake") {
                for name in [&of_bare, &of_ours] {
                    bare.publish(name, count, bare::retry_message).await;
                }
                let bare = bare.consume(&of_bare, count);
                intake.push(in_turn(round, &server, ours.take_in(&of_ours, count), bare).await);
            }
        }
        tell(&format!("republish to a {kind} queue"), &republish);
        tell(&format!("intake from a {kind} queue"), &intake);
    }
    if wants("lateness") {
        bare.make("late", "quorum").await;
        ours.lateness("late").await;
    }
}

/// Does both on a quiet broker, each of them first in every other round: whoever comes second finds one that has worked for the
/// first.
async fn in_turn(
    round: usize,
    server: &RabbitmqServer,
    ours: impl Future<Output = f64>,
    bare: impl Future<Output = f64>,
) -> (f64, f64) {
    quiet(server).await;
    if round.is_multiple_of(2) {
        let bare = bare.await;
        quiet(server).await;
        (ours.await, bare)
    } else {
        let ours = ours.await;
        quiet(server).await;
        (ours, bare.await)
    }
}

/// Waits until the broker has done what it had to do for what came before: it writes down messages that it has confirmed, and
/// clears up after those that are gone.
async fn quiet(server: &RabbitmqServer) {
    let mut worked = server.worked();
    loop {
        tokio::time::sleep(QUIET).await;
        let before = std::mem::replace(&mut worked, server.worked());
        if worked.saturating_sub(before) < QUIET / 10 {
            return;
        }
    }
}

/// Each round and the median of their ratios.
fn tell(job: &str, rounds: &[(f64, f64)]) {
    if rounds.is_empty() {
        return;
    }
    for (ours, bare) in rounds {
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
