//! The promises of the library, each kept before a real database file and a mail server that fails on purpose.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../../examples/booking.rs"]
#[allow(dead_code, reason = "its command line is not run here")]
mod booking;
mod desk;
mod example;
mod handles;
mod inline;
mod later;
mod postgres;
mod stage;
mod transaction;
mod turned_away;
