//! `[policies.NAME]`: how messages are retried.

use std::time::Duration;

use redeliver_core::Policy;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::time::show_span;

use super::reader::Reader;
use super::source::Node;
use super::value::{AGE, MS};

/// The most tries that a policy may allow.
const ATTEMPTS_MAX: u32 = 10_000;
/// The most entries that a backoff table may have.
const BACKOFF_ENTRIES_MAX: usize = 1_000;
/// The longest wait between two tries.
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);
const EXAMPLE: &str = "[\"1m\", \"5m\", \"15m\"]";

pub(super) fn read(reader: &Reader<'_>) -> Policy {
    reader.require("backoff", "backoff = [\"1m\", \"5m\", \"15m\"]");
    reader.require("max_attempts", "max_attempts = 4");
    let policy = Policy {
        backoff: backoff(reader),
        jitter: reader.get("jitter", Jitter::None, |node| node.parsed(parse_jitter)),
        max_attempts: reader.get("max_attempts", ATTEMPTS_MAX, |node| node.count(1..=ATTEMPTS_MAX)),
        expires_after: reader
            .get("expires_after", None, |node| node.unless("never", |node| node.span(MS..=AGE))),
    };
    let place = reader.place_of("backoff");
    for warning in warnings(&policy) {
        reader.findings().warning(place, warning);
    }
    policy
}

/// Stands in for a policy that could not be read, so that reading can go on. Nobody ever retries by it.
pub(super) fn stand_in() -> Policy {
    Policy {
        backoff: Backoff::Table(vec![MS]),
        jitter: Jitter::None,
        max_attempts: ATTEMPTS_MAX,
        expires_after: None,
    }
}

/// What in a policy can never happen, in words for the person who wrote it.
pub fn warnings(policy: &Policy) -> Vec<String> {
    let mut all = policy.warnings();
    let late = |expires_after: Duration| {
        let slots = policy.timetable(ATTEMPTS_MAX);
        slots.into_iter().find(|slot| slot.since_first.min >= expires_after)
    };
    if let Some(expires_after) = policy.expires_after
        && let Some(slot) = late(expires_after)
    {
        all.push(format!(
            "try {} and later never happen: they are due {} after the first, and a message expires after {}",
            slot.attempt,
            show_span(slot.since_first.min),
            show_span(expires_after)
        ));
    }
    all
}

fn backoff(reader: &Reader<'_>) -> Backoff {
    if reader.holds_table("backoff") {
        return reader.section("backoff", exponential);
    }
    table(reader).unwrap_or_else(|| stand_in().backoff)
}

fn table(reader: &Reader<'_>) -> Option<Backoff> {
    let found = reader.list("backoff", &format!("{EXAMPLE} or a table with base, factor and cap"), wait)?;
    if !(1..=BACKOFF_ENTRIES_MAX).contains(&found.value.len()) {
        let wrong = format!("backoff must have 1 to {BACKOFF_ENTRIES_MAX} entries, such as {EXAMPLE}");
        reader.findings().error(&found.place, wrong);
    }
    Some(Backoff::Table(found.value))
}

fn exponential(reader: &Reader<'_>) -> Backoff {
    reader.require("base", "base = \"2s\"");
    reader.require("cap", "cap = \"60s\"");
    let base = reader.find("base", wait);
    let cap = reader.find("cap", wait);
    if let (Some(base), Some(cap)) = (&base, &cap)
        && base.value > cap.value
    {
        let wrong =
            format!("base ({}) must not be above cap ({})", show_span(base.value), show_span(cap.value));
        reader.findings().error(&base.place, wrong);
    }
    Backoff::Exponential {
        base: base.map_or(MS, |base| base.value),
        factor: reader.get("factor", 2.0, |node| node.number(1.0..=1_000.0)),
        cap: cap.map_or(MS, |cap| cap.value),
    }
}

fn parse_jitter(text: &str) -> Result<Jitter, String> {
    match Jitter::parse(text)? {
        Jitter::Span(span) if span > WAIT_MAX => Err(format!("it is at most {}", show_span(WAIT_MAX))),
        jitter => Ok(jitter),
    }
}

fn wait(node: &Node) -> Result<Duration, String> {
    node.span(MS..=WAIT_MAX)
}
