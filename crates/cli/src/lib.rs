//! The command line: reads the configuration, wires the parts together and runs the commands.

pub mod args;
mod clock;
mod commands;
pub mod config;
mod drive;
pub mod exit;
mod http;
mod log_throttle;
mod logging;
mod name;
mod reach;
mod signals;
pub mod threads;
mod traces;
mod wire;

use std::process::ExitCode;

use clap::Parser;

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    let args = args::Args::parse();
    match commands::run(args.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::tell(&error),
    }
}
