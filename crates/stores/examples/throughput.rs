//! How many rows a second the store takes in, and leases and settles, at batches of 1,000.
//!
//! `cargo run --release -p redeliver-stores --example throughput -- FILE [ROWS]`
#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::time::Duration;

use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::change::NewRow;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::settle::settle;
use redeliver_core::{Content, InstanceId, Lane, MessageId, Outcome, Policy, Route, Timestamp};
use redeliver_engine::store::{ClaimKind, ClaimRequest, Store};
use redeliver_stores::{OpenOptions, Sqlite};
use rustix::time::{ClockId, clock_gettime};

const BATCH: usize = 1_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("say which file")?;
    let rows: usize = args.next().map_or(Ok(200_000), |text| text.parse())?;
    let store = Sqlite::open(path, OpenOptions::default())?;
    let route = Route::new("bench", "none", policy());
    let now = Timestamp::from_ms(1_796_115_600_000);

    let mut spent = Spent::default();
    for batch in 0..rows / BATCH {
        let new: Vec<NewRow> = (0..BATCH).map(|n| row(&route, batch * BATCH + n, now)).collect();
        let begun = Spent::now();
        store.insert(new).await?;
        spent += begun.elapsed();
    }
    say("insert", rows, spent);

    let begun = Spent::now();
    store.counts(now).await?;
    let counted = begun.elapsed();
    println!("counts: {:?}, {:?} of processor", counted.wall, counted.processor);

    let mut spent = [Spent::default(); 2];
    let mut settled = 0;
    loop {
        let request = ClaimRequest {
            route: route.name.clone(),
            lane: Lane::Medium,
            limit: BATCH,
            kind: ClaimKind::Trusted,
            instance: InstanceId(1),
            now,
            keeps_first_send: false,
            lease: Duration::from_secs(60),
        };
        let begun = Spent::now();
        let claims = store.claim(request).await?;
        spent[0] += begun.elapsed();
        if claims.claimed.is_empty() {
            break;
        }
        let outcome = Outcome::Delivered { receipt: None };
        let changes: Vec<_> =
            claims.claimed.iter().map(|(message, _)| settle(message, &outcome, &route, now)).collect();
        settled += changes.len();
        let begun = Spent::now();
        store.apply(changes).await?;
        spent[1] += begun.elapsed();
    }
    say("claim", settled, spent[0]);
    say("apply", settled, spent[1]);
    spent[0] += spent[1];
    say("claim + apply", settled, spent[0]);
    Ok(())
}

fn policy() -> Policy {
    let backoff = Backoff::Table(vec![Duration::from_secs(60)]);
    Policy { backoff, jitter: Jitter::None, max_attempts: 8, expires_after: None }
}

fn row(route: &Route, n: usize, now: Timestamp) -> NewRow {
    let mut bits = [0; 10];
    bits[2..].copy_from_slice(&(n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    let at = Timestamp::from_ms(now.as_ms() - 1_000_000 + n as i64 / 50);
    let mut row = admit(
        NewMessage::new(route.name.clone(), Content::of_bytes(vec![b'x'; 100])),
        route,
        MessageId::fresh(at, bits),
        None,
        now,
    );
    row.message.due_at = at;
    row
}

fn say(what: &str, rows: usize, spent: Spent) {
    let rate = |span: Duration| rows as f64 / span.as_secs_f64();
    println!("{what}: {:.0} rows/s, {:.0} per processor second", rate(spent.wall), rate(spent.processor));
}

/// Time on the wall, and of the processor: on a busy machine only the second says much.
#[derive(Copy, Clone, Default)]
struct Spent {
    wall: Duration,
    processor: Duration,
}

impl Spent {
    fn now() -> Self {
        let read = |id| {
            let time = clock_gettime(id);
            Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
        };
        Self { wall: read(ClockId::Monotonic), processor: read(ClockId::ProcessCPUTime) }
    }

    fn elapsed(self) -> Self {
        let now = Self::now();
        Self { wall: now.wall - self.wall, processor: now.processor - self.processor }
    }
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.wall += other.wall;
        self.processor += other.processor;
    }
}
