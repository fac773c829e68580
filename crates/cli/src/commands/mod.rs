//! The commands, one file for each verb.

mod bench;
mod check;
mod demo;
mod doctor;
mod policy;
mod serve;
mod show;
mod sink;
mod version;

use std::path::Path;

use anyhow::Context;

use crate::args::{Command, ConfigArgs};
use crate::config::{Loaded, Sources, load, profiles};
use crate::exit::Usage;

/// The file that is read where no other is named.
const FILE: &str = "redeliver.toml";

pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Serve(args) => serve::run(&args),
        Command::Demo(args) => demo::run(args),
        Command::Check(args) => check::run(&args),
        Command::Policy(command) => policy::run(&command),
        Command::Doctor(args) => doctor::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Sink(args) => sink::run(args),
        Command::Version => version::run(),
    }
}

/// Reads and checks the config that a command was given, with the environment over it.
pub(crate) fn load_config(args: &ConfigArgs) -> anyhow::Result<Loaded> {
    let profile = args.profile.as_deref().and_then(profiles::find);
    let path = match &args.config {
        Some(path) => Some(path.as_path()),
        None if profile.is_none() => Some(Path::new(FILE)),
        None => None,
    };
    if args.config.is_none() && path.is_some_and(|path| !path.exists()) {
        let names: Vec<&str> = profiles::ALL.iter().map(|profile| profile.name).collect();
        let wrong =
            format!("there is no {FILE} here: give --config FILE or --profile NAME ({})", names.join(", "));
        return Err(Usage(wrong).into());
    }
    let file = match path {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Usage(format!("cannot read config {}: {error}", path.display())))?;
            Some((path.display().to_string().into(), text))
        }
        None => None,
    };
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    Ok(load(&Sources { profile, file, variables })?)
}

/// Writes a command's answer to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush().context("cannot write to standard output")
}

/// Writes JSON to standard output, indented.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}
