//! The console, page by page: through the router, and in a real browser.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../../../../tests/browser/mod.rs"]
mod browser;
mod campaigns;
mod edit;
mod hostile;
mod hostile_in_browser;
mod html;
mod login;
mod message;
mod pages;
mod queue;
mod reader;
mod roles;
mod rows;
mod stage;
