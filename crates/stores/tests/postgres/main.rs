//! PostgreSQL keeps every rule for stores: two versions of it, by itself, and behind a pooler.
#![allow(clippy::unwrap_used, clippy::panic, reason = "that's how a test fails")]

mod alone;
mod conformance;
mod elsewhere;
mod fleet_limits;
mod gather;
