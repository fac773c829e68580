//! `redeliver completions` and `redeliver man`: what shells and readers know of the command line.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use super::print;
use crate::args::Args;
use crate::exit::print_aside;

/// What the binary is called.
const NAME: &str = "redeliver";

pub(super) fn completions(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), NAME, &mut script);
    print(&String::from_utf8(script)?)
}

/// Writes a page for each command into a directory; without one, prints the page of the whole.
pub(super) fn man(directory: Option<&Path>) -> anyhow::Result<()> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Args::command()).render(&mut page)?;
        return print(&String::from_utf8(page)?);
    };
    let written = || {
        std::fs::create_dir_all(directory)?;
        clap_mangen::generate_to(Args::command(), directory)
    };
    written().with_context(|| format!("cannot write manual pages to {}", directory.display()))?;
    print_aside(format_args!("manual pages are in {}", directory.display()));
    Ok(())
}
