//! The commands, one file for each verb.

mod act;
mod audit;
mod bench;
mod bulk;
mod campaign;
mod check;
mod dead;
mod demo;
mod doctor;
mod edit;
mod export;
mod import;
mod instances;
mod keys;
mod list;
mod look;
mod migrate;
mod policy;
mod queues;
mod routes;
mod send;
mod serve;
mod shell;
mod show;
mod sink;
mod stats;
mod stop;
mod suppressions;
mod table;
mod tail;
mod times;
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
        Command::Send(args) => send::run(&args),
        Command::List(args) => list::run(&args),
        Command::Show(args) => look::show_one(&args),
        Command::Explain(args) => look::explain(&args),
        Command::Retry(args) => act::run("retry", &args),
        Command::Cancel(args) => act::run("cancel", &args),
        Command::Dismiss(args) => act::run("dismiss", &args),
        Command::Restore(args) => act::run("restore", &args),
        Command::Edit(args) => edit::run(&args),
        Command::Report(args) => act::report(&args),
        Command::Tail(args) => tail::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Routes(command) => routes::run(&command),
        Command::Campaign(command) => campaign::run(&command),
        Command::Suppressions(command) => suppressions::run(&command),
        Command::Destinations(command) => stop::destinations(&command),
        Command::Senders(command) => stop::senders(&command),
        Command::Stats(args) => stats::run(&args),
        Command::Instances(args) => instances::run(&args),
        Command::Dead(args) => dead::run(&args),
        Command::Bulk(command) => bulk::run(&command),
        Command::Audit(args) => audit::run(&args),
        Command::Demo(args) => demo::run(args),
        Command::Check(args) => check::run(&args),
        Command::Keys(command) => keys::run(&command),
        Command::Policy(command) => policy::run(&command),
        Command::Queues(command) => queues::run(&command),
        Command::Table(command) => table::run(&command),
        Command::Migrate(args) => migrate::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Sink(args) => sink::run(args),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { dir } => shell::man(dir.as_deref()),
        Command::Version => version::run(),
    }
}

/// Reads and checks the config that a command was given, with the environment over it.
pub(crate) fn load_config(args: &ConfigArgs) -> anyhow::Result<Loaded> {
    if !has_config(args) {
        let names: Vec<&str> = profiles::ALL.iter().map(|profile| profile.name).collect();
        let wrong =
            format!("there is no {FILE} here: give --config FILE or --profile NAME ({})", names.join(", "));
        return Err(Usage(wrong).into());
    }
    load_config_if_any(args)
}

/// The same for a command that can do without a config: then there is only the environment.
pub(crate) fn load_config_if_any(args: &ConfigArgs) -> anyhow::Result<Loaded> {
    let profile = args.profile.as_deref().and_then(profiles::find);
    let path = match &args.config {
        Some(path) => Some(path.as_path()),
        None => Some(Path::new(FILE)).filter(|path| profile.is_none() && path.exists()),
    };
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

/// Whether a config was given, or is where one is looked for.
pub(crate) fn has_config(args: &ConfigArgs) -> bool {
    args.config.is_some() || args.profile.is_some() || Path::new(FILE).exists()
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
