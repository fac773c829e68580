//! A transport that does what its script says: for tests, demonstrations and trying out a policy.
//!
//! It never leaves the process.

mod config;
mod outbound;

pub use config::{Reply, Script, ScriptedConfig, Step};
pub use outbound::{Carrying, Recorder, ScriptedTransport};
