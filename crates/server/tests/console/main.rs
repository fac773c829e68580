//! The console, page by page: through the router, and in a real browser.

mod browser;
mod chromium;
mod hostile;
mod html;
mod login;
mod queue;
mod reader;
mod roles;
mod stage;
