//! How fast a transport carries, whichever it is.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use redeliver_conformance::make;
use redeliver_core::{Content, Message, Outcome};
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_engine::transport::{Envelope, Transport};

/// Enough for any run.
pub const WITHIN: Duration = Duration::from_secs(120);
pub const BODY_BYTES: usize = 200;

pub fn per_second(messages: usize, clock: &WallClock, began: Duration) -> f64 {
    messages as f64 / clock.uptime().saturating_sub(began).as_secs_f64()
}

/// Carries one message so many times with that many in the air at once, after a first one that connects.
pub async fn carried(
    transport: &impl Transport,
    content: &Content,
    window: usize,
    messages: usize,
    clock: &WallClock,
) -> f64 {
    let message = make::message(1);
    carry(transport, &message, content).await;
    let began = clock.uptime();
    let mut air = FuturesUnordered::new();
    for _ in 0..messages {
        if air.len() >= window {
            air.next().await;
        }
        air.push(carry(transport, &message, content));
    }
    while air.next().await.is_some() {}
    per_second(messages, clock, began)
}

async fn carry(transport: &impl Transport, message: &Message, content: &Content) {
    let envelope = Envelope { message, content, target: content.target.as_deref() };
    let outcome = transport.carry(&envelope, WITHIN).await;
    assert!(matches!(outcome, Outcome::Delivered { .. }), "{outcome:?}");
}
