//! Decides what becomes of a message, and when.
//!
//! Pure: no I/O, no clock, no randomness. Every function here takes what it needs as arguments and returns
//! a value that somebody else writes down. The path of a message through this crate is
//! [`accept`] → [`gate`] → [`settle`] → [`change`], with [`operate`] for what a person does in between.

pub mod accept;
pub mod attempt;
pub mod breaker;
pub mod bulk;
pub mod calendar;
pub mod campaign;
pub mod change;
pub mod classify;
pub mod content;
pub mod destination;
mod draw;
pub mod edit;
pub mod email;
pub mod event;
pub mod explain;
pub mod fields;
pub mod fingerprint;
pub mod gate;
pub mod identity;
pub mod limit;
pub mod message;
pub mod operate;
pub mod outcome;
pub mod planted;
pub mod policy;
pub mod quota;
pub mod report;
pub mod route;
pub mod settle;
pub mod share;
pub mod status;
pub mod time;
pub mod trace;

pub use attempt::AttemptId;
pub use change::Change;
pub use content::Content;
pub use event::Event;
pub use message::{DeadReason, InstanceId, Lane, Lease, Message, MessageId, Name, State};
pub use outcome::{Failure, Outcome};
pub use policy::Policy;
pub use route::Route;
pub use time::Timestamp;
