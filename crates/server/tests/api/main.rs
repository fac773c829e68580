//! The HTTP API as callers have it: real requests through the whole router, over the reference store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "that's how a test fails")]

mod bulk;
mod campaigns;
mod description;
mod edit;
mod keys;
mod limits;
mod messages;
mod ndjson;
mod operate;
mod outbox;
mod readiness;
mod rig;
mod rights;
mod socket;
