//! An application's own table keeps the rules for stores that apply to it, on SQLite and on PostgreSQL; and what is true
//! of such a table alone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "that's how a test fails")]

mod alone;
mod conformance;
mod counting;
mod ids;
mod odd;
mod overdue;
mod rig;
mod search;
mod senders;
