//! Sets up what is written to standard error while the process serves.

use std::io::{self, IsTerminal};
use std::panic::PanicHookInfo;

use tracing_subscriber::EnvFilter;

use crate::config::{LogConfig, LogFormat};

/// Sends events to standard error as the config says; panics become events too.
pub fn set_up(config: &LogConfig) {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::builder().parse_lossy(&config.filter))
        .with_writer(io::stderr)
        .with_ansi(wants_colour(&io::stderr()))
        // When nobody reads us any more, saying so to the same place would be the end of the process.
        .log_internal_errors(false);
    // The only error is that events go somewhere already, which is as good.
    let _ = match config.format {
        LogFormat::Text => lines.with_target(false).try_init(),
        LogFormat::Json => {
            lines.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init()
        }
    };
    std::panic::set_hook(Box::new(tell_panic));
}

/// Whether colours are seen there, and welcome.
pub fn wants_colour(out: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    out.is_terminal() && !set("NO_COLOR") && !dumb
}

fn tell_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let said = panic.payload_as_str().unwrap_or("no words");
    tracing::error!(event = "process.panicked", place, "panicked, which is a bug: {said}");
}
