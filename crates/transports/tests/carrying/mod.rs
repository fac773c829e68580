//! Carrying to a real server, whichever it is.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use redeliver_conformance::make;
use redeliver_core::{Content, Message, Outcome};
use redeliver_engine::transport::{Envelope, Transport};

/// Long enough for any answer that will come.
pub const WITHIN: Duration = Duration::from_secs(60);

pub fn run<T>(story: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(story)
}

/// Something to carry to a queue or a key.
pub fn to(target: &str, body: &str) -> Content {
    Content { target: Some(target.into()), ..Content::of_bytes(body.to_owned()) }
}

/// Carries the n-th message.
pub async fn carry(transport: &dyn Transport, n: u32, content: &Content) -> Outcome {
    carry_message(transport, &make::message(n), content).await
}

pub async fn carry_message(transport: &dyn Transport, message: &Message, content: &Content) -> Outcome {
    let envelope = Envelope { message, content, target: content.target.as_deref() };
    transport.carry(&envelope, WITHIN).await
}

/// The same until it is delivered: what is put off, or lost, is tried again.
pub async fn carry_until_delivered(transport: &dyn Transport, n: u32, content: &Content) -> Outcome {
    let mut last = None;
    let trying = async {
        loop {
            match carry(transport, n, content).await {
                outcome @ (Outcome::Deferred { .. } | Outcome::Lost { .. }) => {
                    last = Some(outcome);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                other => return other,
            }
        }
    };
    let tried = tokio::time::timeout(WITHIN, trying).await;
    tried.unwrap_or_else(|_| panic!("not delivered within {WITHIN:?}: {last:?}"))
}
