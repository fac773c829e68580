//! A mail server that fails on purpose, for tests and for trying things out.
//!
//! It listens on loopback only, takes every mail, and does to its client what a [`Script`] says: defer, refuse,
//! hang, cut the connection, lose the answer. It never sends a mail anywhere. How a script is written, and the
//! commands with which a running sink is asked, are in the README beside this crate.

mod client;
mod command;
mod control;
mod dots;
mod keep;
mod login;
mod mail;
mod mailbox;
mod options;
mod parse;
mod script;
mod session;
mod shared;
mod sink;
mod tls;
mod wire;

pub use client::{Control, ControlError};
pub use mail::{Listed, Mail};
pub use options::{ClockFn, Limits, Options, Seen, Tls, WatcherFn};
pub use parse::ScriptError;
pub use script::{Action, Reply, Rule, Script, Stage};
pub use sink::Sink;
