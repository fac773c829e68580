//! `redeliver suppressions` as it is written.

use std::path::PathBuf;

use clap::Subcommand;

use super::ReachArgs;

/// `redeliver suppressions`
#[derive(Debug, Subcommand)]
pub enum SuppressionsCommand {
    /// List whom a workspace writes to no more; as lines of JSON, as import takes them
    List {
        /// Which workspace; without it, the key's own, or default
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// Print JSON, one object a line
        #[arg(long)]
        json: bool,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Put addresses on the list: nothing more goes out to them
    Add {
        /// The addresses
        #[arg(required = true)]
        addresses: Vec<String>,
        /// Why: unsubscribed, bounced or another word
        #[arg(long, value_name = "WORD", default_value = "unsubscribed")]
        reason: String,
        /// Which workspace; without it, the key's own, or default
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Take an address off the list: what waited for that is released
    Remove {
        /// The address
        address: String,
        /// Which workspace; without it, the key's own, or default
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Put the addresses of a file on the list: an address a line, or lines of JSON as list --json prints them
    Import {
        /// The file; - for standard input
        file: PathBuf,
        /// Which workspace; without it, the key's own, or default
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// Where it is.
        #[command(flatten)]
        reach: ReachArgs,
    },
}
